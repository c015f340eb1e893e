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

// Call is one request on its way through a door, and the reply as it grows. A door embeds it in a type of its own and
// pools that type: nothing of a call may be kept after its request. Not safe for concurrent use.
//
// A call is its request's gin.ResponseWriter too: that is how handlers find it, without a map for each request.
type Call struct {
	gin.ResponseWriter
	Request *http.Request
	In      http.Header // of the request; keys are canonical
	ID      [36]byte    // of the request: a GUID

	// What an observer is told. The door sets them.
	Operation string        // of a small fixed set
	Charge    float64       // request units
	Explain   func() string // of a query: its text and plan; nil: none

	Body  []byte // of the request, after ReadBody
	Out   []byte // body of the reply
	Spare []byte // scratch of the handler

	Values []byte // of the reply headers, see Add

	door  *Door
	place admit.Place // behind the door's gate
	gin   *gin.Context
	ctx   context.Context
	err   error
	began time.Time
	left  bool // the reply could not be written
	sent  bool
	read  bool // the body was read before the handler, with readErr
	told  observe.Request
	mem   *budget.Account
	held  int // of mem, by Hold

	readErr error

	slots []slot
}

// Of is a door's own call: a type that embeds Call and tells of errors in its API's form.
type Of interface {
	gin.ResponseWriter
	// Fail writes the reply of an error.
	Fail(err error)
	base() *Call
}

func (c *Call) base() *Call { return c }

// keepBuffer is the largest buffer that stays with a call for the next request.
const keepBuffer = 256 << 10

// Begin makes the call that of a request. The door puts itself in gin's place next: g.Writer = c.
func (c *Call) Begin(d *Door, g *gin.Context) {
	c.ResponseWriter, c.Request, c.In = g.Writer, g.Request, g.Request.Header
	c.door, c.gin, c.ctx, c.err = d, g, g.Request.Context(), nil
	c.Operation, c.Charge, c.Explain = "", 0, nil
	c.left, c.sent, c.read, c.readErr, c.held = false, false, false, nil, 0
	if c.mem == nil {
		c.mem = d.Budget.Open("request")
	}
}

// End lets go of the request, and of buffers that are too large to keep. The door returns the call to its pool next.
func (c *Call) End() {
	c.mem.Close()
	c.ResponseWriter, c.Request, c.In, c.gin, c.ctx, c.err, c.Explain = nil, nil, nil, nil, nil, nil, nil
	for _, b := range []*[]byte{&c.Body, &c.Out, &c.Spare, &c.Values} {
		if cap(*b) > keepBuffer {
			*b = nil
		}
		*b = (*b)[:0]
	}
	c.slots = c.slots[:0]
}

// unheld is how much of a reply costs the budget nothing: most replies are smaller.
const unheld = 64 << 10

// Hold says that the request holds n bytes in all beside its body: the reply as it grows, and what it is made of. They
// count in the budget of the process until the reply is sent, also to a client that reads slowly. It fails with
// status.TooManyRequests when the budget is spent, with status.MemoryLimit when one request may not hold as much.
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

// Ctx ends when the client has gone or the request has taken too long.
func (c *Call) Ctx() context.Context { return c.ctx }

// Param returns a parameter of the route's path, decoded: an encoded slash is part of it, a plus is a plus.
func (c *Call) Param(name string) string {
	v := c.gin.Param(name)
	if c.Request.URL.RawPath == "" {
		return v // net/url has decoded it, and nothing that a path is split by was encoded
	}
	return unescape(v)
}

// Abort ends the request with an error: handlers and middlewares after this one don't run, and Failed has the reply
// written.
func (c *Call) Abort(err error) {
	c.err = err
	c.gin.Abort()
}

// Err is the error that the request has ended with, nil while it has none.
func (c *Call) Err() error { return c.err }

// Sent reports whether the reply has begun.
func (c *Call) Sent() bool { return c.sent || c.Written() }

// Left reports whether the client has gone away before its answer.
func (c *Call) Left() bool { return c.left || c.Request.Context().Err() != nil }

// Handle makes a gin handler of a function on a door's own call. The error that it returns ends the request.
func Handle[C Of](f func(C) error) gin.HandlerFunc {
	return func(g *gin.Context) {
		c := g.Writer.(C)
		if err := f(c); err != nil {
			c.base().Abort(err)
		}
	}
}

// Finished says that nothing is left to do but to send the reply: others may come in through the gate. A client that
// reads slowly keeps nobody waiting. Send calls it.
func (c *Call) Finished() {
	c.place.Leave()
}

// Status returns err as a *status.Error. A context's own error, which waits at a gate and for memory give, is
// status.Timeout.
func Status(err error) *status.Error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if e := (*status.Error)(nil); !errors.As(err, &e) {
			return status.Wrap(status.Timeout, err, "The request took too long.")
		}
	}
	return status.From(err)
}
