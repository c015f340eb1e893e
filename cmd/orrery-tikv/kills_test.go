package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// front is a balancer that sends all connections to one server. The ends of its connections are those of the server's.
type front struct {
	addr string
	to   atomic.Pointer[string]
}

func newFront(t *testing.T) *front {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	f := &front{addr: ln.Addr().String()}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go f.relay(c)
		}
	}()
	return f
}

func (f *front) relay(client net.Conn) {
	defer client.Close()
	s, err := net.Dial("tcp", *f.to.Load())
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		_, _ = io.Copy(s, client)
		_ = s.Close()
	}()
	_, _ = io.Copy(client, s)
}

// clients are users of the graph g/g behind a balancer. Each goes on until all is done, as programs do that use the
// drivers: a request whose connection ends is made again.
type clients struct {
	t     *testing.T
	ctx   context.Context
	front map[string]*front

	vertices atomic.Int64 // so far

	streamed []string // inserts that the change stream has shown
	fed      []string // items that the change feed has shown
}

const graphDocs = "/dbs/graphs/colls/g/docs"

// rest sends a request of the NoSQL API until it is answered.
func (c *clients) rest(method, body string, header ...string) (status int, text []byte, h http.Header) {
	for c.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(c.ctx, method, "http://"+c.front[server.NoSQL].addr+graphDocs,
			strings.NewReader(body))
		if err != nil {
			c.t.Error(err)
			return 0, nil, nil
		}
		req.Header.Set("x-ms-version", "2018-12-31")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			text, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err == nil && res.StatusCode != http.StatusServiceUnavailable {
				return res.StatusCode, text, res.Header
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, nil, nil
}

// create creates an item. If the first attempt was lost after it was made, the second one finds it.
func (c *clients) create(id string) {
	status, text, _ := c.rest("POST", fmt.Sprintf(`{"id":%q,"label":"thing","_partitionKey":%q}`, id, id),
		"x-ms-documentdb-partitionkey", fmt.Sprintf("[%q]", id))
	if status != http.StatusCreated && status != http.StatusConflict {
		c.t.Errorf("create of %s: %d %s", id, status, text)
	}
}

// feed reads the change feed until it has shown n items.
func (c *clients) feed(n int) {
	etag := ""
	for len(c.fed) < n && c.ctx.Err() == nil {
		header := []string{"A-IM", "Incremental feed", "x-ms-documentdb-partitionkeyrangeid", "0",
			"x-ms-max-item-count", "7"}
		if etag != "" {
			header = append(header, "If-None-Match", etag)
		}
		status, text, h := c.rest("GET", "", header...)
		var page struct{ Documents []struct{ ID string } }
		switch {
		case status == http.StatusOK:
			if err := json.Unmarshal(text, &page); err != nil {
				c.t.Error(err)
				return
			}
		case status == http.StatusNotModified:
			time.Sleep(5 * time.Millisecond)
		case status != 0:
			c.t.Errorf("change feed: %d %s", status, text)
			return
		}
		etag = h.Get("etag")
		for _, d := range page.Documents {
			c.fed = append(c.fed, d.ID)
		}
	}
}

// watch opens a change stream. The function that it returns reads it until it has shown n inserts.
func (c *clients) watch() (read func(n int)) {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + c.front[server.Mongo].addr +
		"/?directConnection=true"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Disconnect(bg) })
	s, err := client.Database("graphs").Collection("g").Watch(c.ctx, mongo.Pipeline{},
		options.ChangeStream().SetMaxAwaitTime(100*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	return func(n int) {
		defer s.Close(bg)
		for len(c.streamed) < n && s.Next(c.ctx) {
			var e struct {
				OperationType string
				DocumentKey   struct {
					ID string `bson:"_id"`
				}
			}
			if err := bson.Unmarshal(s.Current, &e); err != nil || e.OperationType != "insert" {
				c.t.Errorf("event %s: %v", s.Current, err)
			}
			c.streamed = append(c.streamed, e.DocumentKey.ID)
		}
		if err := s.Err(); err != nil {
			c.t.Errorf("change stream after %d events: %v", len(c.streamed), err)
		}
	}
}

// submit runs a script on conn until it is answered; nil: on a new connection. It returns the connection that was used
// last, and the status code.
func (c *clients) submit(conn *websocket.Conn, script string) (_ *websocket.Conn, code int, result string) {
	const mime = "application/json"
	ask := fmt.Sprintf(`{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"","args":`+
		`{"gremlin":%q,"language":"gremlin-groovy","aliases":{"g":"g"}}}`, script)
	for c.ctx.Err() == nil {
		if conn == nil {
			var err error
			if conn, _, err = websocket.DefaultDialer.DialContext(c.ctx, "ws://"+c.front[server.Gremlin].addr+
				"/gremlin", nil); err != nil {
				time.Sleep(5 * time.Millisecond)
				continue
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{byte(len(mime))}, mime+ask...))
		var reply []byte
		if err == nil {
			_, reply, err = conn.ReadMessage()
		}
		var r struct {
			Status struct {
				Code    int
				Message string
			}
			Result struct{ Data json.RawMessage }
		}
		if err == nil {
			err = json.Unmarshal(reply, &r)
		}
		if err == nil && r.Status.Code != 503 {
			return conn, r.Status.Code, r.Status.Message + string(r.Result.Data)
		}
		if err != nil {
			_ = conn.Close()
			conn = nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return conn, 0, ""
}

// traverse adds vertices, and counts them after each: no count is below what was added.
func (c *clients) traverse(ids []string) {
	var conn *websocket.Conn
	for i, id := range ids {
		var code int
		var said string
		conn, code, said = c.submit(conn, fmt.Sprintf("g.addV('thing').property(id, '%s')", id))
		if code != 200 && !strings.Contains(said, "409") && !strings.Contains(said, "already exists") {
			c.t.Errorf("vertex %s: %d %s", id, code, said)
		}
		conn, code, said = c.submit(conn, "g.V().has('id', between('v', 'w')).count()")
		if want := fmt.Sprintf(`"@value":%d}`, i+1); code != 200 || !strings.Contains(said, want) {
			c.t.Errorf("vertices after %s: %d %s, want %s", id, code, said, want)
		}
		c.vertices.Store(int64(i + 1))
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// Clients of all kinds go on when the server that they use is killed, and the balancer sends them to another one. A
// change stream of the official driver and a change feed show everything once, in order. ORRERY_TEST_PD has the
// Placement Drivers of the cluster.
func TestClientsGoOnWhenServersAreKilled(t *testing.T) {
	members := os.Getenv("ORRERY_TEST_PD")
	if members == "" {
		t.Skip("there is no cluster: ORRERY_TEST_PD")
	}
	address := fmt.Sprintf("tikv://%s/kills-%d?commit=2pc", members, time.Now().UnixNano())
	t.Cleanup(func() { empty(t, address) })
	ctx, cancel := context.WithTimeout(bg, 3*time.Minute)
	defer cancel()
	c := &clients{t: t, ctx: ctx, front: map[string]*front{}}
	for _, api := range []string{server.NoSQL, server.Mongo, server.Gremlin} {
		c.front[api] = newFront(t)
	}
	to := func(p *process) {
		for api, f := range c.front {
			addr := p.doors[api]
			f.to.Store(&addr)
		}
	}
	servers := []*process{launch(t, address), launch(t, address)}
	to(servers[0])
	const writes, vertices, kills = 150, 45, 2
	var written, added []string
	for i := range writes {
		written = append(written, fmt.Sprintf("i%03d", i))
	}
	for i := range vertices {
		added = append(added, fmt.Sprintf("v%03d", i))
	}
	read := c.watch()
	var all sync.WaitGroup
	all.Go(func() { read(writes + vertices) })
	all.Go(func() { c.feed(writes + vertices) })
	all.Go(func() { c.traverse(added) })
	for i, id := range written {
		if part := writes / (kills + 1); i > 0 && i%part == 0 {
			for int(c.vertices.Load()) < i/part*vertices/(kills+2) && ctx.Err() == nil { // all are under way
				time.Sleep(time.Millisecond)
			}
			to(servers[1])
			_ = servers[0].cmd.Process.Kill()
			servers = []*process{servers[1], launch(t, address)}
		}
		c.create(id)
		time.Sleep(2 * time.Millisecond)
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	for name, got := range map[string][]string{"change stream": c.streamed, "change feed": c.fed} {
		for _, want := range [][]string{written, added} {
			of := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return id[0] != want[0][0] })
			if !slices.Equal(of, want) {
				t.Errorf("%s: %d of %d, %q", name, len(of), len(want), of)
			}
		}
	}
	for _, p := range servers {
		_ = p.cmd.Process.Kill()
	}
	out, err := orrery("main", "check", "--engine", address).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("1 containers with %d items", writes+vertices)) {
		t.Errorf("check: %v: %s", err, out)
	}
}
