// Package netlimit limits the connections of a listener: their number, and the time for which a client may accept none
// of the data that is written to it. It doesn't depend on a protocol, so all doors use it.
package netlimit

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are the limits of a Listener.
type Options struct {
	Max    int           // open connections; 0 = no limit
	Stall  time.Duration // longest time without progress of a write before the connection is closed; 0 = no limit
	Refuse func()        // called for each refused connection, before it is closed; may be nil
}

// Listener closes new connections immediately while Options.Max are open. Its connections are *Conn.
type Listener struct {
	net.Listener
	o        Options
	open     atomic.Int64
	accepted atomic.Int64
	refused  atomic.Int64
	stalled  atomic.Int64
}

// New limits the connections of inner.
func New(inner net.Listener, o Options) *Listener { return &Listener{Listener: inner, o: o} }

// Counts are the counters of a Listener.
type Counts struct {
	Open     int64 // open connections
	Accepted int64 // accepted in total
	Refused  int64 // closed because Options.Max were open
	Stalled  int64 // closed because the client read nothing
}

// Counts returns the counters.
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

// Conn is a connection whose writes continue only while its client reads.
type Conn struct {
	net.Conn
	l    *Listener
	once sync.Once

	armed atomic.Int64 // the socket's write deadline, in nanoseconds since start; 0: none
	until atomic.Int64 // the write deadline that the owner has set, in the same unit
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.once.Do(func() { c.l.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite closes the write side and leaves the read side open.
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
