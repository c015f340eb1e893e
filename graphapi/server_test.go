package graphapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

func TestEval(t *testing.T) {
	c := newServer(t, false).dial(t)
	for _, x := range []struct {
		name, args string
		code       int
		data       string
	}{
		{"one item", `{"gremlin":"items 1"}`, 200, `{"@type":"g:List","@value":[{"@type":"g:Int32","@value":0}]}`},
		{"nothing", `{"gremlin":"items 0"}`, 204, `{"@type":"g:List","@value":[]}`},
		{"bulk is unrolled", `{"gremlin":"bulk"}`, 200, `{"@type":"g:List","@value":["x","x","x"]}`},
		{"args as g:Map", `{"@type":"g:Map","@value":["gremlin","name"]}`, 200, `["graphs/g"]`},
		{"binding", `{"gremlin":"echo","bindings":{"x":1}}`, 200, `["x",{"@type":"g:Int32","@value":1},"timeout",` +
			`{"@type":"g:Int64","@value":30000},"tokens",false]`},
		{"null bindings", `{"gremlin":"name","bindings":null}`, 200, `graphs/g`},
		{"timeout", `{"gremlin":"echo","evaluationTimeout":5}`, 200, `"@value":5}`},
		{"old timeout", `{"gremlin":"echo","scriptEvaluationTimeout":0}`, 200, `"timeout",{"@type":"g:Int64",` +
			`"@value":0}`},
		{"tokens", `{"gremlin":"echo","materializeProperties":"tokens"}`, 200, `"tokens",true`},
		{"alias", `{"gremlin":"name","aliases":{"g":"gmodern"}}`, 200, `modern/graph`},
		{"alias of a graph", `{"gremlin":"name","aliases":{"g":"db/people"}}`, 200, `db/people`},
		{"alias like a login", `{"gremlin":"name","aliases":{"g":"/dbs/db/colls/people"}}`, 200, `db/people`},
		{"unknown alias", `{"gremlin":"name","aliases":{"g":"h"}}`, 499,
			`Could not alias [g] to [h] as [h] not in the Graph or TraversalSource global bindings`},
		{"unknown graph", `{"gremlin":"name","aliases":{"g":"db/nobody"}}`, 500, `Owner resource does not exist`},
		{"two aliases", `{"gremlin":"name","aliases":{"g":"g","h":"g"}}`, 499, `one alias assignment`},
		{"alias to a number", `{"gremlin":"name","aliases":{"g":1}}`, 499, `names of traversal sources`},
		{"no script", `{}`, 499, `requires a [gremlin] argument`},
		{"script is a number", `{"gremlin":1}`, 499, `requires a [gremlin] argument`},
		{"reserved binding", `{"gremlin":"name","bindings":{"id":1}}`, 499,
			`invalid parameters key of [id] - these are reserved names.`},
		{"binding without a name", `{"gremlin":"name","bindings":{"@type":"g:Map","@value":[1,1]}}`, 499,
			`must be of type String`},
		{"can't be serialized", `{"gremlin":"unsendable"}`, 599, `can't be sent`},
		{"panic", `{"gremlin":"panic"}`, 500, `internal error`},
	} {
		t.Run(x.name, func(t *testing.T) {
			c.t = t
			c.request(id1, "eval", "", x.args)
			c.want(x.code, id1, x.data)
		})
	}
}

// gremlinpython before 3.7 can't read properties of elements in GraphBinary: it gets none.
func TestElementsOfOldPython(t *testing.T) {
	s := newServer(t, false)
	for agent, want := range map[string]bool{
		"NotAvailable Gremlin-Python.3.6.8 3.11.7 Linux.6.1 x86_64": true,
		"app Gremlin-Python.3.5.8 3.8.0 Linux.6.1 x86_64":           true,
		"NotAvailable Gremlin-Python.3.7.0 3.11.7 Linux.6.1 x86_64": false,
		"NotAvailable Gremlin-Javascript.3.6.8 20 Linux x64":        false,
		"": false,
	} {
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.http.URL, "http")+"/gremlin",
			http.Header{"User-Agent": {agent}})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t, ws}
		c.eval("echo")
		c.want(200, id1, `"tokens",false`) // in GraphSON it can read them
		c.send(defaultMime, "\x81"+strings.Repeat("\x01", 16)+"\x00\x00\x00\x04eval\x00\x00\x00\x00\x00\x00\x00\x01"+
			"\x03\x00\x00\x00\x00\x07gremlin\x03\x00\x00\x00\x00\x04echo")
		_, b, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(b), "tokens")
		if !found || strings.HasPrefix(after, "\x27\x00\x01") != want {
			t.Errorf("%q: %q", agent, b)
		}
		ws.Close()
	}
}

