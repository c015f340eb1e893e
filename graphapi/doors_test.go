package graphapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
)

// notes is an Observer that records what it is told.
type notes struct {
	observe.None
	mu    sync.Mutex
	begun int
	list  []string
	added chan struct{}
}

func (n *notes) Begin(string) {
	n.mu.Lock()
	n.begun++
	n.mu.Unlock()
}

func (n *notes) Done(r *observe.Request) {
	n.mu.Lock()
	s := fmt.Sprintf("%s %s %s charge %v target %s", r.API, r.Operation, r.Status, r.Charge, r.Target)
	if r.Failed {
		s += " failed"
	}
	if r.Left {
		s += " left"
	}
	if r.Client == "" || r.Duration < 0 {
		s += " without a client"
	}
	if r.Explain != nil {
		s += " " + strings.ReplaceAll(r.Explain(), "\n", "; ")
	}
	n.list = append(n.list, s)
	n.mu.Unlock()
	n.added <- struct{}{}
}

// next waits for the next request.
func (n *notes) next(t *testing.T) string {
	t.Helper()
	select {
	case <-n.added:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was told")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.list[0]
	n.list = n.list[1:]
	return s
}

func TestObserve(t *testing.T) {
	n := &notes{added: make(chan struct{}, 100)}
	s := newServer(t, true)
	s.o.Observe = n
	s.graphs.errs["full"] = status.New(status.StoreFull, "The disk is full.")
	c := s.dial(t)
	c.login("localhost")
	for _, want := range []string{"gremlin authentication 200 charge 0 target ", "gremlin eval 204 charge 2.5 " +
		"target graphs/g items 0; 0 items read, 0 written"} {
		if got := n.next(t); got != want {
			t.Errorf("login: %s\nwant %s", got, want)
		}
	}
	for _, x := range []struct{ op, args, want string }{
		{"eval", `{"gremlin":"items 100"}`, "gremlin eval 200 charge 2.5 target graphs/g items 100; 0 items read, 0 " +
			"written"},
		{"eval", `{"gremlin":"name","aliases":{"g":"gmodern"}}`, "gremlin eval 200 charge 1 target modern/graph " +
			"name; 0 items read, 0 written"},
		{"eval", `{"gremlin":"nonsense"}`,
			"gremlin eval 597 charge 0 target graphs/g nonsense; 0 items read, 0 written"},
		{"eval", `{"gremlin":"panic"}`, "gremlin eval 500 charge 0 target graphs/g failed panic; 0 items read, 0 " +
			"written"},
		{"eval", `{"gremlin":"error full"}`, "gremlin eval 500 charge 0 target graphs/g failed error full; 0 items " +
			"read, 0 written"},
		{"eval", `{}`, "gremlin eval 499 charge 0 target "},
		{"bytecode", `{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["V"]]}},"aliases":{"g":"g"}}`,
			"gremlin bytecode 200 charge 1 target graphs/g [V()]; 0 items read, 0 written"},
		{"nonsense", `{}`, "gremlin unknown 498 charge 0 target "},
	} {
		c.request(id1, x.op, "", x.args)
		for c.recv().Status.Code == 206 {
		}
		if got := n.next(t); got != x.want {
			t.Errorf("%s %s: %s\nwant %s", x.op, x.args, got, x.want)
		}
	}
	r, _ := http.NewRequest(http.MethodPost, s.http.URL+"/gremlin", strings.NewReader(`{"gremlin":"nonsense"}`))
	r.SetBasicAuth("localhost", testKey)
	if _, err := http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	if got, want := n.next(t), "gremlin eval 500 charge 0 target graphs/g nonsense; 0 items read, 0 written"; got !=
		want {
		t.Errorf("over HTTP: %s\nwant %s", got, want)
	}
	bad := s.dial(t)
	bad.eval("items 0")
	bad.want(407, id1, "")
	bad.request(id2, "authentication", "traversal", sasl("localhost", "wrong"))
	bad.want(401, id1, "")
	if got, want := n.next(t), "gremlin authentication 401 charge 0 target "; got != want {
		t.Errorf("a wrong password: %s\nwant %s", got, want)
	}
	c.eval("wait x")
	<-s.graphs.started
	_ = c.ws.Close()
	if got, want := n.next(t), "gremlin eval left charge 0 target graphs/g left wait x; 0 items read, 0 written"; got !=
		want {
		t.Errorf("who left: %s\nwant %s", got, want)
	}
	if n.begun != 13 {
		t.Errorf("%d requests have begun, want 13", n.begun)
	}
}

// TestLeaving: when a client disconnects, its requests end soon, over WebSocket and over HTTP, and no fault is
// reported.
func TestLeaving(t *testing.T) {
	var logged bytes.Buffer
	s := newServer(t, false)
	s.o.Log = slog.New(slog.NewTextHandler(&logged, nil))
	gone := make(chan struct{})
	c := s.dial(t)
	c.eval("wait a")
	<-s.graphs.started
	_ = c.ws.NetConn().Close()
	ctx, leave := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		s.http.URL+"/gremlin",
		strings.NewReader(`{"gremlin":"wait b"}`),
	)
	go func() {
		defer close(gone)
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-s.graphs.started
	leave()
	<-gone
	for end := time.Now().Add(5 * time.Second); s.Connections() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request runs on")
		}
	}
	s.http.Close() // waits for the request over HTTP
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}

