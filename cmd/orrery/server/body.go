package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// wall is the wall clock. Sockets, certificates and signatures use it, even if the data's clock is frozen.
var wall = clock.New()

const (
	bodyTimeout = 30 * time.Second // the longest pause of a body
	// The minimum rate of a body in bytes per second. It applies after twice the timeout.
	bodyRate = 1 << 10
)

func (c *Config) bodyTimeout() time.Duration {
	if c.BodyTimeout > 0 {
		return c.BodyTimeout
	}
	return bodyTimeout
}

// slowBody is a request body that must keep arriving: each read has a deadline. Without it, a body that stops would
// occupy its connection and a goroutine forever. A fixed limit for the whole body would interrupt large bodies on slow
// connections.
//
// Example with a timeout of 30 s and a rate of 1 KiB/s: a body of 10 MB at 100 KB/s is accepted, since each read
// returns soon. A body that stops fails after 30 s. One byte every 20 s passes the first check, but fails after about
// 60 s, because it is below the rate.
type slowBody struct {
	io.ReadCloser
	ctl   http.ResponseController
	wait  time.Duration
	began time.Time // time of the first read; before it the body may have waited for memory
	got   int64
	ended bool
}

func newSlowBody(w http.ResponseWriter, r *http.Request, wait time.Duration) *slowBody {
	return &slowBody{ReadCloser: r.Body, ctl: *http.NewResponseController(w), wait: wait}
}

// Read implements io.Reader. It returns os.ErrDeadlineExceeded when the deadline has passed.
func (b *slowBody) Read(p []byte) (int, error) {
	now := wall.Now()
	if b.began.IsZero() {
		b.began = now
	}
	limit := now.Add(b.wait)
	if slowest := b.began.Add(2*b.wait + time.Duration(b.got)*(time.Second/bodyRate)); slowest.Before(limit) {
		limit = slowest
	}
	_ = b.ctl.SetReadDeadline(limit) // fails only for connections without deadlines, in tests
	n, err := b.ReadCloser.Read(p)
	b.got += int64(n)
	if err != nil {
		b.end(err)
	}
	return n, err
}

// end removes the deadline, which would otherwise apply to the next request. If the body timed out, the deadline stays.
func (b *slowBody) end(err error) {
	if !b.ended && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.ctl.SetReadDeadline(time.Time{})
	}
	b.ended = true
}

// leave sets a deadline for a body that wasn't read completely: net/http reads the rest to find the next request.
func (b *slowBody) leave() {
	if !b.ended {
		_ = b.ctl.SetReadDeadline(wall.Now().Add(b.wait))
	}
}
