package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/sqlapi"
)

// queryCmd runs a NoSQL query on a server, or on a store that no server has open.
type queryCmd struct {
	Endpoint string
	keyFlags
	Data      directory
	Engine    string
	DB        string
	Container string
	PK        string
	Param     map[string]string
	Explain   bool
	Text      string

	charge float64 // request units of the pages so far
}

func (q *queryCmd) command(s *streams, engines []server.EngineKind) *cobra.Command {
	cmd := &cobra.Command{Use: "query QUERY", Short: "Run a NoSQL query, and explain it.",
		Args: only(func(text string) error { q.Text = text; return nil }),
		RunE: runs(func() error { return q.run(s, engines) })}
	f := cmd.Flags()
	urlVar(f, &q.Endpoint, "endpoint", "", "`URL` of a server's NoSQL API; without it, --data and --engine the "+
		"server of ./data is asked, or the one at the default address.")
	q.keyFlags.flags(f)
	f.Var(&q.Data, "data", "Read the store in this data `DIR` instead; no server may have it open.")
	f.StringVar(&q.Engine, "engine", "", "Read the store at this `ADDRESS` instead; servers may be using it.")
	f.StringVar(&q.DB, "db", "", "`DATABASE`.")
	f.StringVar(&q.Container, "container", "", "`CONTAINER`.")
	f.StringVar(&q.PK, "pk", "", "Partition key: a `JSON` value, or an array of the values of a hierarchical key.")
	f.Func("param", "Value of a query parameter, as `NAME=JSON`. Repeatable.", q.param)
	f.BoolVar(&q.Explain, "explain", false, "Say on the error stream how the rows were found and what would make it "+
		"cheaper.")
	return require(cmd, "db", "container")
}

// param adds a query parameter.
func (q *queryCmd) param(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want NAME=JSON")
	}
	if q.Param == nil {
		q.Param = map[string]string{}
	}
	q.Param[name] = value
	return nil
}

// run executes the query. It prints the rows on out, one JSON value a line.
func (q *queryCmd) run(s *streams, engines []server.EngineKind) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if q.Data == "" && q.Engine == "" {
		if q.Endpoint, q.Key, err = q.nosqlServer(q.Endpoint); err != nil {
			return err
		}
	}
	do, closing, err := q.transport(ctx, engines)
	if err != nil {
		return err
	}
	ex, err := q.pages(ctx, do, s.out)
	if err == nil && q.Explain {
		err = writeExplanation(s.errOut, ex)
	}
	return errors.Join(err, closing())
}

// transport returns the function that executes requests: on a server, or on the API with the store itself.
func (q *queryCmd) transport(ctx context.Context, engines []server.EngineKind) (
	do func(*http.Request) (*http.Response, error), closing func() error, err error) {
	var eng *core.Engine
	switch {
	case q.Data != "" && q.Engine != "":
		return nil, nil, errors.New("--data and --engine can't be used together")
	case q.Engine != "":
		eng, err = server.OpenAddressForReading(ctx, q.Engine, engines, slog.Default())
	case q.Data != "":
		eng, err = server.OpenForReading(ctx, string(q.Data))
	default:
		return door.Client(0).Do, func() error { return nil }, nil
	}
	if err != nil {
		return nil, nil, err
	}
	h, err := sqlapi.New(eng, sqlapi.Options{Account: "localhost"})
	if err != nil {
		return nil, nil, errors.Join(err, eng.Close())
	}
	return func(r *http.Request) (*http.Response, error) {
		w := &answer{header: http.Header{}, code: http.StatusOK}
		h.ServeHTTP(w, r)
		header := http.Header{} // in canonical form, as from a connection: the API writes names in lower case
		for name, values := range w.header {
			header[http.CanonicalHeaderKey(name)] = values
		}
		return &http.Response{StatusCode: w.code, Header: header, Body: io.NopCloser(&w.body)}, nil
	}, eng.Close, nil
}

