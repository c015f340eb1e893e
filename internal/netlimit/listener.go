// Package netlimit bounds the connections of a listener: how many there are at once, and how long a client may take
// nothing of what is written to it. It knows no protocol, so every door has it.
package netlimit

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are the bounds of a Listener.
type Options struct {
	Max    int           // connections at once; 0: any number
	Stall  time.Duration // how long a client may take nothing of a write before its connection is closed; 0: for ever
	Refuse func()        // called for each connection beyond Max, before it is closed; may be nil
}

// Listener closes what comes beyond its bound at once. Its connections are *Conn.
type Listener struct {
	net.Listener
	o        Options
	open     atomic.Int64
	accepted atomic.Int64
	refused  atomic.Int64
	stalled  atomic.Int64
}

// New bounds the connections of inner.
func New(inner net.Listener, o Options) *Listener { return &Listener{Listener: inner, o: o} }

// Counts are what a Listener has seen.
type Counts struct {
	Open     int64 // connections now
	Accepted int64 // in all
	Refused  int64 // closed because there were Options.Max
	Stalled  int64 // closed because their client took nothing
}

// Counts returns what the listener has seen.
func (l *Listener) Counts() Counts {
	return Counts{Open: l.open.Load(), Accepted: l.accepted.Load(), Refused: l.refused.Load(),
		Stalled: l.stalled.Load()}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := l.open.Add(1); l.o.Max > 0 && n > int64(l.o.Max) {
			l.open.Add(-1)
			l.refused.Add(1)
			if l.o.Refuse != nil {
				l.o.Refuse()
			}
			_ = c.Close()
			continue
		}
		l.accepted.Add(1)
		return &Conn{Conn: c, l: l}, nil
	}
}

// Conn is a connection whose writes go on only while its client takes something.
type Conn struct {
	net.Conn
	l    *Listener
	once sync.Once

	armed atomic.Int64 // deadline of the socket for writes, in nanoseconds since start; 0: none
	until atomic.Int64 // deadline that the owner has set, likewise
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.once.Do(func() { c.l.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite ends what goes out and leaves what comes in.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, syscall.EINVAL
}
