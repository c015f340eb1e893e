package sqlapi

import (
	"encoding/binary"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
)

// Options configure the API.
type Options struct {
	Account string       // name of the account; shown in the account document as a location's name
	Key     string       // account key, base64
	Auth    bool         // check signatures
	Clock   *clock.Clock // time of data, and ids
	Wall    *clock.Clock // real time: of signatures, tokens and the Date header; nil: the wall clock
	Logger  *slog.Logger // nil: slog.Default

	// Consistency is the account's level: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual; "" is Session.
	// Requests that ask for a stronger one are refused; reads are the same at all levels.
	Consistency string

	// Strict refuses what the service refuses and this server could do (strict.go): a query over several partitions whose rows
	// must be merged is a 400 with the plan for clients that merge; an order without its index is a 400. Without it such
	// queries are answered whole, to every client.
	Strict bool

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all. Observe is told of each
	// request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
}

// Server is the NoSQL API as an http.Handler. Safe for concurrent use.
type Server struct {
	core  *core.Engine
	opt   Options
	auth  *authority
	sign  *tokenSigner
	log   *slog.Logger
	clock *clock.Clock
	wall  *clock.Clock
	gin   *gin.Engine
	table map[uint32]*route
	ids   idSource
	date  atomic.Pointer[dateValue]
	began string // time of the start, as a header has it

	computed computedCache
}

var _ http.Handler = (*Server)(nil)

// New returns the API over an engine. It fails when the key is not base64 or the consistency level is none.
func New(e *core.Engine, o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Wall == nil {
		o.Wall = clock.New()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Consistency == "" {
		o.Consistency = defaultConsistency
	}
	if _, ok := consistencyRank[o.Consistency]; !ok {
		return nil, status.New(status.BadRequest, "%q is no consistency level", o.Consistency)
	}
	s := &Server{core: e, opt: o, log: o.Logger, clock: o.Clock, wall: o.Wall, table: table(routes())}
	if o.Auth {
		a, err := newAuthority(o.Key, o.Wall)
		if err != nil {
			return nil, err
		}
		s.auth, s.sign = a, a.tokens
	} else {
		// Nobody checks tokens, but permissions have them: any key will do.
		k := o.Clock.UUID()
		s.sign = newTokenSigner(k[:])
	}
	s.ids.seed(o.Clock)
	s.began = o.Clock.Now().Format("Mon, 02 Jan 2006 15:04:05.000 GMT")

	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.UseRawPath = false
	g.RedirectTrailingSlash = false
	g.Any("/*path", s.serve)
	g.NoRoute(s.serve)
	s.gin = g
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.gin.ServeHTTP(w, r) }

// serve runs one request.
func (s *Server) serve(g *gin.Context) {
	c := s.newCall(g.Writer, g.Request)
	defer c.recover()
	if err := c.run(); err != nil {
		c.fail(err)
	}
	c.release()
}

// run finds the route, checks who asks, and lets the handler answer.
func (c *call) run() error {
	p, ok := parsePath(c.r.URL)
	if !ok {
		return errNoPath
	}
	c.path = p
	if c.s.auth != nil {
		if err := c.s.auth.check(c); err != nil {
			return err
		}
		if c.grant != nil {
			if err := c.permit(c.grant); err != nil {
				return err
			}
		}
	}
	rt := c.s.table[p.key()]
	if rt == nil {
		return errNoPath
	}
	m := methodIndex(c.r.Method)
	if m < 0 || rt.verbs[m] == nil {
		c.methodNotAllowed()
		return nil
	}
	return rt.verbs[m](c)
}

// recover turns a panic of a handler into a 500 and a log line: one bad request must not end the server.
func (c *call) recover() {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	c.s.log.Error("A request panicked.", "path", c.r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if c.sent {
		panic(http.ErrAbortHandler)
	}
	c.errorBody("InternalServerError", "An unexpected error occurred. The server's log has more.", nil)
	_ = c.send(http.StatusInternalServerError)
}

// dateValue is the Date header of all replies of one second.
type dateValue struct {
	second int64
	text   []string
}

// dated returns the Date header: what net/http would make for each reply, made once a second.
func (s *Server) dated() []string {
	now := s.wall.Now()
	d := s.date.Load()
	if d == nil || d.second != now.Unix() {
		d = &dateValue{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		s.date.Store(d)
	}
	return d.text
}

// idSource makes activity ids: unique for the process, without a lock or a system call per request.
type idSource struct {
	base [16]byte
	n    atomic.Uint64
}

func (s *idSource) seed(c *clock.Clock) {
	u := c.UUID()
	copy(s.base[:], u[:])
}

// next returns a version 4 UUID: the random half of the process and a counter spread over the other half.
func (s *idSource) next() [16]byte {
	id := s.base
	low := binary.BigEndian.Uint64(id[8:]) + s.n.Add(1)
	binary.BigEndian.PutUint64(id[8:], low)
	id[8] = id[8]&0x3F | 0x80
	return id
}
