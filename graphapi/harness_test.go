package graphapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

const (
	testKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
	v2Mime  = "application/vnd.gremlin-v2.0+json"
	v3Mime  = "application/vnd.gremlin-v3.0+json"
	id1     = "11111111-1111-4111-8111-111111111111"
	id2     = "22222222-2222-4222-8222-222222222222"
	id3     = "33333333-3333-4333-8333-333333333333"
)

// fakeGraph evaluates a small test language, so that the protocol is tested without the engine:
//
//	items N   returns the numbers 0..N-1
//	vertex    returns a vertex
//	echo      returns the bindings
//	name      returns the graph's name
//	wait      ends when the request is cancelled, or release is closed
//	error K   fails with one of the failures below
type fakeGraph struct {
	name GraphName
	srv  *fakeGraphs
}

type fakeGraphs struct {
	known   map[GraphName]bool
	release chan struct{}
	started chan string
	errs    map[string]error
}

func (f *fakeGraphs) OpenGraph(_ context.Context, n GraphName, create bool) (Graph, error) {
	if !f.known[n] && !create {
		return nil, status.WithSub(status.NotFound, status.SubOwnerNotFound, "no graph")
	}
	return &fakeGraph{name: n, srv: f}, nil
}

func (g *fakeGraph) Evaluate(ctx context.Context, e *message.Request, emit func(any, int64) error) (run.Stats, error) {
	charge, err := g.evaluate(ctx, e, emit)
	return run.Stats{Charge: charge}, err
}

func (g *fakeGraph) evaluate(ctx context.Context, e *message.Request, emit func(any, int64) error) (float64, error) {
	if e.Bytecode != nil {
		if first := e.Bytecode.Steps[0]; first.Op == "error" {
			return 0, g.srv.errs[first.Args[0].(string)]
		}
		return 1, emit(gvalue.Text(e.Bytecode), 2)
	}
	word, arg, _ := strings.Cut(e.Script, " ")
	switch word {
	case "items":
		n := 0
		fmt.Sscan(arg, &n)
		for i := range n {
			if err := emit(int32(i), 1); err != nil {
				return 2, err
			}
		}
		return 2.5, nil
	case "vertex":
		return 1, emit(
			&gvalue.Vertex{ID: "1", Label: "person", Properties: []gvalue.VertexProperty{
				{ID: "p", Label: "name", Value: "marko"}}}, 1)
	case "bulk":
		return 1, emit("x", 3)
	case "echo":
		m := gvalue.NewMap(0)
		for k, v := range e.Bindings {
			m.Put(k, v)
		}
		m.Put("timeout", e.Timeout.Milliseconds())
		m.Put("tokens", e.Tokens)
		return 1, emit(m, 1)
	case "name":
		return 1, emit(g.name.Database+"/"+g.name.Graph, 1)
	case "wait":
		g.srv.started <- arg
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-g.srv.release:
			return 0, emit("waited "+arg, 1)
		}
	case "partial":
		for i := range 65 {
			if err := emit(int32(i), 1); err != nil {
				return 0, err
			}
		}
		return 3, g.srv.errs[arg]
	case "unsendable":
		return 0, emit(struct{}{}, 1)
	case "panic":
		panic("boom")
	case "error":
		if err := g.srv.errs[arg]; err != nil {
			return 0, err
		}
		return 0, errors.New("secret detail")
	}
	return 0, fail(kindCompile, "Unable to resolve symbol '%s' in the current context.", word)
}

// client is a WebSocket client that reads and writes raw frames.
type client struct {
	t  testing.TB
	ws *websocket.Conn
}

type server struct {
	*Server
	graphs *fakeGraphs
	http   *httptest.Server
}

func newServer(t testing.TB, auth bool) *server {
	g := &fakeGraphs{known: map[GraphName]bool{{"db", "people"}: true}, release: make(chan struct{}),
		started: make(chan string, 1000), errs: map[string]error{}}
	s := &server{graphs: g, Server: NewServer(g, Options{Account: "localhost", Key: testKey, Auth: auth,
		Sources: map[string]GraphName{"gmodern": {"modern", "graph"}}, Clock: clock.New(),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})}
	s.http = httptest.NewServer(s.Server)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Shutdown(ctx)
		s.http.Close()
	})
	return s
}

func (s *server) dial(t testing.TB) *client {
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.http.URL, "http")+"/gremlin", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return &client{t, ws}
}

func (c *client) raw(b []byte) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(mime, body string) {
	c.t.Helper()
	c.raw(append(append([]byte{byte(len(mime))}, mime...), body...))
}

// request sends a GraphSON request with the mime type of version 3.
func (c *client) request(id, op, processor, args string) {
	c.t.Helper()
	c.send(v3Mime, fmt.Sprintf(`{"requestId":%q,"op":%q,"processor":%q,"args":%s}`, id, op, processor, args))
}

func (c *client) eval(script string) {
	c.request(id1, "eval", "", fmt.Sprintf(`{"gremlin":%q}`, script))
}

// answer is a response in any version of GraphSON.
type answer struct {
	RequestID *string `json:"requestId"`
	Status    struct {
		Code       int
		Message    string
		Attributes json.RawMessage
	}
	Result struct{ Data, Meta json.RawMessage }
}

func (c *client) recv() answer {
	c.t.Helper()
	a, err := c.tryRecv()
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *client) tryRecv() (a answer, err error) {
	c.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, b, err := c.ws.ReadMessage()
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%w: %s", err, b)
	}
	return a, nil
}

// want receives one response and checks its code, its id and a part of its text or data.
func (c *client) want(code int, id, part string) answer {
	c.t.Helper()
	a := c.recv()
	got := "null"
	if a.RequestID != nil {
		got = *a.RequestID
	}
	if a.Status.Code != code || got != id || !strings.Contains(a.Status.Message+string(a.Result.Data), part) {
		c.t.Errorf("got %d for %s: %q data %s; want %d for %s with %q", a.Status.Code, got, a.Status.Message,
			a.Result.Data, code, id, part)
	}
	return a
}

func sasl(user, password string) string {
	return fmt.Sprintf(`{"sasl":%q}`, base64.StdEncoding.EncodeToString([]byte("\x00"+user+"\x00"+password)))
}

// login logs in. The challenge is answered with a new id.
func (c *client) login(user string) {
	c.t.Helper()
	c.send(v2Mime, `{"requestId":"`+id1+`","op":"eval","processor":"","args":{"gremlin":"items 0"}}`)
	c.want(407, id1, "SASL")
	c.send(v2Mime, `{"requestId":"`+id2+`","op":"authentication","processor":"traversal","args":`+
		sasl(user, testKey)+`}`)
	if a := c.recv(); a.Status.Code != 204 && a.Status.Code != 200 || *a.RequestID != id1 {
		c.t.Fatalf("login: %+v", a)
	}
}

func benchVertex() *gvalue.Vertex {
	v := &gvalue.Vertex{ID: "vertex-1", Label: "person"}
	for _, name := range []string{"name", "age", "city", "country", "email"} {
		v.Properties = append(v.Properties,
			gvalue.VertexProperty{ID: "11111111-1111-4111-8111-111111111111", Label: name,
				Value: "some value of " + name})
	}
	return v
}
