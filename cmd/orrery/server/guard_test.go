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
	"testing"
	"time"
)

// guardedServer is a whole server in memory whose bodies may pause for a moment.
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

// wire is a connection on which a test writes its requests byte by byte.
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

// head sends a POST's head that promises n bytes.
func (w *wire) head(path string, n int) {
	fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nx-ms-version: 2020-07-15\r\nx-ms-documentdb-partitionkey: [\"p\"]\r\n\r\n", path, n)
}

// reply reads one reply; 0 when the connection ends instead.
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

// A body that stops, or trickles, ends with its connection; one that is slow and goes on is taken.
func TestHalfSentBodies(t *testing.T) {
	s := guardedServer(t, nil)
	nosql := s.Addr(NoSQL)
	for _, x := range []struct{ path, body string }{{"/dbs", `{"id":"db"}`}, {"/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`}} {
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

// Without credentials a request must name the server by a name that is its own; with credentials nobody cares.
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
		"localhost": true, "localhost:8081": true, "LOCALHOST.": true, "db.localhost:1": true, "127.0.0.1:8081": true, "[::1]:8081": true, "[::1]": true, "192.168.0.7": true,
		machine: true, "cosmos.example:8081": true, "host.docker.internal:8081": true,
		"evil.example": false, "evil.example:8081": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "xlocalhost": false,
	} {
		for _, door := range []string{NoSQL, Table, Gremlin, Admin} {
			code, text := get(loose.Addr(door), host, "/")
			if refused := code == http.StatusMisdirectedRequest; refused == own || refused && !strings.Contains(text, "--public-host") {
				t.Errorf("%s as %q: %d %s", door, host, code, text)
			}
			for _, s := range []*Server{keyed, said} {
				if code, _ := get(s.Addr(door), host, "/"); code == http.StatusMisdirectedRequest {
					t.Errorf("%s as %q is refused where it should not be", door, host)
				}
			}
		}
		if _, text := get(keyed.Addr(Admin), host, "/orrery/connect"); strings.Contains(text, "c2VjcmV0") != own && host != "cosmos.example:8081" {
			t.Errorf("the key as %q: %s", host, text)
		}
		if code, _ := get(keyed.Addr(Admin), host, "/debug/pprof/"); (code == http.StatusOK) != own && host != "cosmos.example:8081" {
			t.Errorf("profiles as %q: %d", host, code)
		}
	}
}
