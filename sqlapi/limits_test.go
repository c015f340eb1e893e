package sqlapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/admit/admittest"
	"github.com/orrerydb/orrery/internal/observe"
)

// watcher records the requests that it is told.
type watcher struct {
	observe.None
	mu    sync.Mutex
	begun int
	all   []observe.Request
	plans []string
}

func (w *watcher) Begin(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
}

func (w *watcher) Done(r *observe.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	plan := ""
	if r.Explain != nil {
		plan = r.Explain()
	}
	w.all, w.plans = append(w.all, *r), append(w.plans, plan)
}

// last waits for request n, counted from 1. The observer is told of a request after its reply.
func (w *watcher) request(t *testing.T, n int) (observe.Request, string) {
	t.Helper()
	for range 5000 {
		w.mu.Lock()
		if len(w.all) >= n {
			defer w.mu.Unlock()
			return w.all[n-1], w.plans[n-1]
		}
		w.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("request %d has never ended", n)
	return observe.Request{}, ""
}

// limited is a server with limits, the container of withContainer, and a log.
func limited(t *testing.T, o Options, b *budget.Budget) (*api, *bytes.Buffer) {
	t.Helper()
	clk := clock.Fake(testNow)
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Clock: clk, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	var log bytes.Buffer
	o.Account, o.Key, o.Auth, o.Clock, o.Wall, o.Logger = "acct", testKey, true, clk, clk,
		slog.New(slog.NewTextHandler(&log, nil))
	serve := func(o Options) *api {
		s, err := New(e, o)
		if err != nil {
			t.Fatal(err)
		}
		return &api{t, s}
	}
	free := o
	free.MaxTime, free.Gate, free.Observe = 0, nil, nil
	a := serve(free)
	a.do("POST", "/dbs", `{"id":"db"}`).is(201)
	a.do("POST", "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`).is(201)
	for i := range 20 {
		a.do("POST", docs, fmt.Sprintf(`{"id":"%d","pk":"a","n":%d}`, i, i), key("a")).is(201)
	}
	return serve(o), &log
}

// A request that takes too long is a 408 in the service's form, and no server error: as soon as its time is over, or
// before it begins.
func TestMaxTime(t *testing.T) {
	w := &watcher{}
	a, log := limited(t, Options{MaxTime: 20 * time.Millisecond, Observe: w}, nil)
	array := "[" + strings.Repeat("1,", 200) + "1]"
	text := fmt.Sprintf(
		`{"query":"SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE %s) JOIN y IN (SELECT VALUE %s) JOIN z IN (SELECT VALUE %s)"}`,
		array, array, array)
	began := time.Now()
	a.do("POST", docs, text, "x-ms-documentdb-isquery: true", key("a")).is(408).has(`"code":"RequestTimeout"`)
	const long = `REPLICATE(REPLICATE('a', 1000), 500)`
	for _, match := range []string{
		"REGEXMATCH(" + long + ", '(a?){1000}b')", "RegexExtractAll(" + long + ", 'a(.*b)?')"} {
		a.do("POST", docs, `{"query":"SELECT VALUE `+match+` FROM c"}`, "x-ms-documentdb-isquery: true", key("a")).
			is(408).has(`"code":"RequestTimeout"`)
		a.do("PATCH", docs+"/1", `{"condition":"FROM c WHERE IS_ARRAY(`+match+`)",
			"operations":[{"op":"add","path":"/x","value":1}]}`, key("a")).is(408).has(`"code":"RequestTimeout"`)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	if r, plan := w.request(t, 1); r.Status != "408" || r.Failed || r.Left ||
		!strings.Contains(plan, "SELECT VALUE COUNT(1)") {
		t.Errorf("%+v %s", r, plan)
	}

	none, log2 := limited(t, Options{MaxTime: time.Nanosecond}, nil)
	for _, r := range []*reply{
		none.do("GET", docs, "", "a-im: Incremental feed"),
		none.do("POST", docs, `{"id":"new","pk":"a"}`, key("a")),
		none.do("POST", "/dbs/db/colls/c/operations/partitionkeydelete", "", key("a")),
	} {
		r.is(408).has(`"code":"RequestTimeout"`).has("too long")
	}
	none.srv.door.MaxTime = time.Minute
	none.do("GET", docs+"/new", "", key("a")).is(404) // no write is incomplete
	none.do("GET", docs+"/1", "", key("a")).is(200)
	if log.Len()+log2.Len() > 0 {
		t.Errorf("logged: %s%s", log, log2)
	}
}

// Requests above the gate's limit get a 429 at once, with a time to wait. Requests without credentials take no place.
func TestGate(t *testing.T) {
	g := admit.New(admit.Options{Running: 1, Waiting: 0, Wait: 250 * time.Millisecond})
	w := &watcher{}
	a, _ := limited(t, Options{Gate: g, Observe: w}, nil)
	a.do("GET", docs+"/1", "", key("a")).is(200)
	if err := g.Enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := a.do("GET", docs+"/1", "", key("a")).is(429).sub("3200").has(`"code":"TooManyRequests"`)
	if r.h.Get("x-ms-retry-after-ms") != "250" {
		t.Errorf("retry after %q", r.h.Get("x-ms-retry-after-ms"))
	}
	a.do("GET", docs+"/1", "", key("a"), "authorization: x").is(401)
	g.Leave()
	a.do("GET", docs+"/1", "", key("a")).is(200)
	if g.Running() != 0 {
		t.Errorf("%d still run", g.Running())
	}
	if r, _ := w.request(t, 2); r.Status != "429" || r.Failed || r.Operation != "other" {
		t.Errorf("%+v", r)
	}
}

// The data that an observer gets for each request.
func TestObserved(t *testing.T) {
	w := &watcher{}
	a, _ := limited(t, Options{Observe: w}, nil)
	a.do("GET", docs+"/1", "", key("a")).is(200)
	a.do("POST", docs, `{"query":"SELECT * FROM c WHERE c.n > 3"}`, "x-ms-documentdb-isquery: true", key("a")).is(200)
	a.do("GET", docs+"/none", "", key("a")).is(404)
	a.do("GET", "/nothing", "").is(404)
	a.do("DELETE", docs+"/1", "", key("a")).is(204)
	a.do("GET", docs+"/2", "", key("a"), "authorization: x").is(401)
	for i, want := range []observe.Request{
		{Operation: "read item", Status: "200", Target: docs + "/1", Charge: 1},
		{Operation: "query items", Status: "200", Target: docs},
		{Operation: "read item", Status: "404", Target: docs + "/none"},
		{Operation: "other", Status: "404", Target: "/nothing"},
		{Operation: "delete item", Status: "204", Target: docs + "/1"},
		{Operation: "other", Status: "401", Target: docs + "/2"},
	} {
		got, plan := w.request(t, i+1)
		if got.API != "nosql" || got.Operation != want.Operation || got.Status != want.Status ||
			got.Target != want.Target || got.Client != "192.0.2.1:1234" || got.Charge < want.Charge || got.Failed ||
			got.Left || got.Duration <= 0 {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
		if (plan != "") != (want.Operation == "query items") || plan != "" &&
			(!strings.Contains(plan, "WHERE c.n > 3") || !strings.Contains(plan, "items read")) {
			t.Errorf("%d: plan %q", i, plan)
		}
	}
	if w.begun != 6 {
		t.Errorf("%d begun", w.begun)
	}
}

// Clients show what the server's part of a request's time was, and which write a read item is from.
func TestRepliesTellTimeAndWrite(t *testing.T) {
	a, _ := limited(t, Options{Observe: &watcher{}}, nil)
	wrote := a.do("POST", docs, `{"id":"w","pk":"a"}`, key("a")).is(201)
	a.do("POST", docs, `{"id":"later","pk":"a"}`, key("a")).is(201)
	read := a.do("GET", docs+"/w", "", key("a")).is(200)
	if got, lsn := read.h.Get("x-ms-item-lsn"), wrote.h.Get("lsn"); got != lsn || lsn == read.h.Get("lsn") {
		t.Errorf("an item of LSN %s is read with %q, at %s", lsn, got, read.h.Get("lsn"))
	}
	for _, r := range []*reply{wrote, read, a.do("GET", docs+"/none", "", key("a")).is(404),
		a.do("POST", docs, `{"query":"SELECT * FROM c"}`, "x-ms-documentdb-isquery: true", key("a")).is(200)} {
		ms, err := strconv.ParseFloat(r.h.Get("x-ms-request-duration-ms"), 64)
		if err != nil || ms <= 0 || ms > 60_000 {
			t.Errorf("%s: %q ms", r.what, r.h.Get("x-ms-request-duration-ms"))
		}
	}
}

// A client that disconnects before its reply is counted separately, and isn't logged as an error.
func TestClientThatLeaves(t *testing.T) {
	w := &watcher{}
	a, log := limited(t, Options{Observe: w}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, x := range [][2]string{{"GET", ""}, {"POST", `{"query":"SELECT * FROM c"}`}} {
		r := httptest.NewRequestWithContext(ctx, x[0], docs, strings.NewReader(x[1]))
		date := testNow.Format(http.TimeFormat)
		for k, v := range map[string]string{"x-ms-date": date, "authorization": sign(t, testKey, x[0], "docs", "dbs/db/colls/c", date), "x-ms-documentdb-isquery": "true",
			"x-ms-documentdb-query-enablecrosspartition": "true"} {
			r.Header.Set(k, v)
		}
		a.srv.ServeHTTP(httptest.NewRecorder(), r)
	}
	for n := 1; n <= 2; n++ {
		if r, _ := w.request(t, n); !r.Left || r.Failed {
			t.Errorf("%+v", r)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
}

// Bodies count in the memory budget. A body without memory waits unread, and is read when another request has ended.
func TestBodiesWaitForTheBudget(t *testing.T) {
	b := budget.New(3<<20, 0)
	a, _ := limited(t, Options{}, b)
	s := httptest.NewServer(a.srv)
	defer s.Close()
	held := b.Open("test")
	if err := held.Grow(2 << 20); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"id":"big","pk":"a","text":"%s"}`, strings.Repeat("x", 1<<20+100))
	done := make(chan string, 1)
	go func() {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			done <- err.Error()
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, wireRequest(t, "POST", docs, "HTTP/1.1", text, key("a")))
		line := make([]byte, 12)
		_, _ = io.ReadFull(c, line)
		done <- string(line)
	}()
	select {
	case line := <-done:
		t.Fatalf("answered without room: %s", line)
	case <-time.After(50 * time.Millisecond):
	}
	held.Close()
	if line := <-done; line != "HTTP/1.1 201" {
		t.Fatal(line)
	}
	for range 1000 {
		if b.Used() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d bytes are still held", b.Used())
}

// The core's errors for a full disk and for memory have statuses with which SDKs don't retry forever.
func TestErrorsOfResources(t *testing.T) {
	full := status.New(status.StoreFull, "The disk is full: new data is refused until there is room.")
	busy := status.New(status.TooManyRequests, "x")
	busy.RetryAfter = 100 * time.Millisecond
	for _, x := range []struct {
		err   error
		code  int
		sub   string
		retry string
		text  string
	}{
		{full, 403, "", "", "The disk is full: new data is refused until there is room."},
		{status.New(status.MemoryLimit, "A sort may hold 5 bytes of memory, and this one needs more."), 400, "", "",
			"A sort may hold 5 bytes"},
		{busy, 429, "3200", "100", "Request rate is large"},
		{status.New(status.TooManyRequests, "x"), 429, "3200", "1", "Request rate is large"},
		{context.DeadlineExceeded, 408, "", "", "too long"},
		{fmt.Errorf("wrapped: %w", context.Canceled), 408, "", "", "too long"},
	} {
		a := newAPI(t)
		routes{g: &a.srv.gin.RouterGroup, all: &a.srv.lines}.get(
			"/fails", op("fail", masterOnly, func(*call) error { return x.err }))
		r := a.do("GET", "/fails", "").is(x.code).has(x.text)
		if r.h.Get("x-ms-substatus") != x.sub || r.h.Get("x-ms-retry-after-ms") != x.retry {
			t.Errorf("%v: %v", x.err, r.h)
		}
	}
}

// The result of a refused bulk operation says whether and when to send it again.
func TestBulkSaysWhenToTryAgain(t *testing.T) {
	a := withContainer(t)
	busy, full := status.New(status.TooManyRequests, "x"), status.New(status.StoreFull, "The disk is full.")
	busy.RetryAfter = 70 * time.Millisecond
	routes{g: &a.srv.gin.RouterGroup, all: &a.srv.lines}.get("/bulk", op("bulk", masterOnly, func(c *call) error {
		ops := make([]batchOp, 2)
		ops[0].done(core.Result{}, busy)
		ops[1].done(core.Result{}, full)
		return c.sendBatch(nil, ops, http.StatusMultiStatus)
	}))
	a.do("GET", "/bulk", "").is(207).has(`{"statusCode":429,"requestCharge":1.00,"subStatusCode":3200,` +
		`"retryAfterMilliseconds":70,"message":`).
		has(`{"statusCode":403,"requestCharge":1.00,"message":"The disk is full."}`)
}

// A slow reader doesn't block others: its request has left the gate when its reply is sent.
func TestSlowReadersKeepNoPlace(t *testing.T) {
	g := admit.New(admit.Options{Running: 1})
	a, _ := limited(t, Options{Gate: g}, nil)
	w := admittest.Watch(g)
	a.srv.ServeHTTP(w, a.request("GET", docs+"/1", "", key("a")))
	if w.Code != 200 || len(w.Inside) == 0 || w.Inside[0] != 0 || g.Running() != 0 {
		t.Errorf("%d, inside while writing %v, after it %d", w.Code, w.Inside, g.Running())
	}
}

// A slow sender takes no place at the gate: its body is read before the request is admitted.
func TestSlowBodiesHoldNoRoom(t *testing.T) {
	g := admit.New(admit.Options{Running: 1, Waiting: 0, Wait: time.Millisecond})
	a, _ := limited(t, Options{Gate: g}, nil)
	s := httptest.NewServer(a.srv)
	defer s.Close()
	text := `{"id":"slow","pk":"a"}`
	head := wireRequest(t, "POST", docs, "HTTP/1.1", text, key("a"))
	var slow []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, head[:len(head)-5]); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	for range 200 { // wait until they have arrived
		a.do("GET", docs+"/1", "", key("a")).is(200)
		if g.Running() != 0 {
			t.Fatal("half a request is let in")
		}
	}
	line := make([]byte, 12)
	for i, want := range []string{"HTTP/1.1 201", "HTTP/1.1 409"} {
		_, _ = io.WriteString(slow[i], head[len(head)-5:])
		if _, err := io.ReadFull(slow[i], line); err != nil || string(line) != want {
			t.Fatalf("%s %v, want %s", line, err, want)
		}
	}
}

// A request that panics after the beginning of its reply releases its memory and its place at the gate.
func TestPanicGivesBack(t *testing.T) {
	b, g := budget.New(8<<20, 0), admit.New(admit.Options{Running: 2})
	a, log := limited(t, Options{Gate: g, MaxTime: time.Minute}, b)
	routes{g: &a.srv.gin.RouterGroup, all: &a.srv.lines}.post("/panics", op("panic", masterOnly, func(c *call) error {
		if err := c.ReadBody(maxBody); err != nil || b.Used() == 0 || g.Running() != 1 {
			t.Errorf("%v, %d bytes, %d run", err, b.Used(), g.Running())
		}
		if len(c.Body) > 5 {
			_ = c.send(http.StatusOK)
		}
		panic("at once")
	}))
	a.do("POST", "/panics", "early").is(500).has(`"code":"InternalServerError"`)
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the connection goes on")
			}
		}()
		a.do("POST", "/panics", "too late")
	}()
	if b.Used() != 0 || g.Running() != 0 || strings.Count(log.String(), "panicked") != 2 {
		t.Errorf("%d bytes, %d run: %s", b.Used(), g.Running(), log)
	}
}
