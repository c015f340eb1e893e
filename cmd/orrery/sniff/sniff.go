// Package sniff lets one port answer with and without TLS: the first byte of a connection says which.
package sniff

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// tlsHandshake is the first byte of every TLS client hello; HTTP begins with a letter, a MongoDB message with its length.
const tlsHandshake = 0x16

// patience is how long a client may stay silent before its first byte. Some clients connect ahead of need.
const patience = 2 * time.Minute

// Listener hands out *tls.Conn for connections that begin with a TLS handshake, and the connection itself, untouched,
// otherwise. Waiting for the first byte happens outside Accept, so a silent client holds nobody up.
type Listener struct {
	inner net.Listener
	conf  *tls.Config
	ready chan net.Conn
	done  chan struct{}
	stop  sync.Once

	mu      sync.Mutex
	silent  map[net.Conn]struct{} // connections without a first byte yet; nil after Close
	lastErr error
}

// New wraps inner and begins to accept.
func New(inner net.Listener, conf *tls.Config) *Listener {
	l := &Listener{inner: inner, conf: conf, ready: make(chan net.Conn), done: make(chan struct{}), silent: map[net.Conn]struct{}{}}
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
		if ne, ok := err.(net.Error); !ok || !ne.Temporary() { //nolint:staticcheck // out of file descriptors is such
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

// sort waits for the first byte and passes the connection on.
func (l *Listener) sort(c net.Conn) {
	if !l.hold(c) {
		_ = c.Close()
		return
	}
	c, first, err := peek(c, patience)
	l.release(c)
	if err != nil {
		_ = c.Close()
		return
	}
	if first == tlsHandshake {
		c = tls.Server(c, l.conf)
	}
	select {
	case l.ready <- c:
	case <-l.done:
		_ = c.Close()
	}
}

func (l *Listener) hold(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent == nil {
		return false
	}
	l.silent[c] = struct{}{}
	return true
}

func (l *Listener) release(c net.Conn) {
	if b, ok := c.(*buffered); ok {
		c = b.Conn
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.silent, c)
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

// Close implements net.Listener; connections that have not said anything yet are closed too.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.stop.Do(func() {
		close(l.done)
		err = l.inner.Close()
		l.mu.Lock()
		for c := range l.silent {
			_ = c.Close()
		}
		l.silent = nil
		l.mu.Unlock()
	})
	return err
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// buffered gives one byte back that was read ahead; for connections that can't be peeked at.
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

// readFirst is peek by reading.
func readFirst(c net.Conn) (net.Conn, byte, error) {
	var one [1]byte
	if _, err := c.Read(one[:]); err != nil {
		return c, 0, err
	}
	return &buffered{Conn: c, first: one[:]}, one[0], nil
}
