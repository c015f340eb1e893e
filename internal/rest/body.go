package rest

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/orrerydb/orrery/core/status"
)

// maxDrain is how much of a body that is too large is read and thrown away.
const maxDrain = 16 << 20

// firstRead is how much memory a body gets before any of it has come. A client may say that it sends more and send
// nothing.
const firstRead = 64 << 10

// ReadBody reads the request's body into c.Body. It fails with status.TooLarge when there are more than limit bytes,
// with status.Timeout when they don't come in time, and with status.BadRequest when they can't be read. The bytes
// count in the budget of the process until the request ends; when that is spent, the body waits unread until others
// have ended.
func (c *Call) ReadBody(limit int) error {
	if !c.read {
		return c.readBody(limit)
	}
	if c.readErr == nil && len(c.Body) > limit {
		return errTooLarge
	}
	return c.readErr
}

// fetch reads the body before the request is let in: who sends slowly takes no room from others. What goes wrong is
// the handler's to tell, after what is wrong with the rest of the request.
func (c *Call) fetch(limit int) {
	if c.Request.ContentLength == 0 {
		return
	}
	switch c.Request.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete: // handlers of these want none
	default:
		c.readErr = c.readBody(limit)
		c.read = true
	}
}

var errTooLarge = status.New(status.TooLarge, "Request size is too large")

func (c *Call) readBody(limit int) error {
	want := int(min(c.Request.ContentLength, int64(limit)+1))
	if want > limit {
		c.drain()
		return errTooLarge
	}
	if want < 0 {
		want = limit // chunked: nobody knows. What is taken at once can't be waited for with a part of it in hand.
	}
	if err := c.reserve(int64(want)); err != nil {
		return err
	}
	b := c.Body[:0]
	if n := min(want+1, firstRead); n > cap(b) { // one more: the end is seen without growing
		b = make([]byte, 0, n)
	}
	for {
		if len(b) == cap(b) {
			b = grow(b, want+1)
		}
		n, err := c.Request.Body.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		if len(b) > limit {
			c.mem.Shrink(int64(want)) // nothing of it is kept
			c.drain()
			return errTooLarge
		}
		if err != nil {
			c.Body = b
			c.mem.Shrink(int64(max(want-len(b), 0))) // that it might have had
			return c.bodyError(err)
		}
	}
}

// grow doubles a full buffer, up to what is wanted.
func grow(b []byte, want int) []byte {
	if n := min(2*cap(b), want); n > cap(b) {
		return append(make([]byte, 0, n), b...)
	}
	return append(b, 0)[:len(b)]
}

// reserve takes room for n bytes of the budget, at once or when others have given it back.
func (c *Call) reserve(n int64) error {
	err := c.mem.Grow(n)
	if status.Is(err, status.TooManyRequests) {
		err = c.mem.Wait(c.ctx, n)
	}
	return err
}

// bodyError translates how the reading of a body has ended.
func (c *Call) bodyError(err error) error {
	switch {
	case err == io.EOF:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header()["Connection"] = []string{"close"}
		return status.Wrap(status.Timeout, err, "The request body did not come in time.")
	}
	return status.Wrap(status.BadRequest, err, "The request body could not be read.")
}

// drain reads the rest of a body that is refused: a client that still writes sees its connection reset instead of the
// answer. Beyond maxDrain it does.
func (c *Call) drain() {
	if c.Request.ContentLength <= maxDrain {
		if _, err := io.CopyN(io.Discard, c.Request.Body, maxDrain); err == io.EOF {
			return
		}
	}
	c.Header()["Connection"] = []string{"close"}
}
