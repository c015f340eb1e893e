package peer

import (
	"bufio"
	"errors"
	"os"
	"time"
)

// A command that waits for an event is parked: the connection's own goroutine waits in a read, which notices a client
// that disconnects, and whose deadline ends the wait. So nothing watches the connection meanwhile, and a wait costs no
// goroutine and no timer of its own. An event sets the deadline to the past.
//
// Example: getMore on a cursor without news is parked for a second. After 0.3 s an insert calls wake. The read ends,
// and the command goes on.

// Park waits within a command for at most d, until wake is called, the command is killed, or the client disconnects or
// sends something. begin is given wake, which may be called at any time. It returns a function that ends its calls, and
// is called when the wait is over; nil: there is nothing to wait for. Park returns how much of the time is left, and
// false if the client has left.
func (c *Conn) Park(d time.Duration, begin func(wake func()) (stop func())) (left time.Duration, ok bool) {
	begun := time.Now()
	c.mu.Lock()
	watch := c.watch
	c.watch = nil
	c.parked = true // from here on no Look begins another watch
	if watch != nil {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // interrupts the read of the watch
	}
	c.mu.Unlock()
	if watch != nil {
		<-watch
	}
	c.readDeadline(max(d, time.Millisecond))
	c.mu.Lock()
	over := c.stopping || c.gone || c.ctx.Err() != nil
	c.parked = !over
	c.mu.Unlock()
	if over {
		c.stirred()
		return 0, !c.Left()
	}
	stop := begin(c.wake)
	if stop != nil {
		_, err := c.br.Peek(c.br.Buffered() + 1)
		stop()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
			d = 0 // the client waits for nothing
		default:
			c.mu.Lock()
			c.gone = true
			c.cancel(ErrLeft)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.parked, c.since = false, time.Now() // the wait doesn't count as the command's time
	if c.stopping {
		d = 0
	}
	here := !c.gone
	c.mu.Unlock()
	c.stirred()
	return d - time.Since(begun), here
}

// wake ends a wait.
func (c *Conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unpark()
}

// unpark ends a wait. The caller holds the lock.
func (c *Conn) unpark() {
	if c.parked {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}
