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
	"github.com/orrerydb/orrery/internal/observe"
)

// Options are what all calls of a door have in common.
type Options struct {
	API     string       // for observers: nosql, table
	Clock   *clock.Clock // real time: of the Date of replies
	Log     *slog.Logger
	Budget  *budget.Budget   // of request bodies; nil: no limit
	MaxBody int              // the largest body that a handler takes, in bytes; 0: bodies are read in handlers only
	MaxTime time.Duration    // how long one request may run, the reading of its body included; 0 is for ever
	Gate    *admit.Gate      // how many run at once; nil lets in all
	Observe observe.Observer // nil is nobody
}

// Door has the middlewares of one API. Safe for concurrent use.
type Door struct {
	Options
	ids  ids
	date atomic.Pointer[dateValue]
	real *clock.Clock // for durations, whatever time the data is in
}

// NewDoor returns the door of an API.
func NewDoor(o Options) *Door {
	d := &Door{Options: o, real: clock.New()}
	d.ids.seed(o.Clock)
	return d
}

// Requests is how many ids were given to requests: nearly the number of requests.
func (d *Door) Requests() uint64 { return d.ids.n.Load() }

// NewRouter returns a gin router that takes paths as they are: nothing is redirected, an encoded slash separates
// nothing, and a verb that a path does not have is told apart from a path that is not there.
func NewRouter() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.UseRawPath = true
	r.UnescapePathValues = false // Call.Param does it: gin makes a space of a plus
	r.RedirectTrailingSlash = false
	r.HandleMethodNotAllowed = true
	r.ForwardedByClientIP = false
	return r
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s // net/url has parsed the path: there is no such thing
}

// Observed tells the door's observer of each request.
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

// tell says how the request has ended.
func (c *Call) tell() {
	code := c.Status()
	c.told = observe.Request{
		API: c.door.API, Operation: c.Operation, Status: codeText(code), Failed: code >= 500, Left: c.Left(),
		Charge: c.Charge, Duration: c.door.real.Now().Sub(c.began),
		Client: c.Request.RemoteAddr, Target: c.Request.URL.Path, Explain: c.Explain,
	}
	if c.Operation == "" {
		c.told.Operation = "other" // refused before it was known what it is
	}
	c.door.Observe.Done(&c.told)
	c.told = observe.Request{}
}

// codes are the texts of HTTP statuses.
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

// errPanicked is what a client is told of a panic.
var errPanicked = status.New(status.Internal, "a handler panicked")

// Recovered turns a panic of a handler into an error and a log line: one bad request must not end the server. When
// the reply has begun, the connection closes.
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

// Panicked reports whether err is what Recovered makes of a panic, which is in the log already.
func Panicked(err error) bool { return errors.Is(err, errPanicked) }

// Failed has the reply of an error written by the door's Fail.
func (d *Door) Failed(g *gin.Context) {
	g.Next()
	c := g.Writer.(Of)
	if err := c.base().err; err != nil && !c.base().Sent() {
		c.Fail(err)
	}
}

// Limited holds requests to the door's time, reads their bodies, and lets them through the door's gate.
func (d *Door) Limited(g *gin.Context) {
	c := g.Writer.(Of).base()
	if d.MaxTime > 0 {
		ctx := &deadline{Context: c.ctx, at: d.real.Now().Add(d.MaxTime), clock: d.real, place: &c.place}
		defer ctx.end()
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

// dateValue is the Date header of all replies of one second.
type dateValue struct {
	second int64
	text   []string
}

// dated returns the Date header: what net/http would make for each reply, made once a second.
func (d *Door) dated() []string {
	now := d.Clock.Now()
	v := d.date.Load()
	if v == nil || v.second != now.Unix() {
		v = &dateValue{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		d.date.Store(v)
	}
	return v.text
}