// answer is a reply that isn't sent over a connection.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// pages runs the query to its end and sums up the figures of its pages.
func (q *queryCmd) pages(ctx context.Context, do func(*http.Request) (*http.Response, error), out io.Writer) (
	*sqlapi.Explanation, error) {
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	var sum *sqlapi.Explanation
	for token := ""; ; {
		res, err := q.page(ctx, do, body, token)
		if err != nil {
			return nil, err
		}
		for _, row := range res.Documents {
			if _, err := fmt.Fprintf(out, "%s\n", row); err != nil {
				return nil, err
			}
		}
		if q.Explain {
			if sum, err = addExplanation(sum, res.explain); err != nil {
				return nil, err
			}
		}
		if token = res.token; token == "" {
			return sum, nil
		}
	}
}

// body is the request body.
func (q *queryCmd) body() ([]byte, error) {
	type param struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	params := []param{}
	for name, text := range q.Param {
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("--param %s=%s: the value is not JSON", name, text)
		}
		params = append(params, param{"@" + strings.TrimPrefix(name, "@"), json.RawMessage(text)})
	}
	return json.Marshal(map[string]any{"query": q.Text, "parameters": params})
}

// keyHeader returns the value of the partition key header.
func (q *queryCmd) keyHeader() (string, error) {
	switch {
	case q.PK == "" || strings.HasPrefix(strings.TrimSpace(q.PK), "["):
		return q.PK, nil
	case json.Valid([]byte(q.PK)):
		return "[" + q.PK + "]", nil
	}
	return "", fmt.Errorf("--pk %s: want a JSON value, a string in quotes", q.PK)
}

// queryPage is one page of a reply.
type queryPage struct {
	Documents      []json.RawMessage
	token, explain string
}

func (q *queryCmd) page(ctx context.Context, do func(*http.Request) (*http.Response, error), body []byte,
	token string) (*queryPage, error) {
	link := "dbs/" + q.DB + "/colls/" + q.Container
	path := "/dbs/" + url.PathEscape(q.DB) + "/colls/" + url.PathEscape(q.Container) + "/docs"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(q.Endpoint, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	key, err := q.keyHeader()
	if err != nil {
		return nil, err
	}
	date := clock.New().Now().Format(http.TimeFormat)
	sig, err := masterToken(q.Key, "post\ndocs\n"+link+"\n"+strings.ToLower(date)+"\n\n")
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": sig, "x-ms-date": date, "x-ms-version": "2020-11-05", "Content-Type": "application/query+json",
		"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True",
		"x-ms-max-item-count":          "-1",
		"x-ms-documentdb-partitionkey": key, "x-ms-continuation": token, "x-orrery-strict": "none",
		"x-orrery-explain": fmt.Sprint(q.Explain),
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := do(req)
	if err != nil {
		return nil, q.unreachable(ctx, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, q.unreachable(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, refusal("query", res.StatusCode, text)
	}
	if charge, err := strconv.ParseFloat(res.Header.Get("x-ms-request-charge"), 64); err == nil {
		q.charge += charge
	}
	p := &queryPage{token: res.Header.Get("x-ms-continuation"), explain: res.Header.Get("x-orrery-explain")}
	return p, json.Unmarshal(text, p)
}

// unreachable returns the error for a request without a complete reply.
func (q *queryCmd) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the query was interrupted")
	}
	return unreached(q.Endpoint, err)
}

// unreached returns the error for a request to an endpoint without a complete reply.
func unreached(endpoint string, err error) error {
	var u *url.Error
	if errors.As(err, &u) { // its text would repeat method and URL
		err = u.Err
	}
	if errors.Is(err, door.ErrRedirect) {
		return fmt.Errorf("%s: %w", endpoint, door.ErrRedirect)
	}
	var n *net.OpError
	if errors.As(err, &n) && n.Op == "dial" {
		return fmt.Errorf("no server answers at %s: %w", endpoint, n.Err)
	}
	if err := door.Untrusted(endpoint, err); err != nil {
		return err
	}
	return fmt.Errorf("the answer of %s is incomplete: %w", endpoint, err)
}

// refusal returns the error in a reply, without the parts that are only useful in a client's log. what was refused is a
// noun.
func refusal(what string, code int, body []byte) error {
	var e struct{ Message string }
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		return fmt.Errorf("the server refuses the %s with %d %s: %.300s", what, code, http.StatusText(code), body)
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "Message: "), "\r\nActivityId")
	var many struct {
		Errors []any
	}
	if json.Unmarshal([]byte(text), &many) == nil && len(many.Errors) > 0 {
		var all []string
		for _, one := range many.Errors {
			all = append(all, sentence(one))
		}
		text = strings.Join(all, "; ")
	}
	return fmt.Errorf("the server refuses the %s with %d %s: %s", what, code, http.StatusText(code), text)
}

