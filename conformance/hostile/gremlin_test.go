package hostile

import (
	"crypto/tls"
	"encoding/json"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

const graphSON3 = "application/vnd.gremlin-v3.0+json"

func (g *target) ws(t *testing.T) *websocket.Conn {
	t.Helper()
	c, res, err := websocket.DefaultDialer.Dial("ws://"+g.Addr(server.Gremlin)+"/gremlin", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// withMime returns a binary frame.
func withMime(mime string, body []byte) []byte {
	return append(append([]byte{byte(len(mime))}, mime...), body...)
}

// eval returns a request that runs a script.
func eval(t *testing.T, op, script string, args map[string]any) []byte {
	t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["gremlin"] = script
	b, err := json.Marshal(map[string]any{
		"requestId": map[string]any{"@type": "g:UUID", "@value": "11111111-1111-4111-8111-111111111111"}, "op": op,
		"processor": "", "args": args})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// last reads replies until one that isn't partial (206) and returns its code.
func last(t *testing.T, c *websocket.Conn, what string) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(answerTime))
	for {
		_, b, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("%s: no answer: %v", short(what), err)
		}
		var r struct {
			Status struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"status"`
		}
		if json.Unmarshal(b, &r) != nil {
			return 0 // a reply in GraphBinary
		}
		if r.Status.Code != 206 {
			if strings.Contains(strings.ToLower(r.Status.Message), "internal error") {
				t.Errorf("%s: %d %s", short(what), r.Status.Code, r.Status.Message)
			}
			return r.Status.Code
		}
	}
}

func scripts() []string {
	list := []string{"", " ", "g", "g.", "g.V", "g.V(", "g.V()).", "g.V().", "x", "1", "'", "\"", "g.V('",
		"g.V(\"\\u12\")", "g.V().has(", "g.V().nope()", "g.addV(1,2,3)", "g.addV().property()", "g.addE('x')",
		"g.V().by()", "g.V().emit().until()",
		"g.inject(" + strings.Repeat("1,", 50_000) + "1)", "g.V()" + strings.Repeat(".out()", 50_000), "g.inject(" +
			deep("[", "1", "]", 50_000) + ")", "g.inject(" + deep("[a:", "1", "]", 20_000) + ")",
		strings.Repeat("(", 100_000),
		"g.V().where(" + deep("__.not(", "__.out()", ")", 20_000) + ")", "g.inject(1)" +
			strings.Repeat(".map(", 20_000), "g.inject(1).repeat(__.identity()).times(1000000000).limit(0)",
		"g.inject(1).repeat(__.identity())", "g.inject(1).repeat(__.union(__.identity(),__.identity())).times(60)",
		"g.inject(1).emit().repeat(__.math('_+1')).count()", "g.inject(1).math('" + strings.Repeat("(", 20_000) + "')",
		"g.inject(1).math('_/0')", "g.inject(1).math('sin(')", "g.inject(-9223372036854775808).sum()",
		"g.inject(9223372036854775807L,1L).sum()", "g.inject(1e999)", "g.inject(99999999999999999999)",
		"g.V().range(-5,-10)", "g.V().limit(-1)", "g.V().range(9223372036854775807L,1)", "g.inject(1).times(-1)",
		"g.V().hasId([1:2])", "g.V([[[]]])", "g.E([1,2,3])", "g.V().has('a',TextP.regex('(('))", "g.inject('" +
			strings.Repeat("a", 10_000) + "').is(TextP.regex('^(a+)+!$'))",
		"g.V().property('id',1)", "g.addV('x').property(list,'a',[:]).property('pk',null)",
		"g.inject(1).as('a').select('b').by('c')", "g.inject(1).match()", "g.V().group().by(1)", "g.V().order().by(1)",
		"g.inject(1).fold().unfold().path().by().by()", "g.inject(datetime('x'))", "g.inject(new Date())",
		"System.exit(0)", "Thread.sleep(100000)", "g.with('evaluationTimeout', -1).V()", "g.withSack(1).V().sack(sum)",
		"g.withStrategies(x)", "g.V().sideEffect{true}", "g.V().filter{it}", ";;;;", "g.V();g.V()", "// x", "/* x",
		"\x00", "g.V('\xff')", "g.tx().commit()", strings.Repeat("g.V();", 10_000)}
	return list
}

// TestGremlinScripts runs scripts that are malformed, deeply nested, long or endless. Each is answered on the same
// connection within the request's timeout.
func TestGremlinScripts(t *testing.T) {
	g := start(t, false)
	c := g.ws(t)
	if err := c.WriteMessage(websocket.BinaryMessage, withMime(graphSON3, eval(t, "eval", "g.inject(1)", nil))); err !=
		nil {
		t.Fatal(err)
	}
	if code := last(t, c, "a good script"); code != 200 {
		t.Fatalf("a good script: %d", code)
	}
	for _, s := range scripts() {
		began := time.Now()
		if err := c.WriteMessage(websocket.BinaryMessage,
			withMime(graphSON3, eval(t, "eval", s, map[string]any{"evaluationTimeout": 500}))); err != nil {
			t.Fatal(err)
		}
		code := last(t, c, s)
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("%s: %d after %v", short(s), code, d)
		}
	}
	g.serves(t)
}

// TestGremlinFrames sends frames of every mime type with malformed content. Each is answered and the connection stays
// open.
func TestGremlinFrames(t *testing.T) {
	g := start(t, false)
	c := g.ws(t)
	rng := rand.New(rand.NewPCG(5, 6))
	good := eval(t, "eval", "g.inject(x).map(__.identity())", map[string]any{"bindings": map[string]any{"x": map[string]any{"@type": "g:List", "@value": []any{map[string]any{"@type": "g:Int64", "@value": 5}}}}, "aliases": map[string]any{"g": "g"}})
	binary :=
		[]byte(
			"\x81\x11\x11\x11\x11\x11\x11\x41\x11\x81\x11\x11\x11\x11\x11\x11\x11\x00\x00\x00\x04eval\x00\x00\x00\x00\x00\x00\x00\x01\x03\x00\x00\x00\x00\x07gremlin\x03\x00\x00\x00\x00\x0bg.inject(1)")
	bytecode := []byte(`{"requestId":"11111111-1111-4111-8111-111111111111","op":"bytecode","processor":"traversal",` +
		`"args":{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["inject",1],["repeat",{"@type":"g:Bytecode","@value":{"step":[["identity"]]}}],["times",2]]}},"aliases":{"g":"g"}}}`)
	mimes := []string{graphSON3, "application/vnd.gremlin-v2.0+json", "application/json",
		"application/vnd.graphbinary-v1.0", "application/vnd.gryo-v3.0", "", "x", "\xff\xff"}
	frames := [][]byte{{}, {0}, {255}, {5, 'a'}}
	for _, m := range mimes {
		for _, b := range []string{"", "{", "[]", "null", `{"requestId":1}`, `{"requestId":"x","op":"eval"}`,
			`{"requestId":"11111111-1111-4111-8111-111111111111","op":1,"args":[]}`,
			`{"requestId":"11111111-1111-4111-8111-111111111111","op":"close"}`,
			`{"requestId":"11111111-1111-4111-8111-111111111111","op":"authentication","args":{"sasl":1}}`,
			`{"requestId":"11111111-1111-4111-8111-111111111111","op":"authentication","args":{"sasl":"AAAA"}}`,
			`{"requestId":"11111111-1111-4111-8111-111111111111","op":"eval","processor":"session",` +
				`"args":{"gremlin":"g.V()"}}`, deep("[", "", "]", 100_000),
			deep(`{"@type":"g:List","@value":[`, "", "]}", 20_000), deep(`{"a":`, "1", "}", 50_000),
			"\x81" + strings.Repeat("\x00", 200), "\x81" + strings.Repeat("\xff", 200), "\x81" + string(binary[1:40]),
			string(binary[:17]) + "\x00\x00\x00\x04eval\x7f\xff\xff\xff", string(binary[:17]) +
				"\x00\x00\x00\x04eval\x00\x00\x00\x00\x7f\xff\xff\xff",
			string(binary[:33]) + strings.Repeat("\x09\x00\x00\x00\x00\x01", 100_000)} {
			frames = append(frames, withMime(m, []byte(b)))
		}
	}
	for i := range 1500 {
		seed, mime := good, mimes[i%3]
		switch i % 4 {
		case 1:
			seed, mime = binary, mimes[3]
		case 2:
			seed = bytecode
		}
		raw := append([]byte(nil), seed...)
		for range 1 + rng.IntN(4) {
			raw[rng.IntN(len(raw))] = byte(rng.IntN(256))
		}
		frames = append(frames, withMime(mime, raw))
	}
	for _, f := range frames {
		if err := c.WriteMessage(websocket.BinaryMessage, f); err != nil {
			t.Fatalf("%.100q: %v", f, err)
		}
		if last(t, c, string(f)) == 407 { // a challenge after an unexpected authentication
			continue
		}
	}
	g.serves(t)
}

// TestGremlinFlood sends thousands of requests without reading a reply. The server refuses excess requests, limits its
// memory, and serves others.
func TestGremlinFlood(t *testing.T) {
	g := start(t, false)
	before := memory()
	for range 4 {
		c := g.ws(t)
		f :=
			withMime(
				graphSON3, eval(t, "eval", "g.inject(1).repeat(__.identity())",
					map[string]any{"evaluationTimeout": 20, "pad": strings.Repeat("x", 100_000)}))
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		for range 300 {
			if c.WriteMessage(websocket.BinaryMessage, f) != nil {
				break
			}
		}
	}
	if grown := int64(memory()) - int64(before); grown > 400<<20 {
		t.Errorf("%d MiB more", grown>>20)
	}
	g.serves(t)
}

// TestFlood opens 200 connections to each port and stops in the middle of a request, a TLS handshake, or a message with
// a large announced length. Others are served meanwhile, and memory is used only for data that arrived.
func TestFlood(t *testing.T) {
	g := start(t, true)
	before := memory()
	halves := map[string]string{
		server.NoSQL:   "POST /dbs HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n{",
		server.Table:   "POST /Tables HTTP/1.1\r\nHost: h\r\nContent-Le",
		server.Gremlin: "GET /gremlin HTTP/1.1\r\nHost: h\r\nUpgr",
		server.Mongo:   "\xff\xff\x0f\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00abc",
		server.Admin:   "\x16\x03\x01\x3f\xff\x01",
	}
	var conns []net.Conn
	for door, half := range halves {
		for i := range 200 {
			c, err := net.DialTimeout("tcp", g.Addr(door), answerTime)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			if i%4 == 3 {
				half = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
			}
			if _, err := c.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.serves(t)
	if grown := int64(memory()) - int64(before); grown > 150<<20 {
		t.Errorf("%d MiB more for %d idle connections", grown>>20, len(conns))
	}
	for _, c := range conns {
		_ = c.Close()
	}
	for door := range halves {
		for _, raw := range []string{"\x16\x03\x01\x40\x00" + strings.Repeat("\xaa", 0x4000),
			"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "\x80\x2e\x01\x03\x01", "\x16\x03\x03\xff\xff" +
				strings.Repeat("\x00", 70_000)} {
			g.exchange(t, door, []byte(raw), 30*time.Millisecond)
		}
	}
	//nolint:gosec // the certificate isn't what is tested
	c, err := tls.Dial("tcp", g.Addr(server.NoSQL), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("TLS after the garbage: %v", err)
	}
	_ = c.Close()
	g.serves(t)
}

// TestGremlinHalfFrames leaves long frames incomplete, before and after the login. Their memory is limited, and others
// are served.
func TestGremlinHalfFrames(t *testing.T) {
	for _, auth := range []bool{false, true} {
		g := start(t, auth)
		before := memory()
		var conns []*websocket.Conn
		for range 50 {
			c := g.ws(t)
			conns = append(conns, c)
			w, err := c.NextWriter(websocket.BinaryMessage)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
			head := withMime(graphSON3, []byte(`{"requestId":"`))
			if _, err := w.Write(append(head, make([]byte, 4<<20)...)); err != nil {
				t.Fatal(err)
			}
		}
		g.serves(t)
		limit := int64(350 << 20) // 4 MiB in buffers that double
		if auth {
			limit = 100 << 20
		}
		if grown := int64(memory()) - int64(before); grown > limit {
			t.Errorf("auth %v: %d MiB more for %d half frames", auth, grown>>20, len(conns))
		}
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// TestGremlinNobodyReads requests large replies on many connections and reads none. The memory of replies is limited,
// others are served, and the requests end when the clients disconnect.
func TestGremlinNobodyReads(t *testing.T) {
	g := start(t, false)
	before := memory()
	var conns []*websocket.Conn
	for range 40 {
		c := g.ws(t)
		conns = append(conns, c)
		for range 8 {
			f :=
				withMime(
					graphSON3, eval(t, "eval", "g.inject('"+strings.Repeat("x", 20_000)+
						"').emit().repeat(__.identity())", map[string]any{"evaluationTimeout": 60_000}))
			if err := c.WriteMessage(websocket.BinaryMessage, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.serves(t)
	time.Sleep(time.Second)
	if grown := int64(memory()) - int64(before); grown > 300<<20 {
		t.Errorf("%d MiB more for %d clients that don't read", grown>>20, len(conns))
	}
	for _, c := range conns {
		_ = c.Close()
	}
	g.serves(t)
}

// TestGremlinBodies sends HTTP bodies that are incomplete, too long, or have a wrong length.
func TestGremlinBodies(t *testing.T) {
	g := start(t, false)
	for _, x := range []struct{ what, raw, want string }{
		{"half a body", "POST /gremlin HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{\"gremlin\"", ""},
		{"a body too long", "POST /gremlin HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 11000000\r\n\r\n" +
			strings.Repeat(" ", 11_000_000), "413"},
		{"no JSON", "POST /gremlin HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{]", "400"},
		{"not a script", "POST /gremlin HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13\r\n\r\n{\"gremlin\":1}",
			"400"},
		{"another site", "POST /gremlin HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: " +
			"http://evil.example\r\nContent-Length: 2\r\n\r\n{}", "403"},
	} {
		wait := answerTime
		if x.want == "" {
			wait = 300 * time.Millisecond
		}
		raw := strings.Replace(x.raw, "Host:", "Connection: close\r\nHost:", 1)
		got := string(g.exchange(t, server.Gremlin, []byte(raw), wait))
		if !strings.Contains(strings.SplitN(got, "\r\n", 2)[0], x.want) || x.want == "" && got != "" {
			t.Errorf("%s: %.100s", x.what, got)
		}
	}
	g.serves(t)
}
