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
	Wall    *clock.Clock // real time: of signatures, tokens and the Date header; nil: the wall clock
	Logger  *slog.Logger // nil: slog.Default

	// Consistency is the account's level: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual; "" is
	// Session. Requests that ask for a stronger one are refused; reads are the same at all levels.
	Consistency string

	// Strict refuses what the service refuses and this server could do (strict.go): a query over several partitions
	// whose rows must be merged is a 400 with the plan for clients that merge; an order without its index is a 400.
	// Without it such queries are answered whole, to every client.
	Strict bool

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all.
	// Observe is told of each request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
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
	began string    // time of the start, as a header has it

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
	s := &Server{core: e, opt: o, log: o.Logger, clock: o.Clock, wall: o.Wall}
	if o.Auth {
		a, err := newAuthority(o.Key, o.Wall, s.namedByRIDs)
		if err != nil {
			return nil, err
		}
		s.auth, s.sign = a, a.tokens
	} else {
		// Nobody checks tokens, but permissions have them: any key will do.
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
	surface(routes{g: &s.gin.RouterGroup, all: &s.lines})
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.gin.ServeHTTP(w, tidy(r)) }

// authenticate is the middleware that finds out who asks. Nothing of a request is looked at before: not even whether
// its path exists.
func (s *Server) authenticate(g *gin.Context) {
	if s.auth == nil {
		return
	}
	c := g.Writer.(*call)
	if err := s.auth.check(c); err != nil {
		c.Header().Del("Allow") // the router has said for a wrong verb which ones there are
		c.Abort(err)
	}
}
