package graphapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/graphson"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/fault"
)

// maxHTTPResult limits the single reply to a request over HTTP in bytes: it has no chunks.
const maxHTTPResult = 64 << 20

// serveHTTP evaluates a script and replies in one piece: POST with {"gremlin": .., "bindings": ..} or with a complete
// request message in one of the serializers, or GET with ?gremlin=..&bindings.x=..&aliases.g=.. (bindings are then
// texts). Gremlin Server's HTTP endpoint does the same. Logins are Basic, with the users of a SASL login.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	l := &login{}
	if s.o.Auth {
		user, password, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="gremlin"`)
			httpFail(w, &failure{kind: kindBadLogin, msg: "a user and a password are needed"})
			return
		}
		if err := l.check(r.Context(), s, user, password); err != nil {
			httpFail(w, failureOf(err))
			return
		}
	} else if foreign(r) {
		http.Error(w, "requests of other sites are refused without logins", http.StatusForbidden)
		return
	}
	codec, mime := acceptCodec(r.Header.Get("Accept"), l.service)
	if mime == "" {
		httpFail(w, fail(kindArguments, "no serializer for requested Accept header: %.100s", r.Header.Get("Accept")))
		return
	}
	held := s.o.Budget.Open("request")
	defer held.Close()
	req, err := s.readHTTP(w, r, held)
	if err != nil {
		httpFail(w, failureOf(err))
		return
	}
	s.answerHTTP(w, r, req, l, codec, mime)
}

// deadlines is the wall clock for sockets; the data's clock may be another one.
var deadlines = clock.New()

// readBody reads a body. The server around the handler limits its time. A body that is larger than freeBytes waits for
// memory of the budget.
func readBody(w http.ResponseWriter, r *http.Request, held *budget.Account) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, maxFrame)
	var b []byte
	charged := 0
	for {
		b = slices.Grow(b, bytes.MinRead)
		if cap(b) > freeBytes && cap(b) > charged {
			if err := held.Wait(r.Context(), int64(cap(b)-charged)); err != nil {
				return nil, err
			}
			charged = cap(b)
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		var tooLong *http.MaxBytesError
		switch {
		case err == io.EOF:
			return b, nil
		case errors.As(err, &tooLong):
			return nil, fail(kindTooLarge, "a request may have %d bytes", maxFrame)
		case err != nil:
			return nil, fail(kindMalformed, "the body could not be read")
		}
	}
}

// writeBody sends a reply in pieces with a deadline each: the client may read slowly, but must read.
func writeBody(w http.ResponseWriter, b []byte) error {
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	for len(b) > 0 {
		n := min(len(b), maxChunkBytes)
		_ = control.SetWriteDeadline(deadlines.Now().Add(writeTimeout))
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	if err := control.Flush(); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// foreign reports whether a browser sends the request for a page of another site.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	o := r.Header.Get("Origin")
	if o == "" {
		return false
	}
	u, err := url.Parse(o)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

// acceptCodec selects the serializer of the reply. mime is empty if the client accepts none of them.
func acceptCodec(accept string, service bool) (codec message.Codec, mime string) {
	if accept == "" {
		accept = textMime
	}
	for _, a := range strings.Split(accept, ",") {
		a = strings.ToLower(strings.ReplaceAll(a, " ", ""))
		a, _, _ = strings.Cut(a, ";q=")
		switch a {
		case "*/*", "application/*":
			a = textMime
		case "text/plain":
			return graphson.Codec{Version: 3, Strings: true}, a
		}
		if ser, ok := serializers[a]; ok && ser.refuse == "" {
			return ser.answer(service), a
		}
	}
	return nil, ""
}

// readHTTP reads a request in any of its three forms.
func (s *Server) readHTTP(w http.ResponseWriter, r *http.Request, held *budget.Account) (*message.Request, error) {
	req := &message.Request{ID: s.o.Clock.UUID(), Op: "eval"}
	if r.Method == http.MethodGet {
		req.Args = queryArgs(r.URL.Query())
		return req, nil
	}
	body, err := readBody(w, r, held)
	if err != nil {
		return nil, err
	}
	mime, _, _ := strings.Cut(strings.ToLower(r.Header.Get("Content-Type")), ";")
	if ser, ok := serializers[strings.TrimSpace(mime)]; ok && mime != textMime {
		return ser.codec.ReadRequest(body)
	}
	m, err := graphson.ReadMap(body)
	if err != nil {
		return nil, err
	}
	req.Args = m
	if id, ok := req.String("requestId"); ok && req.ID.UnmarshalText([]byte(id)) != nil {
		return nil, fail(kindArguments, "requestId is not a UUID")
	}
	return req, nil
}

// queryArgs reads the arguments of a GET.
func queryArgs(q url.Values) *gvalue.Map {
	args := gvalue.NewMap(len(q))
	for _, group := range []string{"bindings", "aliases"} {
		m := gvalue.NewMap(0)
		for name, v := range q {
			if key, ok := strings.CutPrefix(name, group+"."); ok {
				m.Put(key, v[0])
			}
		}
		args.Put(group, m)
	}
	for _, name := range []string{"gremlin", "language", "materializeProperties"} {
		if q.Has(name) {
			args.Put(name, q.Get(name))
		}
	}
	return args
}

// answerHTTP evaluates the request and writes all results.
func (s *Server) answerHTTP(w http.ResponseWriter, r *http.Request, req *message.Request, l *login, codec message.Codec,
	mime string) {
	req.Service = l.service
	v, _ := req.Args.GetString("gremlin")
	switch x := v.(type) {
	case string:
		req.Script = x
	case *gvalue.Bytecode:
		req.Bytecode = x
	default:
		httpFail(w, fail(kindArguments, "body must contain a gremlin key with the script"))
		return
	}
	if f := s.readEvaluation(req); f != nil {
		httpFail(w, f)
		return
	}
	op := "eval"
	if req.Bytecode != nil {
		op = "bytecode"
	}
	reply := &reply{c: &conn{srv: s, ctx: r.Context()}, codec: codec, id: req.ID, service: l.service,
		started: s.o.Clock.Now()}
	reply.seen = s.observe(op, r.RemoteAddr)
	reply.seen.evaluates(req)
	all := &collected{codec: codec, o: optionsOf(req),
		held: s.o.Budget.Open("result")}
	defer all.held.Close()
	place := new(admit.Place)
	err := place.Enter(r.Context(), s.o.Gate)
	if err != nil {
		reply.failHTTP(w, failureOf(err))
		return
	}
	err = s.guarded(yield.With(r.Context(), place), func(ctx context.Context) error {
		g, err := s.graphOf(ctx, l, req.Source, reply.seen)
		if err != nil {
			return err
		}
		did, err := g.Evaluate(ctx, req, all.emit)
		reply.seen.evaluated(did)
		reply.charge = did.Charge
		return err
	})
	place.Leave() // a client that reads slowly doesn't block other requests
	if errors.Is(err, fault.ErrLost) {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		reply.failHTTP(w, failureOf(err))
		return
	}
	w.Header().Set("Content-Type", mime)
	resp := message.Response{ID: req.ID, Code: message.Success,
		Attributes: reply.attributes(message.Success, s.o.Clock.UUID())}
	gone := reply.gone()
	if writeBody(w, codec.AppendResponse(nil, &resp, all.items, all.n)) != nil || gone {
		reply.ended(0)
	}
	reply.ended(http.StatusOK)
}

// failHTTP replies with the error of an evaluation.
func (r *reply) failHTTP(w http.ResponseWriter, f *failure) {
	r.failed(f.kind)
	gone, code := r.gone(), httpFail(w, f)
	if gone {
		code = 0
	}
	r.ended(code)
}

// collected has all results of one request.
type collected struct {
	codec   message.Codec
	o       message.Options
	items   []byte
	n       int
	held    *budget.Account // for results that are larger than freeBytes
	charged int
}

// hold reserves memory for the collected results in the budget. They count twice, because they are copied into a
// message.
func (c *collected) hold() error {
	if len(c.items) <= freeBytes {
		return nil
	}
	n := len(c.items) - c.charged
	c.charged = len(c.items)
	return c.held.Grow(2 * int64(n))
}

func (c *collected) emit(v any, bulk int64) error {
	times := bulk
	if c.o.Traversers {
		times = 1
	} else {
		bulk = 1
	}
	for range times {
		if c.n > 0 {
			c.items = c.codec.AppendSeparator(c.items)
		}
		var err error
		if c.items, err = c.codec.AppendItem(c.items, v, bulk, c.o); err != nil {
			return fail(kindResult, "%s", err.Error())
		}
		if err := c.hold(); err != nil {
			return err
		}
		if c.n++; len(c.items) > maxHTTPResult {
			return fail(kindMemory, "the result is longer than %d bytes; ask for it in parts, or over a WebSocket",
				maxHTTPResult)
		}
	}
	return nil
}

// httpFail replies with an error like Gremlin Server: the text, and the Java class that a client may check. It returns
// the status.
func httpFail(w http.ResponseWriter, f *failure) int {
	row := &answers[f.kind]
	code := http.StatusInternalServerError
	switch row.code {
	case message.Malformed, message.InvalidArguments:
		code = http.StatusBadRequest
	case message.Unauthorized, message.Forbidden, message.TooManyRequests:
		code = row.code
	}
	if f.kind == kindTooLarge {
		code = http.StatusRequestEntityTooLarge
	}
	if f.kind == kindUnavailable {
		code = http.StatusServiceUnavailable
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.retryAfter+time.Second-1)/time.Second)))
		w.Header().Set("x-ms-retry-after-ms", strconv.FormatInt(f.retryAfter.Milliseconds(), 10))
	}
	body := map[string]any{"message": f.text(), "Exception-Class": row.exception}
	w.Header().Set("Content-Type", textMime)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
	return code
}
