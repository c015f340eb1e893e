package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// forms are the attacks of the matrix on the form of requests: lengths, compression, names.
var forms = []attack{
	{name: "a message that drips", auth: true, at: func(door string) cell {
		return cell{try: func(t *testing.T, g *target) { dripsHead(t, g, door) }}
	}},
	{name: "a head without end", at: func(door string) cell {
		if door == server.Mongo {
			return not("its heads have 16 bytes")
		}
		return cell{try: func(t *testing.T, g *target) { endlessHead(t, g, door) }}
	}},
	{name: "lengths that can't be", at: func(door string) cell {
		return cell{try: func(t *testing.T, g *target) {
			for _, raw := range wrongLengths(g, door) {
				out := g.exchange(t, door, raw, answerTime/16)
				if n := bytes.Count(out, []byte("HTTP/1.1 ")); serverFault(string(out)) || n > 1 {
					t.Errorf("%.200q: %d answers, %.200q", raw, n, out)
				}
			}
		}}
	}},
	{name: "much in little", at: func(door string) cell {
		if door == server.Admin {
			return not("it takes no bodies")
		}
		return cell{try: func(t *testing.T, g *target) { bomb(t, g, door) }}
	}},
	{name: "names that break texts", at: func(door string) cell {
		if door == server.Admin {
			return not("it takes no bodies")
		}
		return cell{try: func(t *testing.T, g *target) { oddNames(t, g, door) }}
	}},
	{name: "WebSocket frames that can't be", at: webSocketOnly(brokenFrames)},
	{name: "WebSocket pings without end", at: webSocketOnly(endlessPings)},
	{name: "a WebSocket message in a hundred thousand pieces", at: webSocketOnly(manyPieces)},
}

// webSocketOnly is an attack for the only door with WebSockets.
func webSocketOnly(try func(t *testing.T, g *target)) func(door string) cell {
	return func(door string) cell {
		if door != server.Gremlin {
			return not("it speaks no WebSocket")
		}
		return cell{try: try}
	}
}

// dripsHead sends the beginning of a request byte by byte without long pauses. The complete head must arrive in time.
func dripsHead(t *testing.T, g *target, door string) {
	raw := brings(g, door, "half")
	c := g.dial(t, door)
	for began := time.Now(); ; time.Sleep(patience / 20) {
		if _, err := c.Write(raw[:1]); err != nil {
			return
		}
		if raw = raw[1:]; time.Since(began) > answerTime*3/4 {
			t.Fatalf("still connected after %v of single bytes", time.Since(began))
		}
	}
}

// endlessHead sends header lines until the server ends the connection.
func endlessHead(t *testing.T, g *target, door string) {
	before := memory()
	c := g.dial(t, door)
	_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n", g.Addr(door))
	line := []byte("X-Line: " + strings.Repeat("x", 1000) + "\r\n")
	sent := 0
	for ; sent < 64<<20; sent += len(line) {
		if _, err := c.Write(line); err != nil {
			break
		}
	}
	if sent >= 64<<20 {
		t.Errorf("the server took %d MiB of header lines", sent>>20)
	}
	if grown := int64(memory()) - int64(before); grown > 32<<20 {
		t.Errorf("a head without end holds %d MiB", grown>>20)
	}
}

// wrongLengths returns requests with contradictory or malformed lengths.
func wrongLengths(g *target, door string) (out [][]byte) {
	if door == server.Mongo {
		for _, n := range []int32{-1 << 31, -1, 0, 1, 15, 48_000_001, 1<<31 - 1} {
			b := frame(2013, 16, make([]byte, 64))
			binary.LittleEndian.PutUint32(b, uint32(n))
			out = append(out, b)
		}
		return out
	}
	head := "POST / HTTP/1.1\r\nHost: " + g.Addr(door) + "\r\nContent-Type: application/json\r\n"
	for _, n := range []string{"-1", "+5", "0x5", "5, 6", "5\r\nContent-Length: 6", "5 5", "", "1e3",
		"9223372036854775807",
		"99999999999999999999"} {
		out = append(out, []byte(head+"Content-Length: "+n+"\r\n\r\n{}   "))
	}
	for _, n := range []string{"-1", "ffffffffffffffffff", "7fffffffffffffff", "g", "",
		"5;" + strings.Repeat("x", 100_000)} {
		out = append(out, []byte(head+"Transfer-Encoding: chunked\r\n\r\n"+n+"\r\n{}   \r\n0\r\n\r\n"))
	}
	return append(out, []byte(head+"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
		[]byte(head+"Transfer-Encoding: gzip\r\n\r\n{}"))
}

// packed is the number of spaces that zipped contains.
const packed = 64 << 20

var zipped = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range packed >> 20 {
		_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	}
	_ = z.Close()
	return b.Bytes()
})