func TestOperations(t *testing.T) {
	c := newServer(t, false).dial(t)
	const bytecode = `{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["V"]]}},"aliases":{"g":"g"}}`
	for _, x := range []struct {
		op, processor, args string
		code                int
		part                string
	}{
		{"bytecode", "traversal", bytecode, 200, `[{"@type":"g:Traverser","@value":{"bulk":{"@type":"g:Int64",` +
			`"@value":2},"value":"[V()]"}}]`},
		{"bytecode", "session", `{"session":"s",` + bytecode[1:], 200, `g:Traverser`},
		{"bytecode", "traversal", `{"gremlin":"g.V()"}`, 499, "of type Bytecode"},
		{"eval", "session", `{"session":"s","gremlin":"items 1"}`, 200, `"@value":0`},
		{"eval", "session", `{"session":{"@type":"g:UUID","@value":"` + id3 + `"},"gremlin":"items 1"}`, 200,
			`"@value":0`},
		{"eval", "session", `{"gremlin":"items 1"}`, 499, "requires a [session] argument"},
		{"close", "session", `{"session":"s"}`, 204, `[]`},
		{"close", "", `{}`, 499, "requires a [session] argument"},
		{"eval", "nothing", `{}`, 499, "Invalid OpProcessor requested [nothing]"},
		{"eval", "traversal", `{}`, 499, "Invalid OpProcessor requested [traversal]"},
		{"invalid", "", `{}`, 498, "could not be parsed"},
		{"dance", "", `{}`, 498, "op code [dance] is not recognized"},
		{"authentication", "", `{}`, 499, "needs no authentication"},
	} {
		c.request(id1, x.op, x.processor, x.args)
		c.want(x.code, id1, x.part)
	}
}

func TestChunks(t *testing.T) {
	c := newServer(t, false).dial(t)
	for _, x := range []struct {
		n, batch int
		codes    []int
	}{
		{64, 0, []int{200}}, {65, 0, []int{206, 200}}, {10, 5, []int{206, 200}}, {11, 5, []int{206, 206, 200}},
		{3, -1, []int{200}},
	} {
		c.request(id1, "eval", "", fmt.Sprintf(`{"gremlin":"items %d","batchSize":%d}`, x.n, x.batch))
		items, charge := 0, 0.0
		for _, code := range x.codes {
			a := c.want(code, id1, "")
			items += strings.Count(string(a.Result.Data), "g:Int32")
			charge += attribute(t, a, "x-ms-request-charge")
			if code == 200 && attribute(t, a, "x-ms-total-request-charge") != 2.5 {
				t.Errorf("total charge: %s", a.Status.Attributes)
			}
		}
		if items != x.n || charge != 2.5 {
			t.Errorf("%d items with charge %v, want %d with 2.5", items, charge, x.n)
		}
	}
}

// A malformed frame gets a reply, and the connection stays open.
func TestMalformedFrames(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	for _, b := range []string{"", "\x21app", "\x00", "\xff" + strings.Repeat("x", 255),
		"\x20application/vnd.graphbinary-v1.0\x82"} {
		c.raw([]byte(b))
		c.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, got, err := c.ws.ReadMessage()
		if err != nil || len(got) < 10 || got[0] != 0x81 || got[1] != 1 || got[4] != 498>>8 || got[5] != 498&0xff {
			t.Errorf("%q: got %x %v", b, got, err)
		}
	}
	for _, body := range []string{"", "{", "[]", `{"requestId":1}`, `{"requestId":"x","op":"eval"}`} {
		c.send(v2Mime, body)
		c.want(498, "null", "GraphSON")
	}
	c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","args":{"x":{"@type":"g:Int32","@value":"?"}}}`)
	c.want(498, id1, "not an integer")
	c.eval("items 1")
	c.want(200, id1, "")
}

