package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// wall is the real time, which sockets, certificates and signatures go by, whatever time the data is in.
var wall = clock.New()

const (
	bodyTimeout = 30 * time.Second // that a body may pause
	// bytes a second that it brings at least, once it has been coming for twice that long
	bodyRate = 1 << 10
)

func (c *Config) bodyTimeout() time.Duration {
	if c.BodyTimeout > 0 {
		return c.BodyTimeout
	}
	return bodyTimeout
}

// slowBody is a request body that must go on coming: each read has a deadline. Without it a body that stops half-way
// holds its connection and a goroutine for ever; a fixed limit for the whole would cut large bodies on slow lines.
type slowBody struct {
	io.ReadCloser
	ctl   http.ResponseController
	wait  time.Duration
	began time.Time // of the first read: before it the body may have waited for memory
	got   int64
	ended bool
}

func newSlowBody(w http.ResponseWriter, r *http.Request, wait time.Duration) *slowBody {
	return &slowBody{ReadCloser: r.Body, ctl: *http.NewResponseController(w), wait: wait}
}

// Read implements io.Reader. A deadline that passed is os.ErrDeadlineExceeded.
func (b *slowBody) Read(p []byte) (int, error) {
	now := wall.Now()
	if b.began.IsZero() {
		b.began = now
	}
	limit := now.Add(b.wait)
	if slowest := b.began.Add(2*b.wait + time.Duration(b.got)*(time.Second/bodyRate)); slowest.Before(limit) {
		limit = slowest
	}
	_ = b.ctl.SetReadDeadline(limit) // a connection without deadlines is one in a test
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	if err != nil {
		b.end(err)
	}
	return n, err
}

// end takes the deadline away, or what comes after the body would fail by it. A connection whose body didn't come
// stays dead.
func (b *slowBody) end(err error) {
	if !b.ended && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.ctl.SetReadDeadline(time.Time{})
	}
	b.ended = true
}

// leave ends a body that nobody has read to its end: net/http waits for the rest, to find the next request.
func (b *slowBody) leave() {
	if !b.ended {
		_ = b.ctl.SetReadDeadline(wall.Now().Add(b.wait))
	}
}
