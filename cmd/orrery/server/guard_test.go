package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// guardedServer is a complete server in memory with a short timeout for bodies.
func guardedServer(t *testing.T, set func(*Config)) *Server {
	t.Helper()
	c := Ephemeral()
	c.Auth, c.BodyTimeout = false, 300*time.Millisecond
	c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if set != nil {
		set(&c)
	}
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wire is a connection to which a test writes requests byte by byte.
type wire struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	return &wire{t, c, bufio.NewReader(c)}
}

// head sends the head of a POST that announces n bytes.
func (w *wire) head(path string, n int) {
	fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nx-ms-version: "+
		"2020-07-15\r\nx-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n", path, n)
}

// reply reads one reply. It returns 0 if the connection ends instead.
func (w *wire) reply() int {
	w.t.Helper()
	res, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return 0
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		w.t.Error(err)
	}
	return res.StatusCode
}

// closed waits for the server to close the connection.
func (w *wire) closed() {
	w.t.Helper()
	if _, err := w.in.ReadByte(); err == nil || os.IsTimeout(err) {
		w.t.Errorf("the connection is open: %v", err)
	}
}

// A body that stops or arrives too slowly ends with its connection. One that is slow but keeps arriving is accepted.
func TestHalfSentBodies(t *testing.T) {
	s := guardedServer(t, nil)
	nosql := s.Addr(NoSQL)
	for _, x := range []struct{ path, body string }{
		{"/dbs", `{"id":"db"}`}, {"/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`}} {
		w := dialWire(t, nosql)
		w.head(x.path, len(x.body))
		_, _ = io.WriteString(w, x.body)
		if code := w.reply(); code != 201 {
			t.Fatal(x.path, code)
		}
	}
	const docs = "/dbs/db/colls/c/docs"
	item := func(id string, pad int) string {
		return `{"id":"` + id + `","pk":"p","pad":"` + strings.Repeat("x", pad) + `"}`
	}

	t.Run("stops", func(t *testing.T) {
		w := dialWire(t, nosql)
		w.head(docs, 1000)
		_, _ = io.WriteString(w, `{"id":`)
		if code := w.reply(); code != 408 {
			t.Errorf("%d", code)
		}
		w.closed()
	})
	t.Run("never begins", func(t *testing.T) {
		w := dialWire(t, nosql)
		w.head(docs, 1000)
		if code := w.reply(); code != 408 {
			t.Errorf("%d", code)
		}
		w.closed()
	})
	t.Run("stops, and nobody reads it", func(t *testing.T) {
		w := dialWire(t, nosql)
		w.head("/nothing/here", 1000)
		_, _ = io.WriteString(w, `{"id":`)
		if code := w.reply(); code != 404 {
			t.Errorf("%d", code)
		}
		w.closed()
	})
	t.Run("trickles", func(t *testing.T) {
		w := dialWire(t, nosql)
		w.head(docs, 100_000)
		done := make(chan int)
		go func() { done <- w.reply() }()
		for {
			select {
			case code := <-done:
				if code != 408 {
					t.Errorf("%d", code)
				}
				w.closed()
				return
			case <-time.After(50 * time.Millisecond):
				_, _ = io.WriteString(w, "x")
			}
		}
	})
	t.Run("slow, but it comes", func(t *testing.T) {
		w := dialWire(t, nosql)
		body := item("slow", 40_000)
		w.head(docs, len(body))
		for rest := body; rest != ""; {
			n := min(len(rest), 4096)
			_, _ = io.WriteString(w, rest[:n])
			rest = rest[n:]
			time.Sleep(100 * time.Millisecond)
		}
		if code := w.reply(); code != 201 {
			t.Errorf("%d", code)
		}
	})
	t.Run("a pause between requests", func(t *testing.T) {
		w := dialWire(t, nosql)
		for _, id := range []string{"a", "b"} {
			body := item(id, 10)
			w.head(docs, len(body))
			_, _ = io.WriteString(w, body)
			if code := w.reply(); code != 201 {
				t.Errorf("%d", code)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
	t.Run("table", func(t *testing.T) {
		w := dialWire(t, s.Addr(Table))
		w.head("/Tables", 1000)
		_, _ = io.WriteString(w, `{"TableName":`)
		if code := w.reply(); code >= 500 || code == 201 {
			t.Errorf("%d", code)
		}
		w.closed()
	})
}

// Without credentials a request must name the server by one of its names. With credentials any name is allowed.
func TestHostNames(t *testing.T) {
	machine, _ := os.Hostname()
	loose := guardedServer(t, func(c *Config) { c.PublicHosts = []string{"Cosmos.Example"} })
	keyed := guardedServer(t, func(c *Config) { c.Auth, c.Key = true, "c2VjcmV0" })
	said := guardedServer(t, func(c *Config) { c.Insecure = true })
	get := func(addr, host, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	for host, own := range map[string]bool{
		"localhost": true, "localhost:8081": true, "LOCALHOST.": true, "db.localhost:1": true, "127.0.0.1:8081": true,
		"[::1]:8081": true, "[::1]": true, "192.168.0.7": true, machine: true, "cosmos.example:8081": true,
		"host.docker.internal:8081": true, "evil.example": false, "evil.example:8081": false,
		"localhost.evil.example": false, "127.0.0.1.evil.example": false, "xlocalhost": false,
	} {
		for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
			code, text := get(loose.Addr(door), host, "/")
			if refused := code == http.StatusMisdirectedRequest; refused == own || refused &&
				!strings.Contains(text, "--public-host") {
				t.Errorf("%s as %q: %d %s", door, host, code, text)
			}
			for _, s := range []*Server{keyed, said} {
				code, _ := get(s.Addr(door), host, "/")
				anybody := s == said || door != Admin || own && host != "cosmos.example:8081"
				if refused := code == http.StatusMisdirectedRequest; refused == anybody {
					t.Errorf("%s as %q: %d", door, host, code)
				}
			}
		}
		for _, path := range []string{"/alive", "/ready"} { // a monitor may use any name
			if code, _ := get(keyed.Addr(Admin), host, path); code == http.StatusMisdirectedRequest {
				t.Errorf("%s as %q: %d", path, host, code)
			}
		}
		if code, _ := get(keyed.Addr(Admin), host, "/debug/pprof/"); (code == http.StatusOK) != own &&
			host != "cosmos.example:8081" {
			t.Errorf("profiles as %q: %d", host, code)
		}
	}
}

// Requests that browsers send for pages of other sites are refused if nothing else authenticates the sender.
func TestRequestsOfOtherSites(t *testing.T) {
	open := guardedServer(t, nil)
	said := guardedServer(t, func(c *Config) { c.Insecure = true })
	keyed := guardedServer(t, func(c *Config) { c.Auth = true })
	const ws = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
		"AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	const basic = "Authorization: Basic bG9jYWxob3N0OkMyeTZ5RGpmNS9SK29iME44QTdDZ3YzMFZSREpJV0VITE0rNFFEVTVETTJuUT" +
		"luRHVWVHFvYkQ0YjhtR0d5UE1iSVpucXlNc0VjYUdReTY3WEl3L0p3PT0=\r\n"
	for _, tc := range []struct {
		name, method, path, header string
		refused                    map[string]string // doors that refuse it -> with auth too?
	}{
		{"no browser", "POST", "/", "", nil},
		{"own page", "POST", "/", "Sec-Fetch-Site: same-origin\r\nOrigin: http://HOST\r\n", nil},
		{"own page behind a proxy", "POST", "/",
			"Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost:3000\r\n", nil},
		{"typed by somebody", "GET", "/", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", nil},
		{"own page in an old browser", "POST", "/", "Origin: http://HOST\r\n", nil},
		{"form of another site", "POST", "/", "Content-Type: text/plain\r\nSec-Fetch-Site: " +
			"cross-site\r\nSec-Fetch-Mode: navigate\r\nOrigin: https://evil.example\r\n", everywhere},
		{"script of another site", "POST", "/", "Content-Type: text/plain\r\nSec-Fetch-Site: " +
			"cross-site\r\nSec-Fetch-Mode: no-cors\r\n", everywhere},
		{"script on another port", "POST", "/", "Sec-Fetch-Site: same-site\r\nOrigin: http://127.0.0.1:1\r\n",
			everywhere},
		{"another site in an old browser", "POST", "/", "Content-Type: text/plain\r\nOrigin: http://evil.example\r\n",
			everywhere},
		{"a sandboxed page", "POST", "/", "Origin: null\r\n", everywhere},
		{"picture on another site", "GET", "/?gremlin=g.V()", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: " +
			"no-cors\r\n", everywhere},
		{"link on another site", "GET", "/?gremlin=g.V().drop()", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", map[string]string{Gremlin: "auth"}},
		{"script of another site, with a kept login", "POST", "/", basic + "Sec-Fetch-Site: cross-site\r\nOrigin: " +
			"http://evil.example\r\n", everywhere},
		{"WebSocket of another site", "GET", "/", ws + "Sec-Fetch-Site: cross-site\r\nOrigin: http://evil.example\r\n", map[string]string{NoSQL: "", Table: "", Gremlin: "", Admin: "auth"}},
	} {
		for _, s := range []*Server{open, said, keyed} {
			for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
				w := dialWire(t, s.Addr(door))
				fmt.Fprintf(w, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n%s\r\n", tc.method, tc.path,
					s.Addr(door),
					strings.ReplaceAll(tc.header, "HOST", s.Addr(door)))
				res, err := http.ReadResponse(w.in, nil)
				if err != nil {
					t.Fatalf("%s, %s: %v", tc.name, door, err)
				}
				refused := res.StatusCode == http.StatusForbidden
				with, want := tc.refused[door]
				if want = want && (s != keyed || with == "auth"); refused != want && !(s == keyed && door == Table) {
					t.Errorf("%s, %s, auth %v: %s", tc.name, door, s == keyed, res.Status)
				}
			}
		}
	}
}

// everywhere are the doors that refuse requests from pages of other sites. Those with "auth" refuse them for logged-in
// clients too.
var everywhere = map[string]string{NoSQL: "", Table: "", Gremlin: "auth", Admin: "auth"}

// After a request with both lengths the connection takes no further request.
func TestBothLengthsEndTheConnection(t *testing.T) {
	s := guardedServer(t, nil)
	for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
		for _, lengths := range []string{
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
			"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"} {
			w := dialWire(t, s.Addr(door))
			fmt.Fprintf(w, "POST /dbs HTTP/1.1\r\nHost: localhost\r\nx-ms-version: 2020-07-15\r\n%s\r\n0\r\n\r\nGET "+
				"/alive HTTP/1.1\r\nHost: localhost\r\n\r\n", lengths)
			if code := w.reply(); code == 0 {
				t.Errorf("%s: no reply", door)
			}
			w.closed()
		}
	}
}

// The data's clock may be frozen: deadlines of sockets, signatures and the certificate use the wall clock.
func TestServerWithAFrozenClock(t *testing.T) {
	s := guardedServer(t, func(c *Config) {
		c.Auth, c.Clock = true, clock.Fake(time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC))
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil { // every API has answered a request with a current signature
		t.Fatal(err)
	}
	body := []byte(`{"id":"` + strings.Repeat("d", 200) + `"}`)
	if err := s.nosql(ctx, http.MethodPost, "dbs", "", nil, body); err != nil {
		t.Fatal(err)
	}
	if d := s.cert.Doubts(nil, clock.New()); d != "" {
		t.Error("the certificate:", d)
	}
}

// Clients that request much and read nothing are disconnected, and their memory is released.
func TestClientsThatNeverRead(t *testing.T) {
	s := guardedServer(t, nil)
	nosql := s.Addr(NoSQL)
	big := strings.Repeat("x", 1_500_000)
	for _, x := range []struct{ path, body string }{
		{"/dbs", `{"id":"db"}`}, {"/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`},
		{"/dbs/db/colls/c/docs", `{"id":"a","pk":"p","pad":"` + big + `"}`}} {
		w := dialWire(t, nosql)
		w.head(x.path, len(x.body))
		_, _ = io.WriteString(w, x.body)
		if code := w.reply(); code != 201 {
			t.Fatal(x.path, code)
		}
	}
	for range 5 {
		w := dialWire(t, nosql)
		_ = w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprint(w, strings.Repeat("GET /dbs/db/colls/c/docs/a HTTP/1.1\r\nHost: localhost\r\nx-ms-version: "+
			"2020-07-15\r\nx-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n", 10))
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n := s.door(NoSQL).conns.Counts()
		if n.Stalled == 5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", n)
		}
	}
}

// A client that begins something and stops doesn't keep its connection, at any door.
func TestClientsThatStopHalfWay(t *testing.T) {
	s := guardedServer(t, nil)
	var wg sync.WaitGroup
	const tlsHello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	for _, door := range []string{NoSQL, Table, Gremlin, Mongo, Admin} {
		says := map[string]string{"nothing": "", "half of a TLS handshake": tlsHello}
		if door != Mongo {
			says["a letter"] = "G"
			says["half of a head"] = "GET / HTTP/1.1\r\nHost: loc"
		}
		for name, said := range says {
			w := dialWire(t, s.Addr(door))
			_, _ = io.WriteString(w, said)
			wg.Go(func() {
				begin := time.Now()
				if _, err := io.Copy(io.Discard, w.in); os.IsTimeout(err) || time.Since(begin) > 5*time.Second {
					t.Errorf("%s, %s: open after %v: %v", door, name, time.Since(begin), err)
				}
			})
		}
	}
	wg.Wait()
}
