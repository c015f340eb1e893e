package netlimit

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// connect returns both ends of a connection through a Listener. Its buffers are small, so a write soon has to wait for
// the reader.
func connect(t *testing.T, o Options) (l *Listener, server *Conn, client *net.TCPConn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	l = New(inner, o)
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = c.(*net.TCPConn)
	_ = client.SetReadBuffer(64 << 10)
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = s.(*Conn)
	_ = server.Conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return l, server, client
}

// writes are the two ways to write large data.
var writes = map[string]func(c *Conn, b []byte) (int64, error){
	"one buffer": func(c *Conn, b []byte) (int64, error) {
		n, err := c.Write(b)
		return int64(n), err
	},
	"several buffers": func(c *Conn, b []byte) (int64, error) {
		pieces := net.Buffers{b[:10], b[10 : len(b)/2], b[len(b)/2:]}
		return c.WriteBuffers(&pieces)
	},
}

func TestAReaderThatTakesNothingIsCut(t *testing.T) {
	const stall = 100 * time.Millisecond
	for name, write := range writes {
		l, server, _ := connect(t, Options{Stall: stall})
		begin := time.Now()
		n, err := write(server, make([]byte, 8<<20))
		took := time.Since(begin)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == 8<<20 || took < stall*3/4 || took > 20*stall {
			t.Errorf("%s: %d bytes in %v, %v", name, n, took, err)
		}
		if got := l.Counts().Stalled; got != 1 {
			t.Errorf("%s: %d connections counted", name, got)
		}
	}
}

// It reads everything in many times the limit, and all bytes arrive in order.
func TestASlowReaderIsNotCut(t *testing.T) {
	const stall = 600 * time.Millisecond // much longer than the reader's pauses, because the machine may be busy
	body := make([]byte, 2<<20)
	for i := range body {
		body[i] = byte(i * 31 >> 3)
	}
	for name, write := range writes {
		_, server, client := connect(t, Options{Stall: stall})
		got := make(chan []byte)
		go func() {
			var all []byte
			for part := make([]byte, 100<<10); ; time.Sleep(stall / 8) {
				n, err := io.ReadFull(client, part)
				all = append(all, part[:n]...)
				if err != nil {
					got <- all
					return
				}
			}
		}()
		begin := time.Now()
		n, err := write(server, body)
		if took := time.Since(begin); err != nil || n != int64(len(body)) || took < stall {
			t.Errorf("%s: %d bytes in %v, %v", name, n, took, err)
		}
		_ = server.Close()
		if all := <-got; !bytes.Equal(all, body) {
			t.Errorf("%s: other bytes came", name)
		}
	}
}

// A deadline of the owner is kept. A deadline that has passed and is removed has no effect.
func TestDeadlinesOfTheOwner(t *testing.T) {
	for _, set := range []func(*Conn, time.Time) error{(*Conn).SetWriteDeadline, (*Conn).SetDeadline} {
		_, server, _ := connect(t, Options{Stall: time.Minute})
		_ = set(server, time.Now().Add(50*time.Millisecond))
		if _, err := server.Write(make([]byte, 8<<20)); !os.IsTimeout(err) {
			t.Fatal(err)
		}
		_, server, _ = connect(t, Options{Stall: time.Minute})
		_ = set(server, time.Now().Add(-time.Second))
		if _, err := server.Write([]byte("x")); !os.IsTimeout(err) {
			t.Fatal(err)
		}
		_ = set(server, time.Time{})
		if _, err := server.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

// A write long after the last one sets a new deadline.
func TestAPauseBetweenWrites(t *testing.T) {
	_, server, _ := connect(t, Options{Stall: 20 * time.Millisecond})
	for range 3 {
		if _, err := server.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	var refused atomic.Int64
	l := New(inner, Options{Max: 2, Refuse: func() { refused.Add(1) }})
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	first := <-accepted
	dial()
	<-accepted
	third := dial()
	_ = third.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := third.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Fatalf("a third is open: %v", err)
	}
	if got, want := l.Counts(), (Counts{Open: 2, Accepted: 2, Refused: 1}); got != want || refused.Load() != 1 {
		t.Fatalf("%+v, %d told", got, refused.Load())
	}
	_, _ = first.Close(), first.Close() // closing twice is allowed
	dial()
	<-accepted
	if got := l.Counts().Open; got != 2 {
		t.Fatal(got)
	}
}

func BenchmarkWrite(b *testing.B) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer inner.Close()
	l := New(inner, Options{Stall: time.Minute})
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	s, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	one := make([]byte, 100)
	for _, w := range []struct {
		name string
		io.Writer
	}{{"bounded", s}, {"bare", s.(*Conn).Conn}} {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				_, _ = w.Write(one)
			}
		})
	}
}