// sentence returns the text of one of several errors: a string, or an object with message and code.
func sentence(one any) string {
	if m, ok := one.(map[string]any); ok {
		if code, ok := m["code"].(string); ok {
			return fmt.Sprintf("%v (%s)", m["message"], code)
		}
		return fmt.Sprint(m["message"])
	}
	return fmt.Sprint(one)
}

// masterToken signs a request with the account key.
func masterToken(key, text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return "", errors.New("--key: want base64, as the server's")
	}
	m := hmac.New(sha256.New, raw)
	m.Write([]byte(text))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(m.Sum(nil))), nil
}

// addExplanation adds a page's explanation to the sum of the pages before it.
func addExplanation(sum *sqlapi.Explanation, text string) (*sqlapi.Explanation, error) {
	e := &sqlapi.Explanation{}
	if err := json.Unmarshal([]byte(text), e); err != nil {
		return nil, errors.New("the server doesn't explain queries: it isn't Orrery, or is an older version")
	}
	if sum == nil {
		return e, nil
	}
	sum.Slots = max(sum.Slots, e.Slots)
	sum.Tree.Add(e.Tree)
	for _, n := range []struct {
		to  *int
		add int
	}{{&sum.Entries, e.Entries}, {&sum.Items, e.Items}, {&sum.Bytes, e.Bytes}, {&sum.Matched, e.Matched},
		{&sum.Rows, e.Rows}} {
		*n.to += n.add
	}
	for _, n := range []struct {
		to  *float64
		add float64
	}{{&sum.RU.Total, e.RU.Total}, {&sum.RU.Base, e.RU.Base}, {&sum.RU.Entries, e.RU.Entries},
		{&sum.RU.Items, e.RU.Items}, {&sum.RU.Bytes, e.RU.Bytes}} {
		*n.to += n.add
	}
	return sum, nil
}

// writeExplanation writes an explanation in readable form.
func writeExplanation(w io.Writer, e *sqlapi.Explanation) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s"+format+"\n", append([]any{name}, args...)...)
	}
	line("plan", "%s", e.Plan)
	if e.Tree != nil {
		for step := range strings.Lines(e.Tree.String()) {
			fmt.Fprintf(&b, "        %s", step)
		}
	}
	if len(e.Indexes) > 0 {
		line("indexes", "%s", strings.Join(e.Indexes, ", "))
	}
	line("read", "%d index entries, %d items of %d bytes, in %s", e.Entries, e.Items, e.Bytes, counted(e.Slots, "slot"))
	sorted := ""
	if e.Sorted {
		sorted = ", sorted"
	}
	line("kept", "%d items, %d rows%s", e.Matched, e.Rows, sorted)
	line("charge", "%.2f RU: %.2f base, %.2f entries, %.2f items, %.2f bytes", e.RU.Total, e.RU.Base, e.RU.Entries,
		e.RU.Items, e.RU.Bytes)
	for _, a := range e.Advice {
		line("advice", "%s", a)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
