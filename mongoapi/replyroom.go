package mongoapi

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// A reply takes its memory from the budget of all requests while it is made. What a connection has reserved stays with
// it until the reply is sent.
//
// Example: a batch of 1 MB. The first 16 KB are free, and then 64 KB are reserved again and again.

const (
	// freeReply is the length of a reply in bytes up to which the budget isn't used: a connection's buffers have that
	// size anyway.
	freeReply = 16 << 10
	// replyStep is the step in which memory is reserved, in bytes.
	replyStep = 64 << 10
	// replyWait is the longest wait of a reply for memory.
	replyWait = 10 * time.Second
)

// scant reports whether a reply of n bytes needs more memory than is reserved.
func (c *conn) scant(n int) bool { return n-freeReply > c.held }

// room reserves memory for a reply of n bytes. With wait it waits until other requests release memory.
func (c *conn) room(ctx context.Context, n int, wait bool) error {
	if !c.scant(n) {
		return nil
	}
	more := max(n-freeReply-c.held, replyStep)
	err := c.mem.Grow(int64(more))
	if wait && status.Is(err, status.TooManyRequests) {
		ctx, cancel := context.WithTimeout(ctx, replyWait)
		defer cancel()
		if c.mem.Wait(ctx, int64(more)) == nil {
			err = nil
		}
	}
	if err == nil {
		c.held += more
	}
	return err
}
