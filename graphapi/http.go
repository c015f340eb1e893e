package graphapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/orrerydb/orrery/graphapi/graphson"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/message"
)

// maxHTTPResult bounds the one answer that a request over HTTP gets: it has no chunks.
const maxHTTPResult = 64 << 20

// serveHTTP answers a script in one piece: POST with {"gremlin": .., "bindings": ..} or with a whole request message in one of
// the serializers, or GET with ?gremlin=..&bindings.x=..&aliases.g=.. (bindings are then texts). It is what Gremlin Server's
// HTTP endpoint does; logins are Basic, with the users of a SASL login.
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
	req, err := s.readHTTP(w, r)
	if err != nil {
		httpFail(w, failureOf(err))
		return
	}
	s.answerHTTP(w, r, req, l, codec, mime)
}

// foreign reports whether a browser sends the request for another site than this server's own.
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

// acceptCodec chooses the serializer of the answer; mime is empty when there is none for what the client takes.
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

// readHTTP reads the request in any of its three forms.
func (s *Server) readHTTP(w http.ResponseWriter, r *http.Request) (*message.Request, error) {
	req := &message.Request{ID: s.o.Clock.UUID(), Op: "eval"}
	if r.Method == http.MethodGet {
		req.Args = queryArgs(r.URL.Query())
		return req, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFrame))
	if err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, fail(kindTooLarge, "a request may have %d bytes", maxFrame)
		}
		return nil, fail(kindMalformed, "the body could not be read")
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

// answerHTTP evaluates and writes all results.
func (s *Server) answerHTTP(w http.ResponseWriter, r *http.Request, req *message.Request, l *login, codec message.Codec, mime string) {
	e := &Evaluation{Service: l.service}
	v, _ := req.Args.GetString("gremlin")
	switch x := v.(type) {
	case string:
		e.Script = x
	case *gvalue.Bytecode:
		e.Bytecode = x
	default:
		httpFail(w, fail(kindArguments, "body must contain a gremlin key with the script"))
		return
	}
	source, f := readEvaluation(req, e)
	if f != nil {
		httpFail(w, f)
		return
	}
	reply := &reply{c: &conn{srv: s}, codec: codec, id: req.ID, service: l.service, started: s.o.Clock.Now()}
	all := &collected{codec: codec, o: message.Options{Tokens: e.Tokens, Traversers: e.Bytecode != nil}}
	err := s.guarded(r.Context(), func(ctx context.Context) error {
		g, err := s.graphOf(ctx, l, source)
		if err != nil {
			return err
		}
		reply.charge, err = g.Evaluate(ctx, e, all.emit)
		return err
	})
	if err != nil {
		httpFail(w, failureOf(err))
		return
	}
	w.Header().Set("Content-Type", mime)
	resp := message.Response{ID: req.ID, Code: message.Success, Attributes: reply.attributes(message.Success, s.o.Clock.UUID())}
	_, _ = w.Write(codec.AppendResponse(nil, &resp, all.items, all.n))
}

// collected holds all results of one request.
type collected struct {
	codec message.Codec
	o     message.Options
	items []byte
	n     int
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
		if c.n++; len(c.items) > maxHTTPResult {
			return fail(kindMemory, "the result is longer than %d bytes; ask for it in parts, or over a WebSocket", maxHTTPResult)
		}
	}
	return nil
}

// httpFail answers with an error as Gremlin Server does: the text, and the Java class that a client may look for.
func httpFail(w http.ResponseWriter, f *failure) {
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
	body := map[string]any{"message": f.text(), "Exception-Class": row.exception}
	w.Header().Set("Content-Type", textMime)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