// bomb sends a small compressed body that decompresses to a large one.
func bomb(t *testing.T, g *target, door string) {
	body := zipped()
	before := memory()
	var raw []byte
	if door == server.Mongo { // an OP_COMPRESSED: the original op code, the length, the compressor, the data
		body = binary.LittleEndian.AppendUint32(nil, 2013)
		body = append(binary.LittleEndian.AppendUint32(body, 47<<20), 2)
		raw = bytes.Repeat(frame(2012, 0, append(body, make([]byte, 4096)...)), 5)
	} else {
		raw = bytes.Replace(brings(g, door, "half"), []byte("\r\nContent-Length"),
			[]byte("\r\nContent-Encoding: gzip\r\nContent-Length"), 1)
		head := raw[:bytes.Index(raw, []byte("Content-Length"))]
		raw = append(fmt.Appendf(bytes.Clone(head), "Content-Length: %d\r\n\r\n", len(body)), body...)
	}
	out := g.exchange(t, door, raw, answerTime/8)
	if code := status(out); door != server.Mongo && (code < 400 || code >= 500) {
		t.Errorf("got %d", code)
	}
	if grown := int64(memory()) - int64(before); grown > 32<<20 {
		t.Errorf("a body that stands for %d MiB has left %d", packed>>20, grown>>20)
	}
	g.nothingWritten(t)
}

// oddNames sends names and texts with characters that end or break texts of other languages. If they are accepted, all
// items must still be readable as JSON.
func oddNames(t *testing.T, g *target, door string) {
	for i, name := range []string{`\u0000`, `a\u0000b`, `\ud800`, `\udc00\ud800`, ``, `.`, `a.b`, `$a`, `a/b`,
		`__proto__`, `\u2028`, "\xff", "\xed\xa0\x80"} {
		id := fmt.Sprintf("%s-%d", door, i)
		value := `"` + name + `"`
		body := `{"id":"` + id + `","pk":"odd","` + name + `":` + value + `}`
		switch door {
		case server.Table:
			body = `{"PartitionKey":"odd","RowKey":"` + id + `","` + name + `":` + value + `}`
		case server.Gremlin:
			body = `{"gremlin":"g.addV('odd').property(k, v)","bindings":{"k":` + value + `,"v":` + value + `}}`
		case server.Mongo:
			text := strings.NewReplacer(
				`\u0000`,
				"",
				`\ud800`,
				"\xed\xa0\x80",
				`\udc00`,
				"\xed\xb0\x80",
				`\u2028`,
				"\u2028",
			).Replace(name)
			doc := bson.D{{Key: "_id", Value: id}, {Key: "pk", Value: "odd"}, {Key: text, Value: text}}
			raw := msg(encode(t, bson.D{
				{Key: "insert", Value: "items"},
				{Key: "documents", Value: bson.A{doc}},
				{Key: "$db", Value: "shop"},
			}))
			if out := g.exchange(t, door, raw, answerTime/40); bytes.Contains(out, []byte("internal error")) ||
				len(out) == 0 {
				t.Errorf("%q: %.200q", name, out)
			}
			continue
		}
		path := map[string]string{server.NoSQL: "/dbs/shop/colls/items/docs", server.Table: "/people",
			server.Gremlin: "/gremlin"}[door]
		code, text := g.do(
			t,
			door,
			http.MethodPost,
			path,
			body,
			"Content-Type",
			"application/json",
			"x-ms-documentdb-partitionkey",
			`["odd"]`,
		)
		if (code >= 500 && door != server.Gremlin) || code == 0 || strings.Contains(text, "internal error") {
			t.Errorf("%q: %d %.200s", name, code, text)
		}
	}
	for door, path := range map[string]string{server.NoSQL: "/dbs/shop/colls/items/docs", server.Table: "/people()"} {
		code, text := g.do(t, door, http.MethodGet, path, "", "Accept", "application/json;odata=nometadata")
		if code != http.StatusOK || !json.Valid([]byte(text)) {
			t.Errorf("%s can't be read afterwards: %d %.300q", door, code, text)
		}
	}
}

