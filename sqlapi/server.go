package sqlapi

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// Options configure the API.
type Options struct {
	Account string       // name of the account; shown in the account document as a location's name
	Key     string       // account key, base64
	Auth    bool         // check signatures
	Clock   *clock.Clock // time of data, and ids
	Wall    *clock.Clock // real time, for signatures, tokens and the Date header; nil: the wall clock
	Logger  *slog.Logger // nil: slog.Default

	// Consistency is the account's level: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual; "" is
	// Session. Requests for a stronger level are refused. Reads are the same at all levels.
	Consistency string

	// Strict refuses requests that the service refuses and this server could answer (strict.go). Examples: a query over
	// several partitions whose rows must be merged gets 400 with the plan for the client; an ORDER BY without its index
	// gets 400. Without Strict such queries are answered.
	Strict bool

	// Scripts runs stored procedures and triggers; nil: requests for them are refused.
	Scripts Scripts

	// MaxTime is the longest time of one request; 0: no limit. Gate bounds the number of concurrent requests; nil: no
	// limit. Observe is called for each request; nil: nothing is called.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer

	// Faults decides which requests fail because a test wants it; nil: none.
	Faults fault.Source
}

// Server is the NoSQL API as an http.Handler. Safe for concurrent use.
type Server struct {
	core  *core.Engine
	opt   Options
	auth  *authority
	sign  *wire.Signer
	log   *slog.Logger
	clock *clock.Clock
	wall  *clock.Clock
	gin   *gin.Engine
	lines []line // of the route table
	door  *rest.Door
	calls sync.Pool // *call
	began string    // time of the start, in the form of a header

	computed computedCache

	scripting chan struct{} // holds an element for each request that runs programs
	blocks    scriptBlocks
}

var _ http.Handler = (*Server)(nil)

// New returns the API over an engine. It fails when the key is not base64 or the consistency level is unknown.
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
	s := &Server{core: e, opt: o, log: o.Logger, clock: o.Clock, wall: o.Wall,
		scripting: make(chan struct{}, scriptsAtOnce())}
	if o.Auth {
		a, err := newAuthority(o.Key, o.Wall, s.namedByRIDs)
		if err != nil {
			return nil, err
		}
		s.auth, s.sign = a, a.tokens
	} else {
		// Tokens aren't checked, but permissions contain them, so any key can sign them.
		k := o.Clock.UUID()
		s.sign = wire.NewSigner(k[:])
	}
	s.began = o.Clock.Now().Format("Mon, 02 Jan 2006 15:04:05.000 GMT")
	s.door = rest.NewDoor(rest.Options{
		API: "nosql", Clock: o.Wall, Log: o.Logger, Budget: e.Budget(), MaxBody: maxBody,
		MaxTime: o.MaxTime, Gate: o.Gate, Observe: o.Observe,
	})
	s.calls.New = func() any { return newCall(s) }

	s.gin = rest.NewRouter()
	s.gin.Use(s.begin, rest.RequestID(hActivityID), s.door.Observed, s.door.Recovered, s.door.Failed,
		s.authenticate, s.door.Limited)
	s.gin.NoRoute(rest.Handle(noRoute))
	s.gin.NoMethod(rest.Handle(noVerb))
	surface(routes{g: &s.gin.RouterGroup, all: &s.lines, faults: o.Faults})
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.gin.ServeHTTP(w, tidy(r)) }

// authenticate is the middleware that checks the authorization. It runs before everything else that depends on the
// request, even before the check that the path exists.
func (s *Server) authenticate(g *gin.Context) {
	if s.auth == nil {
		return
	}
	c := g.Writer.(*call)
	if err := s.auth.check(c); err != nil {
		c.Header().Del("Allow") // the router has set it for a wrong verb
		c.Abort(err)
	}
}
