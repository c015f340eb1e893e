package hostile

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// The matrix: every kind of attack on every door. A new door must define its reaction to each kind, and a new kind is
// tried on each door. If a kind can't be tried on a door, the cell says why.

// patience is how long the matrix's doors wait for a client that sends or reads nothing.
const patience = 300 * time.Millisecond

// cell is one kind of attack on one door.
type cell struct {
	try func(t *testing.T, g *target)
	why string // why it can't be tried
}

func not(why string) cell { return cell{why: why} }

func doors() []string {
	return []string{server.NoSQL, server.Table, server.Gremlin, server.Mongo, server.Admin}
}

// attack is one row of the matrix.
type attack struct {
	name string
	auth bool // the server requires credentials
	at   func(door string) cell
}

// isHTTP reports whether a door uses HTTP. Gremlin's does: WebSockets begin with it, and scripts may be sent by POST.
func isHTTP(door string) bool { return door != server.Mongo }

// asks returns a request that each door answers without credentials, with a description of itself.
func asks(g *target, door string) []byte {
	if door == server.Mongo {
		return msg(must(bson.Marshal(bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})))
	}
	path := map[string]string{server.NoSQL: "/dbs", server.Table: "/Tables", server.Gremlin: "/",
		server.Admin: "/alive"}[door]
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + g.Addr(door) + "\r\n\r\n")
}

// brings returns a request with a body that the door would execute: it creates an item with this id, of 16 KiB.
func brings(g *target, door, id string) []byte {
	text := strings.Repeat("x", 16<<10)
	switch door {
	case server.Mongo:
		return msg(must(bson.Marshal(bson.D{
			{Key: "insert", Value: "halves"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id},
				{Key: "text", Value: text}}}},
			{Key: "$db", Value: "shop"},
		})))
	case server.Gremlin:
		return post(
			g,
			door,
			"/gremlin",
			`{"gremlin":"g.addV('half').property('id','`+id+`').property('text','`+text+`')"}`,
		)
	case server.Table:
		return post(g, door, "/people", `{"PartitionKey":"`+id+`","RowKey":"1","text":"`+text+`"}`)
	}
	return post(g, door, "/dbs/shop/colls/items/docs", `{"id":"`+id+`","pk":"half","text":"`+text+`"}`,
		"x-ms-documentdb-partitionkey: [\"half\"]")
}