// The reply has the serializer and frame kind of the request.
func TestSerializers(t *testing.T) {
	s := newServer(t, false)
	body := `{"requestId":"` + id1 + `","op":"eval","processor":"","args":{"gremlin":"vertex"}}`
	typed, plain, old := `"@type":"g:Vertex"`,
		`{"id":"1","label":"person","properties":{"name":[{"id":"p","value":"marko","label":"name"}]}}`,
		`{"id":"1","label":"person","type":"vertex","properties":{"name":[{"id":"p","value":"marko"}]}}`
	for mime, part := range map[string]string{
		v2Mime: typed, v3Mime: `"@type":"g:List"`, "application/json": typed, "Application/JSON": typed,
		"application/vnd.gremlin-v1.0+json": old, v2Mime + ";types=false": plain, v3Mime + "; types=false": plain, v2Mime + "-stringd": `"v[1]"`,
	} {
		c := s.dial(t)
		c.send(mime, body)
		c.want(200, id1, part)
	}
	c := s.dial(t)
	c.ws.WriteMessage(websocket.TextMessage, []byte(body))
	typ, b, err := c.ws.ReadMessage()
	if err != nil || typ != websocket.TextMessage || !strings.Contains(string(b), typed) {
		t.Errorf("text frame: %d %s %v", typ, b, err)
	}
	for _, mime := range []string{"application/vnd.gryo-v3.0", "application/unknown"} {
		c.send(mime, body)
		typ, b, err := c.ws.ReadMessage()
		if err != nil || typ != websocket.BinaryMessage || b[0] != 0x81 {
			t.Errorf("%s: %d %q %v", mime, typ, b, err)
		}
	}
}

// While a traversal runs, pings are answered and other requests run.
func TestPingWhileRunning(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	c.request(id1, "eval", "", `{"gremlin":"wait a"}`)
	<-s.graphs.started
	pong := make(chan struct{})
	c.ws.SetPongHandler(func(string) error { close(pong); return nil })
	c.ws.WriteMessage(websocket.PingMessage, []byte("x"))
	c.request(id2, "eval", "", `{"gremlin":"items 1"}`)
	c.want(200, id2, "")
	select {
	case <-pong:
	default:
		t.Error("no pong before the answer that was asked for after the ping")
	}
	close(s.graphs.release)
	c.want(200, id1, "waited a")
}

func TestTooManyAtATime(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	for i := range maxPending + 3 {
		c.request(fmt.Sprintf("%08d-1111-4111-8111-111111111111", i), "eval", "", `{"gremlin":"wait"}`)
	}
	for i := maxPending; i < maxPending+3; i++ {
		c.want(429, fmt.Sprintf("%08d-1111-4111-8111-111111111111", i), "too many requests")
	}
	for range maxRunning {
		<-s.graphs.started
	}
	select {
	case <-s.graphs.started:
		t.Errorf("more than %d running", maxRunning)
	default:
	}
	close(s.graphs.release)
	for range maxPending {
		if a := c.recv(); a.Status.Code != 200 {
			t.Fatalf("got %+v", a)
		}
	}
}

// The requests of a session run one after another, even if they are sent at once.
func TestSessionOrder(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	const n = 3 * maxRunning
	for i := range n {
		c.request(id1, "eval", "session", fmt.Sprintf(`{"session":"s","gremlin":"wait %d"}`, i))
	}
	c.request(id2, "close", "session", `{"session":"s"}`)
	if first := <-s.graphs.started; first != "0" {
		t.Errorf("%s was first", first)
	}
	select {
	case next := <-s.graphs.started:
		t.Errorf("%s started beside the first", next)
	case <-time.After(20 * time.Millisecond):
	}
	close(s.graphs.release)
	for i := range n {
		c.want(200, id1, fmt.Sprintf(`"waited %d"`, i))
	}
	c.want(204, id2, "")
}

