package netlimit

import (
	"net"
	"os"
	"time"
)

// start is the zero of Conn's deadlines. It carries the monotonic clock: a step of the wall clock cuts nobody off.
var start = time.Now()

// looks is how often a write that stands still is looked at before its connection is given up.
const looks = 2

// Write implements net.Conn. It goes on as long as the client takes something, however little, and fails with
// os.ErrDeadlineExceeded when it takes nothing for Options.Stall.
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

// WriteBuffers writes all of b, in one system call where the client takes it at once.
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

// arm sets the socket's deadline for one look. It leaves one that is nearly as late: most writes find it so.
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

// moves says after a write that failed whether it is to go on: only its look has ended, and the client has taken
// something since the one before. queued is what that one found in the system's buffer.
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
	// The system takes more only when a good part of its buffer is free: a slow client may have taken something
	// nevertheless.
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
	c.armed.Store(0) // the next write sets its own
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}
