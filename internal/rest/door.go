package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/deadline"
	"github.com/orrerydb/orrery/internal/observe"
)

// Options are the settings of a door, which all its calls share.
type Options struct {
	API     string       // name for observers: nosql, table
	Clock   *clock.Clock // for the Date header of replies
	Log     *slog.Logger
	Budget  *budget.Budget   // for request bodies; nil: no limit
	MaxBody int              // largest body that a handler takes, in bytes; 0: bodies are read only by handlers
	MaxTime time.Duration    // longest time of a request, the reading of its body included; 0 = no limit
	Gate    *admit.Gate      // limits the running requests; nil = no limit
	Observe observe.Observer // nil: requests aren't observed
}

// Door has the middlewares of one API. Safe for concurrent use.
type Door struct {
	Options
	ids  ids
	date atomic.Pointer[dateValue]
	real *clock.Clock // wall clock for durations; the data's clock may be frozen
}

// NewDoor returns the door of an API.
func NewDoor(o Options) *Door {
	d := &Door{Options: o, real: clock.New()}
	d.ids.seed(o.Clock)
	return d
}

// Requests returns how many request ids were given out: nearly the number of requests.
func (d *Door) Requests() uint64 { return d.ids.n.Load() }

// NewRouter returns a gin router that takes paths literally. It doesn't redirect, an encoded slash isn't a separator,
// and a method that a path doesn't have is distinguished from a path that doesn't exist.
func NewRouter() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.UseRawPath = true
	r.UnescapePathValues = false // Call.Param unescapes them: gin would turn a plus into a space
	r.RedirectTrailingSlash = false
	r.HandleMethodNotAllowed = true
	r.ForwardedByClientIP = false
	return r
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s // can't happen: net/url has parsed the path
}

// Observed reports each request to the door's observer.
func (d *Door) Observed(g *gin.Context) {
	if d.Observe == nil {
		g.Next()
		return
	}
	c := g.Writer.(Of).base()
	c.began = d.real.Now()
	d.Observe.Begin(d.API)
	defer c.tell()
	g.Next()
}

// Elapsed returns how long the request has taken so far; 0 if requests aren't observed.
func (c *Call) Elapsed() time.Duration {
	if c.door.Observe == nil {
		return 0
	}
	return c.door.real.Now().Sub(c.began)
}

// tell reports the result of the request.
func (c *Call) tell() {
	code := c.Status()
	c.told = observe.Request{
		API: c.door.API, Operation: c.Operation, Status: codeText(code), Failed: code >= 500, Left: c.Left(),
		Charge: c.Charge, Duration: c.door.real.Now().Sub(c.began),
		Client: c.Request.RemoteAddr, Target: c.Request.URL.Path, Explain: c.Explain,
	}
	if c.Operation == "" {
		c.told.Operation = "other" // refused before the operation was determined
	}
	c.door.Observe.Done(&c.told)
	c.told = observe.Request{}
}

// codes are the texts of the HTTP status codes.
var codes = func() (t [600]string) {
	for i := range t {
		t[i] = strconv.Itoa(i)
	}
	return t
}()

func codeText(code int) string {
	if code >= 0 && code < len(codes) {
		return codes[code]
	}
	return strconv.Itoa(code)
}

// errPanicked is the error that a client gets after a panic.
var errPanicked = status.New(status.Internal, "a handler panicked")

// Recovered turns a panic of a handler into an error and a log line, so that one bad request doesn't end the server. If
// the reply has begun, it closes the connection.
func (d *Door) Recovered(g *gin.Context) {
	c := g.Writer.(Of)
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		d.Log.Error("A request panicked.", "api", d.API, "path", g.Request.URL.Path,
			"panic", v, "stack", string(debug.Stack()))
		if c.base().Sent() {
			panic(http.ErrAbortHandler)
		}
		c.base().Discard()
		c.Fail(errPanicked)
	}()
	g.Next()
}

// Panicked reports whether err is the error from Recovered, which has already logged it.
func Panicked(err error) bool { return errors.Is(err, errPanicked) }

// Failed calls the door's Fail for a request that ended with an error.
func (d *Door) Failed(g *gin.Context) {
	g.Next()
	c := g.Writer.(Of)
	if err := c.base().err; err != nil && !c.base().Sent() {
		c.Fail(err)
	}
}

// Limited applies the door's time limit, reads the body, and waits at the door's gate.
func (d *Door) Limited(g *gin.Context) {
	c := g.Writer.(Of).base()
	if d.MaxTime > 0 {
		ctx := &deadline.Context{Context: c.ctx, At: d.real.Now().Add(d.MaxTime), Clock: d.real, Place: &c.place}
		defer ctx.End()
		c.ctx = ctx
	} else {
		c.ctx = yield.With(c.ctx, &c.place)
	}
	if d.MaxBody > 0 {
		c.fetch(d.MaxBody)
	}
	if err := c.place.Enter(c.ctx, d.Gate); err != nil {
		c.Abort(err)
		return
	}
	defer c.Finished()
	g.Next()
}

// dateValue is the Date header for all replies of one second.
type dateValue struct {
	second int64
	text   []string
}

// dated returns the Date header, with the same value as net/http's. It is formatted once a second instead of for each
// reply.
func (d *Door) dated() []string {
	now := d.Clock.Now()
	v := d.date.Load()
	if v == nil || v.second != now.Unix() {
		v = &dateValue{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		d.date.Store(v)
	}
	return v.text
}