// upgrade opens a WebSocket by hand and returns the connection for frames.
func upgrade(t *testing.T, g *target) io.ReadWriteCloser {
	t.Helper()
	c := g.dial(t, server.Gremlin)
	_, _ = fmt.Fprintf(c, "GET /gremlin HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", g.Addr(server.Gremlin))
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
	}
	if status(head) != http.StatusSwitchingProtocols {
		t.Fatalf("%.200q", head)
	}
	return c
}

// wsFrame returns a masked frame of up to 125 bytes, with a mask of zeros.
func wsFrame(first byte, body string) []byte {
	return append([]byte{first, 0x80 | byte(len(body)), 0, 0, 0, 0}, body...)
}

// brokenFrames: the server ends the connection immediately.
func brokenFrames(t *testing.T, g *target) {
	zeros := string(make([]byte, 200))
	for what, raw := range map[string]string{
		"no mask":                 "\x82\x05hello",
		"reserved op code":        string(wsFrame(0x83, "hello")),
		"reserved bit":            string(wsFrame(0xc2, "hello")),
		"continues nothing":       string(wsFrame(0x80, "hello")),
		"a message in a message":  string(wsFrame(0x02, "a")) + string(wsFrame(0x82, "b")),
		"a ping in pieces":        string(wsFrame(0x09, "a")),
		"a ping of 126 bytes":     "\x89\xfe\x00\x7e" + zeros,
		"a length above 2^63":     "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff" + zeros,
		"a length of 2^62":        "\x82\xff\x40\x00\x00\x00\x00\x00\x00\x00" + zeros,
		"a close of one byte":     string(wsFrame(0x88, "a")),
		"a close of no such code": string(wsFrame(0x88, "\x00\x01")),
	} {
		c := upgrade(t, g)
		began := time.Now()
		_, _ = io.WriteString(c, raw)
		if _, err := io.Copy(io.Discard, c); isTimeout(err) {
			t.Errorf("%s: still open after %v", what, time.Since(began))
		}
		_ = c.Close()
	}
}

// endlessPings sends pings and doesn't read the pongs.
func endlessPings(t *testing.T, g *target) {
	before := memory()
	c := upgrade(t, g)
	pings := bytes.Repeat(wsFrame(0x89, strings.Repeat("p", 125)), 1000)
	for began := time.Now(); time.Since(began) < time.Second; {
		if _, err := c.Write(pings); err != nil {
			break
		}
	}
	if grown := int64(memory()) - int64(before); grown > 32<<20 {
		t.Errorf("%d MiB more", grown>>20)
	}
}

// manyPieces sends a request byte by byte, each in its own frame followed by a ping. The request is answered.
func manyPieces(t *testing.T, g *target) {
	request := string(
		withMime(graphSON3, eval(t, "eval", "g.inject(1)", map[string]any{"pad": strings.Repeat("x", 50_000)})),
	)
	c := upgrade(t, g)
	answered := make(chan bool, 1)
	go func() {
		var got []byte
		for b := make([]byte, 32<<10); !bytes.Contains(got, []byte(`"code":200`)); {
			n, err := c.Read(b)
			if got = append(got, b[:n]...); err != nil {
				answered <- false
				return
			}
		}
		answered <- true
	}()
	before := memory()
	var raw []byte
	for i := range request {
		first := byte(0)
		switch i {
		case 0:
			first = 0x02
		case len(request) - 1:
			first = 0x80
		}
		raw = append(append(raw, wsFrame(first, request[i:i+1])...), wsFrame(0x89, "")...)
	}
	if _, err := c.Write(raw); err != nil {
		t.Fatal(err)
	}
	if !<-answered {
		t.Error("no answer")
	}
	if grown := int64(memory()) - int64(before); grown > 32<<20 {
		t.Errorf("%d MiB more", grown>>20)
	}
}