func post(g *target, door, path, body string, headers ...string) []byte {
	head := "POST " + path + " HTTP/1.1\r\nHost: " + g.Addr(door) + "\r\nContent-Type: application/json\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return []byte(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// cut expects that the door ends a connection that sends only this, within a few times its patience.
func cut(door string, says func(g *target) []byte) cell {
	return cell{try: func(t *testing.T, g *target) {
		c := g.dial(t, door)
		_, _ = c.Write(says(g))
		begin := time.Now()
		if _, err := io.Copy(io.Discard, c); isTimeout(err) {
			t.Errorf("still open after %v", time.Since(begin))
		}
	}}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// drips sends a request a few bytes at a time: without a pause of the door's patience, but longer in total. The door
// must answer. On a busy machine the client itself may make such a pause. Then the attempt says nothing, and is
// repeated.
func drips(t *testing.T, g *target, door string) {
	for range 20 {
		late, err := drip(t, g, door)
		if err == nil {
			return
		}
		if late < patience/5 {
			t.Fatalf("a slow client was cut off, its longest pause was %v: %v", late, err)
		}
	}
	t.Fatal("in no attempt was the client live")
}

// drip makes one attempt. It returns the longest time between two writes, and an error if there was no answer. The head
// of an HTTP request is sent at once, because its time limit is for the whole head.
func drip(t *testing.T, g *target, door string) (late time.Duration, err error) {
	raw := brings(g, door, "slow")
	c := g.dial(t, door)
	defer c.Close()
	if door == server.Mongo { // a new client has a shorter limit
		if _, err := c.Write(asks(g, door)); err != nil {
			return 0, err
		}
		if _, err := reply(c); err != nil {
			return 0, err
		}
	}
	last := time.Now()
	if head := bytes.Index(raw, []byte("\r\n\r\n")); isHTTP(door) {
		if _, err := c.Write(raw[:head]); err != nil {
			return 0, err
		}
		raw = raw[head:]
	}
	for step := len(raw)/20 + 1; len(raw) > 0; time.Sleep(patience / 15) {
		n := min(step, len(raw))
		_, err := c.Write(raw[:n])
		now := time.Now()
		late, last = max(late, now.Sub(last)), now
		if err != nil {
			return late, err
		}
		raw = raw[n:]
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return late, err
}

// refusesForeign expects that a page of another site can't write, for every way in which a browser sends its request.
func refusesForeign(door string) cell {
	return cell{try: func(t *testing.T, g *target) {
		for _, h := range [][]string{
			{"Origin: http://evil.example"}, {"Sec-Fetch-Site: cross-site"}, {"Origin: null"},
			{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"},
		} {
			raw := brings(g, door, "half")
			raw = bytes.Replace(raw, []byte("Content-Type: application/json"), []byte("Content-Type: text/plain"), 1)
			raw = bytes.Replace(
				raw,
				[]byte("\r\nContent-Length"),
				[]byte("\r\n"+strings.Join(h, "\r\n")+"\r\nContent-Length"),
				1,
			)
			if code := status(g.exchange(t, door, raw, answerTime/16)); code != http.StatusForbidden {
				t.Errorf("a page with %v: got %d, want 403", h, code)
			}
		}
		raw := bytes.Replace(asks(g, door), []byte("Host: "+g.Addr(door)), []byte("Host: evil.example"), 1)
		raw = bytes.Replace(raw, []byte("/alive"), []byte("/status"), 1)
		if code := status(g.exchange(t, door, raw, answerTime/16)); code != http.StatusMisdirectedRequest {
			t.Errorf("by a name that isn't the server's: got %d, want 421", code)
		}
		g.nothingWritten(t)
	}}
}

// status returns the status of a raw reply, 0 if there is none.
func status(raw []byte) (code int) {
	_, _ = fmt.Sscanf(string(raw), "HTTP/1.1 %d", &code)
	return code
}

// nothingWritten fails the test if one of the requests of brings was executed.
func (g *target) nothingWritten(t *testing.T) {
	t.Helper()
	for door, path := range map[string]string{server.NoSQL: "/dbs/shop/colls/items/docs/half", server.Table: "/people(PartitionKey='half',RowKey='1')"} {
		if code, text := g.do(t, door, "GET", path, "", "x-ms-documentdb-partitionkey", `["half"]`); code == 200 {
			t.Errorf("%s: half a request was done: %.200s", door, text)
		}
	}
}

var attacks = []attack{
	{name: "says nothing", at: func(door string) cell {
		return cut(door, func(*target) []byte { return nil })
	}},
	{name: "half of a TLS handshake", at: func(door string) cell {
		return cut(door, func(*target) []byte { return []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") })
	}},
	{name: "half of a head", at: func(door string) cell {
		if door == server.Mongo {
			return not(
				"without a login a client may be silent between messages for minutes, as drivers' monitors are; the next line is the case",
			)
		}
		return cut(door, func(g *target) []byte { r := asks(g, door); return r[:len(r)-3] })
	}},
	{name: "half of a message before a login", auth: true, at: func(door string) cell {
		return cut(door, func(g *target) []byte { r := brings(g, door, "half"); return r[:len(r)/2] })
	}},
	{name: "half of a body", at: func(door string) cell {
		if door == server.Mongo {
			return not("the case of the line before: who has logged in has half a minute for each piece")
		}
		return cell{try: func(t *testing.T, g *target) {
			cut(door, func(g *target) []byte { r := brings(g, door, "half"); return r[:len(r)-100] }).try(t, g)
			g.nothingWritten(t)
		}}
	}},
	{name: "many halves", auth: true, at: func(door string) cell {
		return cell{try: func(t *testing.T, g *target) {
			before := memory()
			raw := brings(g, door, "half")
			if door == server.Mongo {
				raw = frame(2013, 30_000, make([]byte, 4<<10))
			}
			raw = raw[:len(raw)-10]
			var conns []net.Conn
			for range 200 {
				c := g.dial(t, door)
				_, _ = c.Write(raw)
				conns = append(conns, c)
			}
			if grown := int64(memory()) - int64(before); grown > 32<<20 {
				t.Errorf("200 half messages hold %d MiB", grown>>20)
			}
			for _, c := range conns {
				_ = c.Close()
			}
		}}
	}},
	{name: "announces much", at: func(door string) cell {
		return cell{try: func(t *testing.T, g *target) {
			before := memory()
			var conns []net.Conn
			for range 50 {
				c := g.dial(t, door)
				if door == server.Mongo {
					_, _ = c.Write(frame(2013, 47_000_000, make([]byte, 100)))
				} else {
					raw := brings(g, door, "half")
					i := bytes.Index(raw, []byte("Content-Length"))
					_, _ = c.Write(append(bytes.Clone(raw[:i]), "Content-Length: 2000000\r\n\r\n{"...))
				}
				conns = append(conns, c)
			}
			time.Sleep(patience / 3)
			if grown := int64(memory()) - int64(before); grown > 32<<20 {
				t.Errorf("50 messages that don't come hold %d MiB", grown>>20)
			}
			for _, c := range conns {
				_ = c.Close()
			}
		}}
	}},
	{name: "slow but live", at: func(door string) cell {
		if door == server.Admin {
			return not("it takes no bodies")
		}
		return cell{try: func(t *testing.T, g *target) { drips(t, g, door) }}
	}},
	{name: "takes nothing", at: func(door string) cell {
		if door == server.Admin {
			return not("its answers are small")
		}
		return cell{try: func(t *testing.T, g *target) { takesNothing(t, g, door) }}
	}},
	{name: "another site's page", at: func(door string) cell {
		switch door {
		case server.Mongo:
			return not("no browser speaks its protocol")
		case server.Admin:
			return cell{try: func(t *testing.T, g *target) {
				raw := bytes.Replace(asks(g, door), []byte("/alive"), []byte("/status"), 1)
				raw = bytes.Replace(
					raw,
					[]byte("\r\n\r\n"),
					[]byte("\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n\r\n"),
					1,
				)
				if code := status(g.exchange(t, door, raw, answerTime/16)); code != http.StatusForbidden {
					t.Errorf("got %d, want 403", code)
				}
			}}
		}
		return refusesForeign(door)
	}},
	{name: "two lengths", at: func(door string) cell {
		if door == server.Mongo {
			return not("its messages have one")
		}
		return cell{try: func(t *testing.T, g *target) {
			raw := "POST / HTTP/1.1\r\nHost: " + g.Addr(
				door,
			) + "\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
				"GET /smuggled HTTP/1.1\r\nHost: " + g.Addr(
				door,
			) + "\r\n\r\n"
			out := g.exchange(t, door, []byte(raw), answerTime/8)
			if n := bytes.Count(out, []byte("HTTP/1.1 ")); n != 1 {
				t.Errorf("%d answers to a request with two lengths and one behind it", n)
			}
		}}
	}},
	{name: "no credentials", auth: true, at: func(door string) cell {
		if door == server.Admin {
			return not("it asks for none but for keys, see the server's own tests")
		}
		return cell{try: func(t *testing.T, g *target) {
			out := g.exchange(t, door, brings(g, door, "half"), answerTime/8)
			if door == server.Mongo {
				if !bytes.Contains(out, []byte("requires authentication")) {
					t.Errorf("got %.300q", out)
				}
				return
			}
			if code := status(out); code != http.StatusUnauthorized {
				t.Errorf("got %d, want 401", code)
			}
		}}
	}},
	{name: "garbage", at: func(door string) cell {
		return cell{try: func(t *testing.T, g *target) {
			for _, raw := range [][]byte{bytes.Repeat([]byte{0xff}, 5000), bytes.Repeat([]byte{0}, 5000),
				[]byte("\x00\x01\x02"), bytes.Repeat([]byte("A"), 100_000)} {
				if code := status(g.exchange(t, door, raw, answerTime/40)); code >= 500 {
					t.Errorf("%.20q: got %d", raw, code)
				}
			}
		}}
	}},
	{name: "leaves in the middle of much work", at: func(door string) cell {
		if door == server.Admin || door == server.Table {
			return not("no request of it is much work: a page has a bound")
		}
		return cell{try: func(t *testing.T, g *target) { leaves(t, g, door) }}
	}},
}

// much returns a request whose reply has many megabytes.
func much(t *testing.T, g *target, door string) []byte {
	switch door {
	case server.Mongo:
		return msg(encode(t, bson.D{{Key: "find", Value: "big"}, {Key: "$db", Value: "shop"}}))
	case server.Table:
		return []byte("GET /big()?$top=1000 HTTP/1.1\r\nHost: " + g.Addr(door) + "\r\nAccept: application/json\r\n\r\n")
	}
	return []byte(
		"GET /dbs/shop/colls/big/docs HTTP/1.1\r\nHost: " + g.Addr(door) + "\r\nx-ms-max-item-count: -1\r\n\r\n",
	)
}

// takesNothing sends requests of much and doesn't read the replies. The connections are closed, and their memory is
// released.
func takesNothing(t *testing.T, g *target, door string) {
	fill(t, g)
	before := memory()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			var probe func() error // fails when the server has closed the connection
			if door == server.Gremlin {
				ws, res, err := websocket.DefaultDialer.Dial("ws://"+g.Addr(door)+"/gremlin", nil)
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
				defer ws.Close()
				script := withMime(graphSON3, eval(
					t,
					"eval",
					"g.inject('"+strings.Repeat("x", 1000)+"').repeat(union(identity(),identity())).times(14)",
					nil,
				))
				if err := ws.WriteMessage(websocket.BinaryMessage, script); err != nil {
					t.Error(err)
				}
				probe = func() error { return ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(answerTime)) }
			} else {
				c, err := net.DialTimeout("tcp", g.Addr(door), answerTime)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for range 20 {
					if _, err := c.Write(much(t, g, door)); err != nil {
						break
					}
				}
				probe = func() error {
					_, err := c.Write([]byte{0})
					return err
				}
			}
			for end := time.Now().Add(answerTime); time.Now().Before(end); time.Sleep(patience / 4) {
				if probe() != nil {
					return
				}
			}
			t.Errorf("a client that takes nothing is still connected after %v", answerTime)
		})
	}
	wg.Wait()
	if grown := int64(memory()) - int64(before); grown > 64<<20 {
		t.Errorf("20 clients that are gone and took nothing left %d MiB behind", grown>>20)
	}
}

// fill creates a container, a table and a collection "big" with 4 MB each.
func fill(t *testing.T, g *target) {
	t.Helper()
	if code, text := g.do(t, server.NoSQL, "POST", "/dbs/shop/colls", `{"id":"big","partitionKey":{"paths":["/pk"],`+
		`"kind":"Hash"}}`); code != 201 &&
		code != 409 {
		t.Fatalf("%d %s", code, text)
	} else if code == 409 {
		return
	}
	g.do(t, server.Table, "POST", "/Tables", `{"TableName":"big"}`)
	text := strings.Repeat("x", 40<<10)
	for i := range 100 {
		if code, out := g.do(t, server.NoSQL, "POST", "/dbs/shop/colls/big/docs",
			fmt.Sprintf(`{"id":"%d","pk":"p","text":"%s"}`, i, text), "x-ms-documentdb-partitionkey",
			`["p"]`); code != 201 {
			t.Fatalf("%d %s", code, out)
		}
		if code, out := g.do(t, server.Table, "POST", "/big",
			fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d","a":"%s"}`, i, text[:30<<10])); code != 201 {
			t.Fatalf("%d %s", code, out)
		}
	}
}

// leaves begins work that would take minutes and disconnects. The door must notice: the number of requests in flight
// falls to zero.
func leaves(t *testing.T, g *target, door string) {
	var raw []byte
	switch door {
	case server.NoSQL:
		wide := `{"id":"wide","pk":"p","w":[` + strings.Repeat("1,", 2999) + `1]}`
		if code, text := g.do(t, door, "POST", "/dbs/shop/colls/items/docs", wide, "x-ms-documentdb-partitionkey",
			`["p"]`); code != 201 {
			t.Fatalf("%d %s", code, text)
		}
		q := `{"query":"SELECT VALUE COUNT(1) FROM c JOIN a IN c.w JOIN b IN c.w JOIN d IN c.w WHERE a + b + d < 0"}`
		raw = post(
			g,
			door,
			"/dbs/shop/colls/items/docs",
			q,
			"x-ms-documentdb-isquery: true",
			"x-ms-documentdb-partitionkey: [\"p\"]",
		)
		raw = bytes.Replace(raw, []byte("application/json"), []byte("application/query+json"), 1)
	case server.Mongo:
		numbers := func(n int) bson.D { return bson.D{{Key: "$range", Value: bson.A{0, n}}} }
		inner := bson.D{{Key: "$gt", Value: bson.A{bson.D{{Key: "$size", Value: numbers(5000)}}, "$$this"}}}
		nest := bson.D{
			{
				Key: "$size",
				Value: bson.D{
					{
						Key:   "$filter",
						Value: bson.D{{Key: "input", Value: numbers(900_000)}, {Key: "cond", Value: inner}},
					},
				},
			},
		}
		raw = msg(encode(t, bson.D{
			{Key: "aggregate", Value: "items"},
			{Key: "pipeline", Value: bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "n", Value: nest}}}}}},
			{Key: "cursor", Value: bson.D{}},
			{Key: "$db", Value: "shop"},
		}))
	case server.Gremlin:
		raw = post(
			g,
			door,
			"/gremlin",
			`{"gremlin":"g.inject(1).repeat(union(math('_ * 2'),math('_ * 2 + 1'))).times(40).count()"}`,
		)
	}
	c := g.dial(t, door)
	if _, err := c.Write(raw); err != nil {
		t.Fatal(err)
	}
	if !g.inFlight(t, door, 1) {
		t.Fatal("the work ended before anybody could leave it")
	}
	_ = c.Close()
	begin := time.Now()
	for g.inFlight(t, door, 1) {
		if time.Since(begin) > answerTime {
			t.Fatalf("still working %v after the client left", time.Since(begin))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inFlight reports whether a door processes at least n requests within a moment.
func (g *target) inFlight(t *testing.T, door string, n int) bool {
	t.Helper()
	for range 20 {
		_, text := g.do(t, server.Admin, "GET", "/metrics", "")
		var got float64
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, fmt.Sprintf("orrery_requests_in_flight{api=%q} ", door)); ok {
				_, _ = fmt.Sscan(rest, &got)
			}
		}
		if int(got) >= n {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// TestMatrix tries every cell. After each cell other clients are served.
func TestMatrix(t *testing.T) {
	for _, auth := range []bool{false, true} {
		g := startWith(t, auth, func(c *server.Config) {
			c.BodyTimeout = patience
			c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		})
		for _, a := range slices.Concat(attacks, forms) {
			if a.auth != auth {
				continue
			}
			for _, door := range doors() {
				c := a.at(door)
				if (c.try == nil) == (c.why == "") {
					t.Errorf("%s at %s: a cell has a try or says why not", a.name, door)
				}
				if c.try == nil {
					continue
				}
				t.Run(door+", "+a.name, func(t *testing.T) {
					c.try(t, g)
					g.serves(t)
				})
			}
		}
	}
}
