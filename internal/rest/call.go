package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
)

// Call is one request and its reply. A door embeds it in its own type and pools that type, so nothing of a call may be
// kept after its request. Not safe for concurrent use.
//
// A call is also the gin.ResponseWriter of its request: handlers find it there, without a map for each request.
type Call struct {
	gin.ResponseWriter
	Request *http.Request
	In      http.Header // of the request; keys are in canonical form
	ID      [36]byte    // id of the request: a GUID

	// What an observer is told. The door sets these fields.
	Operation string        // one of a small fixed set
	Charge    float64       // request units
	Explain   func() string // of a query: returns its text and plan; nil: none

	Body  []byte // of the request, after ReadBody
	Out   []byte // body of the reply
	Spare []byte // scratch memory for the handler

	Lines []byte // the reply headers, see BeginLine

	door  *Door
	place admit.Place // in the door's gate
	gin   *gin.Context
	ctx   context.Context
	err   error
	began time.Time
	left  bool // the reply could not be written
	sent  bool
	read  bool // the body was read before the handler; readErr is the result
	told  observe.Request
	mem   *budget.Account
	held  int // the part of mem that Hold has reserved

	readErr error

	lines []line // where they are in Lines
	open  line   // that BeginLine began
}

// Of is the call type of a door: it embeds Call and writes errors in its API's form.
type Of interface {
	gin.ResponseWriter
	// Fail writes the reply for an error.
	Fail(err error)
	base() *Call
}

func (c *Call) base() *Call { return c }

// keepBuffer is the largest buffer in bytes that a call keeps for the next request.
const keepBuffer = 256 << 10

// Begin starts the call for a request. The door then sets itself as gin's writer: g.Writer = c.
func (c *Call) Begin(d *Door, g *gin.Context) {
	c.ResponseWriter, c.Request, c.In = g.Writer, g.Request, g.Request.Header
	c.door, c.gin, c.ctx, c.err = d, g, g.Request.Context(), nil
	c.Operation, c.Charge, c.Explain = "", 0, nil
	c.left, c.sent, c.read, c.readErr, c.held = false, false, false, nil, 0
	if c.mem == nil {
		c.mem = d.Budget.Open("request")
	}
}

// End releases the request, and buffers that are too large to keep. The door then returns the call to its pool.
func (c *Call) End() {
	c.mem.Close()
	c.ResponseWriter, c.Request, c.In, c.gin, c.ctx, c.err, c.Explain = nil, nil, nil, nil, nil, nil, nil
	for _, b := range []*[]byte{&c.Body, &c.Out, &c.Spare, &c.Lines} {
		if cap(*b) > keepBuffer {
			*b = nil
		}
		*b = (*b)[:0]
	}
	c.lines = c.lines[:0]
}

// unheld is the part of a reply in bytes that isn't counted in the budget: most replies are smaller.
const unheld = 64 << 10

// Hold says how many bytes the request holds in total in addition to its body: the reply so far and its sources. They
// count in the budget of the process until the reply is sent, even if the client reads slowly. It fails with
// status.TooManyRequests if the budget is used up, and with status.MemoryLimit if one request may not hold as much.
func (c *Call) Hold(n int) error {
	more := n - unheld - c.held
	if more <= 0 {
		return nil
	}
	if err := c.mem.Grow(int64(more)); err != nil {
		return err
	}
	c.held += more
	return nil
}

// Ctx returns a context that ends when the client disconnects or the request's time is up.
func (c *Call) Ctx() context.Context { return c.ctx }

// Param returns a decoded parameter of the route's path. An encoded slash becomes part of it, and a plus stays a plus.
func (c *Call) Param(name string) string {
	v := c.gin.Param(name)
	if c.Request.URL.RawPath == "" {
		return v // net/url has decoded it, and it contains no encoded separator
	}
	return unescape(v)
}

// Abort ends the request with an error: later handlers and middlewares don't run, and Failed writes the reply.
func (c *Call) Abort(err error) {
	c.err = err
	c.gin.Abort()
}

// Err returns the error of the request, nil if there is none.
func (c *Call) Err() error { return c.err }

// Sent reports whether the reply has begun.
func (c *Call) Sent() bool { return c.sent || c.Written() }

// Left reports whether the client disconnected before it got its reply.
func (c *Call) Left() bool { return c.left || c.Request.Context().Err() != nil }

// Handle makes a gin handler from a function on a door's call type. An error that it returns ends the request.
func Handle[C Of](f func(C) error) gin.HandlerFunc {
	return func(g *gin.Context) {
		c := g.Writer.(C)
		if err := f(c); err != nil {
			c.base().Abort(err)
		}
	}
}

// Finished says that only the reply remains to be sent, and gives the place in the gate back. So a client that reads
// slowly doesn't block others. Send calls it.
func (c *Call) Finished() {
	c.place.Leave()
}

// Status returns err as a *status.Error. A context's error, which waits at a gate or for memory return, becomes
// status.Timeout.
func Status(err error) *status.Error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if e := (*status.Error)(nil); !errors.As(err, &e) {
			return status.Wrap(status.Timeout, err, "The request took too long.")
		}
	}
	return status.From(err)
}
