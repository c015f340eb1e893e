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

// soon is a time within which an expected event has certainly happened, on a busy machine too.
const soon = 20 * time.Second

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
	c, secure, err := peek(b, time.Second)
	if err != nil || secure {
		t.Fatal(secure, err)
	}
	if got, _ := io.ReadAll(c); string(got) != "xyz" {
		t.Fatalf("%q", got)
	}
}

// TestIsTLS: which first bytes begin a TLS handshake. A MongoDB message begins with its length.
func TestIsTLS(t *testing.T) {
	for _, x := range []struct {
		head      string
		yes, sure bool
	}{
		{"", false, false}, {"\x16", false, false}, {"\x16\x03", false, false},
		{"\x16\x03\x01", true, true}, {"\x16\x03\x03\x02", true, true},
		{"G", false, true}, {"\x3a\x00\x00", false, true},
		{"\x16\x00", false, true}, {"\x16\x02\x00", false, true}, // 22 and 534 bytes
		{"\x16\x03\x00", false, true}, // 790 bytes
	} {
		if yes, sure := isTLS([]byte(x.head)); yes != x.yes || sure != x.sure {
			t.Errorf("%q: %v %v", x.head, yes, sure)
		}
	}
}

// TestMessagesThatLookLikeTLS: bytes that begin as a handshake, arrive one by one and go on otherwise, arrive whole.
func TestMessagesThatLookLikeTLS(t *testing.T) {
	l, _ := listen(t)
	pa, pb := net.Pipe()
	for _, sent := range []string{"\x16\x03\x00\x00 790 bytes", "\x16\x02\x00\x00 534 bytes", "\x16\x03 cut"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for i := range sent {
				_, _ = io.WriteString(c, sent[i:i+1])
				time.Sleep(time.Millisecond)
			}
			_ = c.Close()
		}()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(s); err != nil || string(got) != sent {
			t.Errorf("%q: %q %v", sent, got, err)
		}
		_ = s.Close()
	}
	go func() { _, _ = pa.Write([]byte("\x16\x03\x00")); _ = pa.Close() }()
	s, secure, err := peek(pb, time.Second)
	if got, _ := io.ReadAll(s); err != nil || secure || string(got) != "\x16\x03\x00" {
		t.Errorf("%q %v %v", got, secure, err)
	}
}

func TestCloseEndsSilentConnections(t *testing.T) {
	l, _ := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
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
	_ = c.SetReadDeadline(time.Now().Add(soon))
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
		begin := time.Now() // before the server can see the connection
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
		_ = c.SetReadDeadline(begin.Add(soon))
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) < wait {
			t.Errorf("%s: after %v: %v", tc.name, time.Since(begin), err)
		}
	}
}