func TestSessionLimit(t *testing.T) {
	c := newServer(t, false).dial(t)
	for i := range maxSessionsOnConn {
		c.request(id1, "eval", "session", fmt.Sprintf(`{"session":"s%d","gremlin":"items 0"}`, i))
		c.want(204, id1, "")
	}
	c.request(id1, "eval", "session", `{"session":"one more","gremlin":"items 0"}`)
	c.want(429, id1, "too many sessions")
}

func TestFrameTooLong(t *testing.T) {
	c := newServer(t, false).dial(t)
	c.raw(make([]byte, maxFrame+300))
	if _, _, err := c.ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("got %v, want close 1009", err)
	}
}

func TestHTTPErrors(t *testing.T) {
	s := newServer(t, false)
	for path, want := range map[string]int{"/gremlin": 426, "/": 426, "/other": 404} {
		r, err := http.Get(s.http.URL + path)
		if err != nil || r.StatusCode != want {
			t.Errorf("%s: got %v %v, want %d", path, r.StatusCode, err, want)
		}
		r.Body.Close()
	}
	h := http.Header{"Origin": {"https://evil.example"}}
	if _, r, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.http.URL, "http")+"/gremlin", h); err ==
		nil || r.StatusCode != 403 {
		t.Errorf("a foreign origin was let in without a login: %v", err)
	}
}

// Shutdown lets a running request answer, refuses new ones and closes.
func TestShutdown(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	c.request(id1, "eval", "", `{"gremlin":"wait a"}`)
	<-s.graphs.started
	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	for {
		c.request(id2, "eval", "", `{"gremlin":"items 1"}`)
		if a := c.recv(); a.Status.Code == message.Temporary {
			break
		}
	}
	close(s.graphs.release)
	c.want(200, id1, "waited a")
	if _, err := c.tryRecv(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("got %v, want close 1001", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.Connections() != 0 {
		t.Errorf("%d connections left", s.Connections())
	}
}

// When Shutdown's time is over, it cancels running requests and leaves nothing behind.
func TestShutdownCancels(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	c.request(id1, "eval", "", `{"gremlin":"wait a"}`)
	<-s.graphs.started
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if s.Connections() != 0 {
		t.Errorf("%d connections left", s.Connections())
	}
}

// When a client disconnects, its requests end.
func TestClientGone(t *testing.T) {
	s := newServer(t, false)
	c := s.dial(t)
	c.request(id1, "eval", "", `{"gremlin":"wait a"}`)
	<-s.graphs.started
	c.ws.Close()
	for s.Connections() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// The sweep closes a connection only after the full idle time, or the full write time of one write.
func TestSweep(t *testing.T) {
	s := newServer(t, false)
	for _, stuck := range []bool{false, true} {
		c := newConn(s.Server, s.dial(t).ws, &sender{})
		limit := int(idleTimeout / sweepInterval)
		if stuck {
			limit = int(writeTimeout / sweepInterval)
			c.writes.Add(1)
			c.sweep()             // sees that the write has begun
			for range 3 * limit { // slow, but with progress
				c.out.pieces.Add(1)
				c.sweep()
			}
		}
		for range limit {
			c.sweep()
		}
		if c.ctx.Err() != nil {
			t.Errorf("stuck %v: closed too early", stuck)
		}
		c.sweep()
		if c.ctx.Err() == nil {
			t.Errorf("stuck %v: not closed", stuck)
		}
	}
}

// FuzzFrame: for any frame there is no panic, and a codec is found.
func FuzzFrame(f *testing.F) {
	for mime := range serializers {
		f.Add(append(append([]byte{byte(len(mime))}, mime...), `{"requestId":"`+id1+`"}`...))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		mime, body, ok := splitFrame(b)
		if !ok {
			return
		}
		if _, err := lookup(mime).answer(false).ReadRequest(body); err != nil {
			failureOf(err)
		}
	})
}
