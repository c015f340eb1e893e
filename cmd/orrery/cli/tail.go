package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/work"
)

// tailCmd prints the changes of a container as they are made.
type tailCmd struct {
	Endpoint string
	keyFlags
	From        string
	AllVersions bool
	Container   string
}

func (t *tailCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "tail DATABASE/CONTAINER", Short: "Print the changes of a container as they are made.",
		Args: only(func(text string) error { t.Container = text; return nil }),
		RunE: runs(func() error { return t.run(s) })}
	f := cmd.Flags()
	urlVar(f, &t.Endpoint, "endpoint", "", "`URL` of a server's NoSQL API; without it the server of ./data is "+
		"asked, or the one at the default address.")
	t.keyFlags.flags(f)
	f.StringVar(&t.From, "from", "now", "Where to begin: beginning, now, or a `TIME` such as 2026-05-04T12:00:00Z.")
	f.BoolVar(&t.AllVersions, "all-versions", false, "Print every version and every deletion, of a container with a "+
		"changeFeedPolicy.")
	return cmd
}

// Pace of a tail.
const (
	tailPage  = "1000"                 // changes of one page
	tailPoll  = 500 * time.Millisecond // between polls at the end of the feed
	tailRetry = 2 * time.Second        // the longest pause between attempts to reach the server
	tailFirst = 50 * time.Millisecond  // the first such pause
	tailWait  = time.Minute            // for one reply
)

// run prints one change a line until it is interrupted.
func (t *tailCmd) run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return t.follow(ctx, s)
}

// follow reads the feed until ctx ends. A server that can't be reached is tried again, after the first page: the feed
// continues after the last page that was printed completely. So a change may be printed again, but none is left out.
func (t *tailCmd) follow(ctx context.Context, s *streams) (err error) {
	if t.Endpoint, t.Key, err = t.nosqlServer(t.Endpoint); err != nil {
		return err
	}
	f := feedReader{tailCmd: t, client: door.Client(tailWait)}
	if err := f.begin(); err != nil {
		return err
	}
	out, pause := bufio.NewWriter(s.out), time.Duration(0)
	for reached := false; ctx.Err() == nil; {
		more, err := f.page(ctx, out)
		var lost *unreachedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &lost) && reached:
			if pause == 0 {
				fmt.Fprintf(s.errOut, "orrery: %v; trying again\n", err)
			}
			pause = min(max(2*pause, tailFirst), tailRetry)
			work.Sleep(ctx, pause)
			continue
		case err != nil:
			return err
		}
		if pause > 0 {
			fmt.Fprintln(s.errOut, "orrery: the server answers again")
		}
		if reached, pause = true, 0; !more {
			work.Sleep(ctx, tailPoll)
		}
	}
	return nil
}

// unreachedError is an error after which the same request may succeed later.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// feedReader reads the pages of a change feed.
type feedReader struct {
	*tailCmd
	client     *http.Client
	link, path string
	headers    map[string]string
}

// begin reads the flags.
func (f *feedReader) begin() error {
	db, container, ok := strings.Cut(f.Container, "/")
	if !ok || db == "" || container == "" {
		return fmt.Errorf("%s: want DATABASE/CONTAINER", f.Container)
	}
	f.link = "dbs/" + db + "/colls/" + container
	f.path = "/dbs/" + url.PathEscape(db) + "/colls/" + url.PathEscape(container) + "/docs"
	f.headers = map[string]string{"x-ms-version": "2020-11-05", "A-IM": "Incremental feed",
		"x-ms-max-item-count": tailPage}
	if f.AllVersions {
		f.headers["A-IM"] = "Full-Fidelity Feed"
		f.headers["x-ms-cosmos-changefeed-wire-format-version"] = "2021-09-15"
		if f.From != "now" {
			return errors.New("--all-versions: the feed of all versions begins now; it can't be read --from " + f.From)
		}
	}
	switch f.From {
	case "beginning":
	case "now":
		f.headers["If-None-Match"] = "*"
	default:
		if _, ok := isotime.Parse(f.From, isotime.Full); !ok {
			return fmt.Errorf("--from %s: want beginning, now, or a time such as 2026-05-04T12:00:00Z", f.From)
		}
		f.headers["If-Modified-Since"] = f.From
	}
	return nil
}

// page reads a page, prints it and moves behind it. more is false at the end of the feed.
func (f *feedReader) page(ctx context.Context, out *bufio.Writer) (more bool, err error) {
	res, err := f.get(ctx)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false, &unreachedError{unreached(f.Endpoint, err)}
	}
	switch code := res.StatusCode; {
	case code == http.StatusNotModified:
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return false, &unreachedError{refusal("feed", code, body)}
	case code != http.StatusOK:
		return false, refusal("feed", code, body)
	default:
		more = true
		if err := printPage(out, body); err != nil {
			return false, err
		}
	}
	etag := res.Header.Get("etag")
	if etag == "" {
		return false, fmt.Errorf("%s doesn't answer as a change feed", f.Endpoint)
	}
	f.headers["If-None-Match"] = etag
	return more, nil
}

// printPage prints the changes of a page, and nothing of a page that can't be read.
func printPage(out *bufio.Writer, body []byte) error {
	var p struct{ Documents []json.RawMessage }
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("a page of the feed can't be read: %w", err)
	}
	for _, d := range p.Documents {
		_, _ = out.Write(d) // Flush returns the first error
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}

func (f *feedReader) get(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(f.Endpoint, "/")+f.path, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range f.headers {
		req.Header.Set(name, value)
	}
	date := clock.New().Now().Format(http.TimeFormat)
	sig, err := masterToken(f.Key, "get\ndocs\n"+f.link+"\n"+strings.ToLower(date)+"\n\n")
	if err != nil {
		return nil, err
	}
	req.Header.Set("x-ms-date", date)
	req.Header.Set("Authorization", sig)
	res, err := f.client.Do(req)
	if err != nil {
		err = &unreachedError{unreached(f.Endpoint, err)}
	}
	return res, err
}
