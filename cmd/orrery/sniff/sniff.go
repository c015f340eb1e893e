// Package sniff lets one port serve both with and without TLS. The first bytes of a connection decide.
//
// Example: a client sends 16 03 01 .. (a TLS handshake), and Accept returns a *tls.Conn after the handshake. Another
// client sends "GET / HTTP/1.1", and Accept returns the connection itself, with no byte consumed. A third one sends
// 16 02 00 00 .., a MongoDB message of 534 bytes: its length begins with the byte of a TLS handshake, too.
package sniff

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// headSize is the number of bytes that decide.
const headSize = 3

// isTLS reports whether a connection that begins with head begins a TLS handshake: the type of the record, and a
// version of 3.1 or above. HTTP begins with a letter. A MongoDB message begins with its length, whose third byte is 0
// in what a client sends first. sure is false if more bytes are needed.
func isTLS(head []byte) (yes, sure bool) {
	for i, b := range head[:min(len(head), headSize)] {
		switch {
		case i == 0 && b != 0x16, i == 1 && b != 3, i == 2 && (b == 0 || b > 4):
			return false, true
		}
	}
	return len(head) >= headSize, len(head) >= headSize
}

// Patience has the time limits for new connections.
type Patience struct {
	Silence   time.Duration // before the first byte; some clients connect in advance
	Handshake time.Duration // for the TLS handshake
}

// Listener returns a *tls.Conn for a connection that begins with a TLS handshake, once the handshake is complete. Other
// connections are returned unchanged. All waiting happens outside Accept, so a slow or silent client doesn't delay
// others.
type Listener struct {
	inner net.Listener
	conf  *tls.Config
	wait  Patience
	ready chan net.Conn
	done  chan struct{}
	stop  sync.Once

	mu      sync.Mutex
	unknown map[net.Conn]struct{} // connections that wait for their first byte or handshake; nil after Close
	lastErr error
}

// New wraps inner and begins to accept.
func New(inner net.Listener, conf *tls.Config, wait Patience) *Listener {
	l := &Listener{inner: inner, conf: conf, wait: wait, ready: make(chan net.Conn), done: make(chan struct{}),
		unknown: map[net.Conn]struct{}{}}
	go l.run()
	return l
}

func (l *Listener) run() {
	var delay time.Duration
	for {
		c, err := l.inner.Accept()
		if err == nil {
			delay = 0
			go l.sort(c)
			continue
		}
		select {
		case <-l.done:
			return
		default:
		}
		//lint:ignore SA1019 net/http asks the same: a lack of file descriptors is temporary, and nothing else tells it
		if ne, ok := err.(net.Error); !ok || !ne.Temporary() {
			l.fail(err)
			return
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		time.Sleep(delay)
	}
}

func (l *Listener) fail(err error) {
	l.mu.Lock()
	l.lastErr = err
	l.mu.Unlock()
	_ = l.Close()
}

// sort identifies a connection and passes it to Accept.
func (l *Listener) sort(c net.Conn) {
	known, err := l.identify(c)
	if err != nil {
		_ = c.Close()
		return
	}
	select {
	case l.ready <- known:
	case <-l.done:
		_ = known.Close()
	}
}

// identify waits for the first byte, and for the handshake if there is one.
func (l *Listener) identify(c net.Conn) (net.Conn, error) {
	if !l.hold(c) {
		return nil, net.ErrClosed
	}
	defer l.release(c)
	known, secure, err := peek(c, l.wait.Silence)
	if err != nil || !secure {
		return known, err
	}
	t := tls.Server(known, l.conf)
	ctx, cancel := context.WithTimeout(context.Background(), l.wait.Handshake)
	defer cancel()
	return t, t.HandshakeContext(ctx) // closes the connection when ctx ends
}

func (l *Listener) hold(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unknown == nil {
		return false
	}
	l.unknown[c] = struct{}{}
	return true
}

func (l *Listener) release(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unknown, c)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lastErr != nil {
			return nil, l.lastErr
		}
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It also closes connections that aren't identified yet.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.stop.Do(func() {
		close(l.done)
		err = l.inner.Close()
		l.mu.Lock()
		for c := range l.unknown {
			_ = c.Close()
		}
		l.unknown = nil
		l.mu.Unlock()
	})
	return err
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// buffered is a connection that returns the bytes that were read already. It is for connections without peek.
type buffered struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (b *buffered) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// readFirst is peek by reading the bytes.
func readFirst(c net.Conn) (known net.Conn, secure bool, err error) {
	head := make([]byte, 0, headSize)
	for {
		n, err := c.Read(head[len(head):headSize])
		head = head[:len(head)+n]
		if yes, sure := isTLS(head); sure || err != nil && len(head) > 0 {
			return &buffered{Conn: c, first: head}, yes, nil
		}
		if err != nil {
			return c, false, err
		}
	}
}
