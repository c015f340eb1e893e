package httpconn

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serve starts a server on connections that take header lines, and returns a function that connects to it.
func serve(t *testing.T, s *http.Server) func() net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ConnContext = Context
	go func() { _ = s.Serve(Listener{Listener: l}) }()
	t.Cleanup(func() { _ = s.Close() })
	return func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// echo replies with the path and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %v", r.URL.Path, b, err)
}

// Requests arrive whole, in pieces or several at once, with and without bodies. Each is answered, in order.
func TestRequestsInAnyPieces(t *testing.T) {
	dial := serve(t, &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: time.Minute})
	request := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	paths := []string{"/brief1", "/long1", "/brief2", "/brief3", "/long2", "/long3", "/brief4"}
	var all, want strings.Builder
	for i, p := range paths {
		body := strings.Repeat("x", i*i*300) + "\r\n\r\n"
		all.WriteString(request(p, body))
		fmt.Fprintf(&want, "%s %s <nil>|", p, body)
	}
	for _, piece := range []int{1 << 20, 1, 2, 50, 200, 1000, 5000} {
		c := dial()
		go func() {
			for rest := all.String(); rest != ""; {
				n := min(piece, len(rest))
				_, _ = io.WriteString(c, rest[:n])
				rest = rest[n:]
			}
		}()
		var got strings.Builder
		r := bufio.NewReader(c)
		for range paths {
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("pieces of %d: %v after %.200q", piece, err, got.String())
			}
			b, _ := io.ReadAll(res.Body)
			got.Write(b)
			got.WriteByte('|')
		}
		if got.String() != want.String() {
			t.Errorf("pieces of %d: %.500q", piece, got.String())
		}
	}
}

// The context of a request ends when its client disconnects, for all kinds of requests.
func TestAClientThatLeavesIsNoticed(t *testing.T) {
	begun, gone := make(chan bool), make(chan bool)
	dial := serve(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- true
		select {
		case <-r.Context().Done():
			gone <- true
		case <-time.After(10 * time.Second):
			gone <- false
		}
	})})
	c := dial()
	send(t, c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	<-begun
	_ = c.Close()
	if !<-gone {
		t.Error("not noticed")
	}
}

// pipes is a listener whose connections are pipes in memory, so that time can be that of a test.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (l pipes) Close() error   { close(l); return nil }

// A silent client is disconnected, whatever part of a request it has sent: when its time is over, and not before. Time
// passes only while everybody waits, so it is exact.
func TestDeadlinesHold(t *testing.T) {
	const head, idle = 60 * time.Millisecond, 120 * time.Millisecond
	for _, said := range []string{"", "/brief", "/long", "/brief /long /brief"} {
		for _, then := range []string{"", "GET /x HTTP/1.1\r\nHo"} {
			synctest.Test(t, func(t *testing.T) {
				l := make(pipes)
				s := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: head, IdleTimeout: idle,
					ConnContext: Context}
				go func() { _ = s.Serve(Listener{Listener: l}) }()
				defer s.Close()
				c, server := net.Pipe()
				l <- server
				r := bufio.NewReader(c)
				for path := range strings.FieldsSeq(said) {
					time.Sleep(head - 1)
					send(t, c, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
					if res, err := http.ReadResponse(r, nil); err != nil {
						t.Fatal(err)
					} else if _, err := io.ReadAll(res.Body); err != nil {
						t.Fatal(err)
					}
				}
				begin, want := time.Now(), head
				if then == "" && said != "" {
					want = idle
				}
				send(t, c, then)
				if _, err := io.ReadAll(r); err != nil || time.Since(begin) != want {
					t.Errorf("after %q and %q: cut off after %v, %v", said, then, time.Since(begin), err)
				}
			})
		}
	}
}