func TestGate(t *testing.T) {
	s := newServer(t, true)
	s.o.Gate = admit.New(admit.Options{Running: 1, Waiting: 0, Wait: 1500 * time.Millisecond})
	c, other := s.dial(t), s.dial(t)
	c.login("localhost")
	other.login("/dbs/db/colls/people")
	c.eval("wait a")
	<-s.graphs.started
	other.send(v2Mime, `{"requestId":"`+id2+`","op":"eval","args":{"gremlin":"items 1"}}`)
	a := other.want(500, id2, "Request rate is large")
	if attribute(t, a, "x-ms-status-code") != float64(429) ||
		!strings.Contains(string(a.Status.Attributes), `"x-ms-retry-after-ms":"00:00:01.5000000"`) {
		t.Errorf("refused with %s", a.Status.Attributes)
	}
	c.request(id3, "eval", "", `{"gremlin":"items 1"}`)
	c.want(429, id3, "more requests than it can answer in time")
	r, _ := http.NewRequest(http.MethodGet, s.http.URL+"/gremlin?gremlin=name", nil)
	r.SetBasicAuth("localhost", testKey)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "2" ||
		res.Header.Get("x-ms-retry-after-ms") != "1500" {
		t.Errorf("over HTTP: %v %v", res, err)
	}
	close(s.graphs.release)
	c.want(200, id1, "waited a")
	c.eval("items 1")
	c.want(200, id1, "")
}

func TestMaxTime(t *testing.T) {
	s := newServer(t, false)
	s.o.MaxTime = 7 * time.Second
	c := s.dial(t)
	for args, want := range map[string]int{`"evaluationTimeout":0`: 7000, `"evaluationTimeout":9000`: 7000,
		`"evaluationTimeout":5`: 5, `"x":1`: 7000} {
		c.request(id1, "eval", "", `{"gremlin":"echo",`+args+`}`)
		c.want(200, id1, fmt.Sprintf(`"timeout",{"@type":"g:Int64","@value":%d}`, want))
	}
}

