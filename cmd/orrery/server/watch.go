package server

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/cmd/orrery/explorer"
	"github.com/orrerydb/orrery/internal/observe"
)

// RequestsPath is the path of the recent requests on the admin port. The parameter after names the last one that the
// client has seen.
const RequestsPath = "/orrery/requests"

const (
	watchTime    = 10 * time.Second // how long requests are recorded after somebody has asked for them
	watchedMost  = 500              // requests that are kept
	watchedBytes = 8 << 10          // of a body, and of a reply
)

// watch records requests while somebody asks for them, and does nothing otherwise: then a request costs one load of a
// flag. Both sides of requests of NoSQL and Table are recorded, without credentials. Of requests of MongoDB and Gremlin
// it has what the door tells the observer.
//
// Example: the web page asks for /orrery/requests every second. An SDK's query of NoSQL that is refused with 400 is
// recorded with its headers, its text, and the message of the reply.
type watch struct {
	on atomic.Bool

	mu    sync.Mutex
	until time.Time
	last  int64 // number of the last request
	list  []*WatchedRequest
}

// WatchedRequest is one request in the reply of RequestsPath.
type WatchedRequest struct {
	Number    int64       `json:"n"`
	At        time.Time   `json:"at"`
	API       string      `json:"api"`
	Operation string      `json:"operation"` // the method, for HTTP
	Target    string      `json:"target"`
	Status    string      `json:"status"`
	Charge    float64     `json:"charge"`
	Millis    float64     `json:"ms"`
	Client    string      `json:"client"`
	Left      bool        `json:"left,omitempty"` // the client left before the reply
	Plan      string      `json:"plan,omitempty"` // the query and its plan
	Headers   http.Header `json:"headers,omitempty"`
	Body      string      `json:"body,omitempty"`
	Reply     http.Header `json:"replyHeaders,omitempty"`
	Text      string      `json:"reply,omitempty"`
}

// WatchedRequests is the reply of RequestsPath.
type WatchedRequests struct {
	Last     int64             `json:"last"`
	Requests []*WatchedRequest `json:"requests"` // the oldest first
}

// getRequests returns the requests since the one that the client names, and has further ones recorded for a while. They
// contain data, so it requires the key unless that is public.
func (s *Server) getRequests(c *gin.Context) {
	if s.cfg.Auth && !s.keyIsPublic() && !s.hasKey(c.Request) {
		s.askForKey(c)
		return
	}
	after, err := strconv.ParseInt(c.DefaultQuery("after", "0"), 10, 64)
	if err != nil {
		plain(c.Writer, http.StatusBadRequest, "after is the number of a request\n")
		return
	}
	asJSON(c.Writer, s.seen.watch.since(after))
}

// since returns the requests after one, and goes on recording.
func (w *watch) since(after int64) WatchedRequests {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = wall.Now().Add(watchTime)
	w.on.Store(true)
	at := len(w.list)
	for at > 0 && w.list[at-1].Number > after {
		at--
	}
	return WatchedRequests{w.last, append([]*WatchedRequest{}, w.list[at:]...)}
}

// put keeps a request.
func (w *watch) put(r *WatchedRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wall.Now().After(w.until) { // nobody has asked for a while
		w.on.Store(false)
		w.list = nil
		return
	}
	w.last++
	r.Number = w.last
	if len(w.list) == watchedMost {
		w.list = slices.Delete(w.list, 0, watchedMost/10)
	}
	w.list = append(w.list, r)
}

// done records a request of a door that isn't recorded by recorded.
func (w *watch) done(r *observe.Request) {
	if r.API != Mongo && r.API != Gremlin {
		return
	}
	x := &WatchedRequest{At: wall.Now().Add(-r.Duration), API: r.API, Operation: r.Operation, Target: r.Target,
		Status: r.Status, Charge: r.Charge, Millis: millis(r.Duration), Client: r.Client, Left: r.Left}
	if r.Explain != nil {
		x.Plan = cut(r.Explain())
	}
	w.put(x)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func cut(s string) string { return s[:min(len(s), watchedBytes)] }

// recorded passes a request to a handler and records both sides.
func (w *watch) recorded(api string, h http.Handler, rw http.ResponseWriter, r *http.Request) {
	began := wall.Now()
	rec := &recorder{ResponseWriter: rw}
	body := &headOf{ReadCloser: r.Body}
	in := r.WithContext(withoutValues{r.Context()})
	in.Body = body
	h.ServeHTTP(rec, in)
	out := rec.Header()
	code := rec.code
	if code == 0 {
		code = http.StatusOK
	}
	text := string(rec.kept)
	if api == NoSQL && explorer.OfPermissions(r.URL.EscapedPath()) {
		text = notShown // it has tokens
	}
	charge, _ := strconv.ParseFloat(first(out, "X-Ms-Request-Charge"), 64)
	w.put(&WatchedRequest{At: began, API: api, Operation: r.Method, Target: withoutSignature(r.URL.RequestURI()),
		Status: strconv.Itoa(code), Charge: charge, Millis: millis(wall.Now().Sub(began)), Client: r.RemoteAddr,
		Left: r.Context().Err() != nil, Headers: withoutSecrets(r.Header), Body: string(body.kept),
		Reply: maps.Clone(out), Text: text})
}

// first returns a header whose name may be written in any case: doors write names as the service does.
func first(h http.Header, name string) string {
	for k, v := range h {
		if strings.EqualFold(k, name) && len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

// notShown stands for what proves who a client is.
const notShown = "(not shown)"

// withoutSecrets returns a copy of a request's headers without what proves who the client is.
func withoutSecrets(h http.Header) http.Header {
	out := maps.Clone(h)
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		if _, ok := out[name]; ok {
			out[name] = []string{notShown}
		}
	}
	return out
}

// withoutSignature removes the signature of a shared access signature from a target.
func withoutSignature(target string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok {
		return target
	}
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		if name, _, _ := strings.Cut(p, "="); strings.EqualFold(name, "sig") {
			pairs[i] = name + "=" + notShown
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}

// withoutValues is a request's context whose handlers don't find the connection: they would write headers past the
// recorder.
type withoutValues struct{ context.Context }

// Value implements context.Context.
func (withoutValues) Value(any) any { return nil }

// recorder keeps the beginning of a reply.
type recorder struct {
	http.ResponseWriter
	code int
	kept []byte
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.kept = append(r.kept, b[:min(len(b), watchedBytes-len(r.kept))]...)
	return r.ResponseWriter.Write(b)
}

// headOf keeps the beginning of a body.
type headOf struct {
	io.ReadCloser
	kept []byte
}

// Read implements io.Reader.
func (b *headOf) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.kept = append(b.kept, p[:min(n, watchedBytes-len(b.kept))]...)
	return n, err
}
