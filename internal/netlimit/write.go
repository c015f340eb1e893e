package netlimit

import (
	"net"
	"os"
	"time"
)

// start is the zero of Conn's deadlines. It has a monotonic clock reading, so a step of the wall clock closes no
// connection.
var start = time.Now()

// looks is the number of checks within Options.Stall. A connection is closed when no progress is seen between two
// checks.
//
// Example with a Stall of 60 s: the socket's deadline is 30 s. A write of 1 MB fails at this deadline after 200 KB: it
// made progress, so it continues. At the next deadline nothing more was written, and 100 KB are in the send buffer;
// this is the first look at it. At the next deadline still 100 KB are there: the client read nothing for 30 s or more,
// and the connection is closed. With 90 KB the write would continue.
const looks = 2

// Write implements net.Conn. It continues while the client reads at least something, and fails with
// os.ErrDeadlineExceeded if the client reads nothing for Options.Stall.
func (c *Conn) Write(p []byte) (int, error) {
	done, queued := 0, -1
	for {
		c.arm()
		n, err := c.Conn.Write(p[done:])
		done += n
		if err == nil || !c.moves(int64(n), err, &queued) {
			return done, err
		}
	}
}

// WriteBuffers writes all of b, with one system call if the send buffer has room.
func (c *Conn) WriteBuffers(b *net.Buffers) (int64, error) {
	done, queued := int64(0), -1
	for {
		c.arm()
		n, err := b.WriteTo(c.Conn)
		done += n
		if err == nil || !c.moves(n, err, &queued) {
			return done, err
		}
	}
}

// arm sets the socket's deadline for the next check. It keeps a deadline that is nearly as late, which saves a system
// call in most writes.
func (c *Conn) arm() {
	look := c.l.o.Stall / looks
	if look <= 0 {
		return
	}
	now := time.Since(start)
	late := now + look
	if u := time.Duration(c.until.Load()); u != 0 && u < late {
		late = u
	}
	if at := time.Duration(c.armed.Load()); at > late || late-at > look/4 {
		c.armed.Store(int64(late))
		_ = c.Conn.SetWriteDeadline(start.Add(late))
	}
}

// moves reports whether a write that failed with err after n bytes should continue: only the deadline of a check has
// passed, and the client has read something since the previous check. queued is the number of bytes in the send buffer
// at the previous check, -1 = none yet.
func (c *Conn) moves(n int64, err error, queued *int) bool {
	if !os.IsTimeout(err) || c.l.o.Stall <= 0 {
		return false
	}
	if u := c.until.Load(); u != 0 && time.Duration(u) <= time.Since(start) {
		return false
	}
	if n > 0 {
		*queued = -1
		return true
	}
	// The system accepts more data only when a good part of its buffer is free. So a slow client may have read
	// something although n is 0.
	q := unsent(c.Conn)
	if *queued >= 0 && q >= *queued {
		c.l.stalled.Add(1)
		return false
	}
	*queued = q
	return true
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && c.until.Load() == 0 {
		return nil
	}
	u := int64(0)
	if !t.IsZero() {
		u = max(int64(t.Sub(start)), 1)
	}
	c.until.Store(u)
	c.armed.Store(0) // the next write sets the deadline of its check
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}