// TestBytesInFlight: large frames and replies count in the budget. If it is used up, only the request fails, and the
// connection stays open.
func TestBytesInFlight(t *testing.T) {
	s := newServer(t, true)
	b := budget.New(1<<20, 200<<10)
	s.o.Budget = b
	c := s.dial(t)
	c.login("localhost")
	c.eval("items 2000") // 31 chunks
	for c.recv().Status.Code == 206 {
	}
	c.request(id1, "eval", "", `{"gremlin":"items 8000","batchSize":10000}`)
	c.want(500, id1, "may hold")
	c.request(id2, "eval", "", `{"gremlin":"items 1","pad":"`+strings.Repeat("x", 300<<10)+`"}`)
	c.want(500, "null", "may hold")
	c.request(id2, "eval", "", `{"gremlin":"items 1","pad":"`+strings.Repeat("x", 50<<10)+`"}`)
	c.want(200, id2, "")
	for began := time.Now(); b.Used() > 0; time.Sleep(time.Millisecond) {
		// The part of a request is released when its reply is sent.
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d bytes are held", b.Used())
		}
	}
	for range 4 { // the whole budget: each takes four pieces of 64 KiB
		if err := b.Open("request of another").Grow(200 << 10); err != nil {
			t.Fatal(err)
		}
	}
	c.request(id3, "eval", "", `{"gremlin":"items 1","pad":"`+strings.Repeat("x", 150<<10)+`"}`)
	c.want(429, "null", "")
	c.eval("items 1") // small requests aren't counted
	c.want(200, id1, "")
	for _, x := range []struct {
		body string
		code int
	}{{`{"gremlin":"items 8000"}`, http.StatusTooManyRequests}, {`{"gremlin":"items 1"}`, http.StatusOK}} {
		r, _ := http.NewRequest(http.MethodPost, s.http.URL+"/gremlin", strings.NewReader(x.body))
		r.SetBasicAuth("localhost", testKey)
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != x.code {
			t.Errorf("%s over HTTP: %v %v", x.body, res, err)
		}
	}
}

// TestSlowReadersKeepNoPlace: a client that doesn't read its replies occupies no place of a running request.
func TestSlowReadersKeepNoPlace(t *testing.T) {
	s := newServer(t, false)
	s.o.Gate = admit.New(admit.Options{Running: 1, Waiting: 1, Wait: 20 * time.Second})
	slow := []*client{s.dial(t), s.dial(t)}
	for _, c := range slow {
		c.eval("items 300000")
		for c.recv().Status.Code != 206 { // it is under way
		}
	}
	body := strings.NewReader(`{"gremlin":"items 300000","pad":""}`)
	res, err := http.Post(s.http.URL+"/gremlin", "application/json", body) // the reply isn't read
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	began := time.Now()
	c := s.dial(t)
	c.eval("items 1")
	c.want(200, id1, "")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("another client waited %v", took)
	}
	for _, c := range slow {
		for c.recv().Status.Code == 206 {
		}
	}
	for began := time.Now(); s.o.Gate.Running() != 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d places are held", s.o.Gate.Running())
		}
	}
}

// TestBytesAreGivenBack: an idle server holds no memory of the budget, whatever its clients did.
func TestBytesAreGivenBack(t *testing.T) {
	s := newServer(t, false)
	b := budget.New(64<<20, 0)
	s.o.Budget = b
	c := s.dial(t)
	c.request(id1, "eval", "", `{"gremlin":"items 20000","batchSize":10000,"pad":"`+strings.Repeat("x", 100<<10)+`"}`)
	for c.recv().Status.Code == 206 {
	}
	c.request(id1, "eval", "", `{"gremlin":"partial x","pad":"`+strings.Repeat("x", 100<<10)+`"}`)
	for c.recv().Status.Code == 206 {
	}
	res, err := http.Post(
		s.http.URL+"/gremlin",
		"application/json",
		strings.NewReader(`{"gremlin":"items 20000","pad":"`+strings.Repeat("x", 100<<10)+`"}`),
	)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	var answer struct {
		Result struct{ Data json.RawMessage }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Result.Data) < 100_000 {
		t.Errorf("%v, %d bytes", err, len(answer.Result.Data))
	}
	_ = c.ws.Close()
	for end := time.Now().Add(5 * time.Second); b.Used() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held", b.Used())
		}
	}
}

// only returns the server's only connection.
func (s *server) only(t *testing.T) *conn {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for c := range s.conns {
			s.mu.Unlock()
			return c
		}
		s.mu.Unlock()
	}
	t.Fatal("no connection")
	return nil
}

