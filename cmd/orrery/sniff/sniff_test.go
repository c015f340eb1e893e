package sniff

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/certs"
	"github.com/orrerydb/orrery/core/clock"
)

func listen(t *testing.T) (*Listener, *tls.Config) {
	return listenWith(t, Patience{Silence: time.Minute, Handshake: time.Minute})
}

func listenWith(t *testing.T, wait Patience) (*Listener, *tls.Config) {
	t.Helper()
	pair, err := certs.LoadOrCreate("", certs.Names(), clock.New())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pair.PEM)
	l := New(inner, &tls.Config{Certificates: []tls.Certificate{pair.TLS}}, wait)
	t.Cleanup(func() { _ = l.Close() })
	return l, &tls.Config{RootCAs: pool}
}

func TestOnePortAnswersHTTPAndHTTPS(t *testing.T) {
	l, client := listen(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS != nil)
	})}
	go srv.Serve(l)
	defer srv.Close()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}}

	silent, err := net.Dial("tcp", l.Addr().String()) // a silent client doesn't delay others
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for scheme, want := range map[string]string{"http": "false", "https": "true"} {
		res, err := c.Get(scheme + "://" + l.Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if string(body) != want {
			t.Errorf("%s: the handler saw TLS = %s", scheme, body)
		}
	}
}

// The bytes after the first one arrive unchanged, and without TLS on the same kernel connection.
func TestBytesArriveWhole(t *testing.T) {
	l, client := listen(t)
	for _, secure := range []bool{false, true} {
		go func() {
			var c net.Conn
			var err error
			if secure {
				c, err = tls.Dial("tcp", l.Addr().String(), client)
			} else {
				c, err = net.Dial("tcp", l.Addr().String())
			}
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(c, "hello, ")
			fmt.Fprint(c, "world")
			_ = c.Close()
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != "hello, world" {
			t.Fatalf("TLS %v: %q %v", secure, got, err)
		}
		if _, plain := c.(*net.TCPConn); plain == secure {
			t.Errorf("TLS %v: handed out %T", secure, c)
		}
		_ = c.Close()
	}
}

func TestConnectionsThatCannotBePeekedAt(t *testing.T) {
	a, b := net.Pipe()
	go func() { _, _ = a.Write([]byte("xyz")); _ = a.Close() }()
	c, first, err := peek(b, time.Second)
	if err != nil || first != 'x' {
		t.Fatal(first, err)
	}
	if got, _ := io.ReadAll(c); string(got) != "xyz" {
		t.Fatalf("%q", got)
	}
}

func TestCloseEndsSilentConnections(t *testing.T) {
	l, _ := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		n := len(l.unknown)
		l.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never seen")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("still open: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Fatal("accepts after Close")
	}
}

// A client that is silent, or whose handshake stops or is too slow, doesn't keep its connection.
func TestClientsThatDontMakeThemselvesKnown(t *testing.T) {
	const wait = 100 * time.Millisecond
	l, _ := listenWith(t, Patience{Silence: wait, Handshake: wait})
	hello := "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03"
	for _, tc := range []struct {
		name  string
		bytes string
		pause time.Duration // between two bytes; 0: none
	}{
		{"silent", "", 0},
		{"a handshake's first byte", "\x16", 0},
		{"half a client hello", hello, 0},
		{"a client hello that trickles", hello + string(make([]byte, 200)), wait / 5},
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() {
			for i := 0; i < len(tc.bytes) && tc.pause > 0; i++ {
				if _, err := io.WriteString(c, tc.bytes[i:i+1]); err != nil {
					return
				}
				time.Sleep(tc.pause)
			}
		}()
		if tc.pause == 0 {
			_, _ = io.WriteString(c, tc.bytes)
		}
		begin := time.Now()
		_ = c.SetReadDeadline(begin.Add(20 * wait))
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) < wait/2 {
			t.Errorf("%s: after %v: %v", tc.name, time.Since(begin), err)
		}
	}
}
