package rest

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/orrerydb/orrery/core/status"
)

// maxDrain is the largest part of a refused body that is read and discarded, in bytes.
const maxDrain = 16 << 20

// firstRead is the memory in bytes that a body gets before any of it has arrived. A client may announce a large body
// and send nothing.
const firstRead = 64 << 10

// ReadBody reads the request's body into c.Body. It fails with status.TooLarge if the body has more than limit bytes,
// with status.Timeout if it doesn't arrive in time, and with status.BadRequest if it can't be read. The bytes count in
// the budget of the process until the request ends. If the budget is used up, the body waits unread until other
// requests have ended.
func (c *Call) ReadBody(limit int) error {
	if !c.read {
		return c.readBody(limit)
	}
	if c.readErr == nil && len(c.Body) > limit {
		return errTooLarge
	}
	return c.readErr
}

// fetch reads the body before the request passes the gate, so that a slow sender occupies no place there. An error is
// kept for the handler, which first reports faults in the rest of the request.
func (c *Call) fetch(limit int) {
	if c.Request.ContentLength == 0 {
		return
	}
	switch c.Request.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete: // handlers of these need no body
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
		// Chunked: the length is unknown. Memory for the whole limit is reserved now, because a request that holds a
		// part must not wait for more.
		want = limit
	}
	if err := c.reserve(int64(want)); err != nil {
		return err
	}
	b := c.Body[:0]
	if n := min(want+1, firstRead); n > cap(b) { // one byte more: the end is found without growing
		b = make([]byte, 0, n)
	}
	for {
		if len(b) == cap(b) {
			b = grow(b, want+1)
		}
		n, err := c.Request.Body.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		if len(b) > limit {
			c.mem.Shrink(int64(want)) // the body isn't kept
			c.drain()
			return errTooLarge
		}
		if err != nil {
			c.Body = b
			c.mem.Shrink(int64(max(want-len(b), 0))) // the part of the reservation that isn't needed
			return c.bodyError(err)
		}
	}
}

// grow doubles the capacity of a full buffer, up to want.
func grow(b []byte, want int) []byte {
	if n := min(2*cap(b), want); n > cap(b) {
		return append(make([]byte, 0, n), b...)
	}
	return append(b, 0)[:len(b)]
}

// reserve reserves n bytes of the budget. If necessary it waits until others have given some back.
func (c *Call) reserve(n int64) error {
	err := c.mem.Grow(n)
	if status.Is(err, status.TooManyRequests) {
		err = c.mem.Wait(c.ctx, n)
	}
	return err
}

// bodyError translates the error with which the reading of a body ended.
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

// drain reads the rest of a refused body. Otherwise a client that still writes would see a reset connection instead of
// the reply. If the rest is larger than maxDrain, that happens nevertheless.
func (c *Call) drain() {
	if c.Request.ContentLength <= maxDrain {
		if _, err := io.CopyN(io.Discard, c.Request.Body, maxDrain); err == io.EOF {
			return
		}
	}
	c.Header()["Connection"] = []string{"close"}
}
