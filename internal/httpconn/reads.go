package httpconn

import (
	"bytes"
	"sync"
	"time"
)

// reads is what is known of what comes in. net/http sets the deadline of reads half a dozen times a request, mostly when nothing is read before the
// next one; here a deadline reaches the socket when something is read under it. And while a handler runs net/http reads one byte in a
// goroutine of its own, to cancel the request's context should the client go. For a request that takes microseconds that is a twentieth of
// its cost, so that read comes back with nothing at once, which net/http takes for a read that was ended.
type reads struct {
	ends  func(head []byte) bool // Listener.Brief
	brief bool                   // the request that came in last; written between requests, read by net/http's goroutine

	mu      sync.Mutex
	inside  bool      // somebody reads from the socket
	want    time.Time // deadline that net/http has set
	set     time.Time // deadline of the socket
	writing bool      // there is a deadline for writes
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	watch := len(p) == 1 // whoever else reads has a buffer
	if watch && c.brief {
		return 0, nil
	}
	if err := c.begin(); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Read(p)
	c.mu.Lock()
	c.inside = false
	c.mu.Unlock()
	if !watch {
		c.brief = c.ends != nil && c.isBrief(p[:n])
	}
	return n, err
}

// slack is which part of the time to a deadline it may come early: the deadline of an idle connection moves on with every request.
const slack = 16

// begin sets the deadline that is wanted.
func (c *Conn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside = true
	if c.want.Equal(c.set) {
		return nil
	}
	if early := c.want.Sub(c.set); early > 0 && !c.set.IsZero() && early <= time.Until(c.want)/slack {
		return nil
	}
	c.set = c.want
	return c.TCPConn.SetReadDeadline(c.want)
}

// isBrief looks at what a read has brought. A request is brief when its whole head has come, so that net/http reads nothing more than its body.
func (c *Conn) isBrief(b []byte) bool {
	i := bytes.Index(b, end)
	return i >= 0 && c.ends(b[:i+len("\r\n")])
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = t
	if !c.inside {
		return nil
	}
	c.set = t
	return c.TCPConn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() && !c.writing {
		return nil
	}
	c.writing = !t.IsZero()
	return c.TCPConn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}