// TestHalfFrames: an incomplete frame that gets no more bytes ends its connection. A slow one doesn't.
func TestHalfFrames(t *testing.T) {
	limit := int(stallTimeout/sweepInterval) + 1
	for _, live := range []bool{false, true} {
		s := newServer(t, false)
		c := s.dial(t)
		w, err := c.ws.NextWriter(websocket.BinaryMessage)
		if err != nil {
			t.Fatal(err)
		}
		half := append([]byte{byte(len(v3Mime))}, v3Mime...)
		part := []byte(strings.Repeat("x", 8<<10)) // more than the client's buffer
		srv := s.only(t)
		got := uint64(0)
		step := func() {
			_, _ = w.Write(part)
			for end := time.Now().Add(5 * time.Second); srv.got.Load() == got; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("nothing comes")
				}
			}
			got = srv.got.Load()
		}
		_, _ = w.Write(half)
		step()
		time.Sleep(20 * time.Millisecond) // until everything has arrived
		srv.sweep()
		for range 3 * limit {
			if live {
				step()
			}
			srv.sweep()
		}
		if closed := srv.ctx.Err() != nil; closed == live {
			t.Errorf("live %v: closed %v", live, closed)
		}
	}
}

// TestLoginIsDue: a connection without the requested login is closed, one that wasn't challenged isn't.
func TestLoginIsDue(t *testing.T) {
	for _, asked := range []bool{false, true} {
		s := newServer(t, true)
		c := s.dial(t)
		srv := s.only(t)
		if asked {
			c.eval("items 0")
			c.want(407, id1, "")
		}
		for range int(loginTimeout/sweepInterval) + 1 {
			srv.sweep()
		}
		if closed := srv.ctx.Err() != nil; closed != asked {
			t.Errorf("asked %v: closed %v", asked, closed)
		}
	}
}

// recorder is a ResponseWriter that records its deadlines.
type recorder struct {
	*httptest.ResponseRecorder
	writes []time.Time
}

func (r *recorder) SetWriteDeadline(at time.Time) error {
	r.writes = append(r.writes, at)
	return nil
}

// dribble is a body that arrives in small pieces.
type dribble struct{ n int }

func (d *dribble) Read(p []byte) (int, error) {
	if d.n--; d.n < 0 {
		return 0, fmt.Errorf("timeout")
	}
	p[0] = '{'
	return 1, nil
}

// TestAnswersHaveDeadlines: each piece of a reply has its own deadline. An incomplete body is refused.
func TestAnswersHaveDeadlines(t *testing.T) {
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/gremlin", &dribble{n: 5})
	if _, err := readBody(w, r, nil); err == nil || failureOf(err).kind != kindMalformed {
		t.Errorf("a body that ends in the middle: %v", err)
	}
	if err := writeBody(w, make([]byte, 3*maxChunkBytes)); err != nil || len(w.writes) != 4 || !w.writes[3].IsZero() ||
		w.Body.Len() != 3*maxChunkBytes {
		t.Errorf("%v, deadlines of 3 writes, and none after: %v", err, w.writes)
	}
}

// TestShutdownWithoutReaders: a client that doesn't read its replies doesn't delay a shutdown.
func TestShutdownWithoutReaders(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	sent := make(chan struct{})
	go func() { // frames that the reading goroutine answers itself, until neither side can send
		defer close(sent)
		for c.ws.WriteMessage(websocket.BinaryMessage, nil) == nil {
		}
	}()
	before := uint64(0)
	for stuck := 0; stuck < 5; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		for conn := range s.conns {
			w := conn.writes.Load()
			if stuck++; w%2 == 0 || w != before {
				stuck = 0
			}
			before = w
		}
		s.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	began := time.Now()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	<-sent
}

// A client that leaves as soon as it has its reply was answered.
func TestAnsweredBeforeLeaving(t *testing.T) {
	n := &notes{added: make(chan struct{}, 1)}
	s := &Server{o: Options{Clock: clock.New(), Observe: n}}
	ctx, leave := context.WithCancel(t.Context())
	r := &reply{c: &conn{srv: s, ctx: ctx}, seen: s.observe("eval", "client")}
	if r.gone() {
		t.Error("the client is said to be gone")
	}
	leave()
	r.ended(message.Success)
	if got := n.next(t); !strings.HasPrefix(got, "gremlin eval 200 ") || strings.Contains(got, "left") || !r.gone() {
		t.Errorf("a client that was answered: %s", got)
	}
}
