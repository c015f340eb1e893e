// Package tableapi is the door of the Table API: Microsoft's OData table protocol over the core.
//
// Steps of a request: split the account from the target -> check the signature -> parse the resource address -> handler
// -> one call of the core -> append the reply from stored bytes. The middlewares are those of internal/rest.
//
// Files: server.go, routes.go and call.go process a request; auth.go and sas.go check its credentials; tables.go,
// entities.go, query.go, transaction.go and acl.go are the resources; view.go and predicate.go map entities to stored
// items; errors.go translates errors.
package tableapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/internal/rest"
)

// Database is the database whose containers are the tables.
const Database = "TablesDB"

// Options configure a Server.
type Options struct {
	Account string
	Key     []byte       // the account key, decoded from base64
	Auth    bool         // false: credentials aren't checked
	Clock   *clock.Clock // time of data, and ids
	Wall    *clock.Clock // wall clock, for signatures; nil = the system's
	Log     *slog.Logger // nil: slog.Default

	// MaxTime is the longest time of a request; 0 = no limit. Gate limits the running requests; nil = no limit. Observe
	// is told of each request; nil = nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer

	// Faults decides which requests fail because a test wants it; nil: none.
	Faults fault.Source
}

// Server serves the Table API. It is an http.Handler, safe for concurrent use.
type Server struct {
	e     *core.Engine
	o     Options
	gin   *gin.Engine
	door  *rest.Door
	macs  sync.Pool // hash.Hash keyed with the account key
	calls sync.Pool // *call
}

// New returns a server for the engine's tables.
func New(e *core.Engine, o Options) *Server {
	if o.Wall == nil {
		o.Wall = clock.New()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{e: e, o: o}
	s.door = rest.NewDoor(rest.Options{
		API: "table", Clock: o.Wall, Log: o.Log, Budget: e.Budget(), MaxBody: maxBody,
		MaxTime: o.MaxTime, Gate: o.Gate, Observe: o.Observe,
	})
	s.macs.New = func() any { return hmac.New(sha256.New, o.Key) }
	s.calls.New = func() any { return &call{s: s} }

	s.gin = rest.NewRouter()
	s.gin.Use(s.begin, rest.RequestID(""), s.door.Observed, s.door.Recovered, s.door.Failed,
		rest.Handle((*call).preflight), rest.Handle((*call).checkVersion), rest.Handle((*call).authenticate),
		s.door.Limited)
	s.gin.NoRoute(rest.Handle((*call).otherPath))
	s.gin.NoMethod(rest.Handle((*call).otherMethod))
	for _, verb := range verbs() {
		s.gin.Handle(verb, "/*address", rest.Handle((*call).dispatch))
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.gin.ServeHTTP(w, r) }

// begin is the middleware that makes a call for a request.
func (s *Server) begin(g *gin.Context) {
	c := s.calls.Get().(*call)
	c.Begin(s.door, g)
	defer func() { // deferred, so that also a panic that ends the connection releases the call's resources
		c.End()
		s.calls.Put(c)
	}()
	c.begin()
	g.Writer = c
	g.Next()
}

// sign appends the HMAC-SHA256 of text under the account key to dst.
func (s *Server) sign(dst []byte, text []byte) []byte {
	m := s.macs.Get().(hash.Hash)
	m.Reset()
	m.Write(text)
	dst = m.Sum(dst)
	s.macs.Put(m)
	return dst
}

// target splits the request's target into path and query, both as sent.
func target(requestURI string) (path, query string) {
	if !strings.HasPrefix(requestURI, "/") { // absolute form
		if _, rest, ok := strings.Cut(requestURI, "://"); ok {
			if i := strings.IndexAny(rest, "/?"); i >= 0 {
				requestURI = rest[i:]
			} else {
				requestURI = "/"
			}
		}
	}
	path, query, _ = strings.Cut(requestURI, "?")
	return path, query
}

// resourceOf removes the account from a path. Both styles are supported: /people and /account/people. A table with the
// account's name is reached in path style; in root style only if the path can't be read otherwise.
func (s *Server) resourceOf(path, query string) (resource string, pathStyle bool) {
	path = strings.TrimLeft(path, "/")
	first, rest, more := strings.Cut(path, "/")
	if name := strings.TrimSuffix(first, "-secondary"); name == s.o.Account {
		if more {
			return strings.TrimLeft(rest, "/"), true
		}
		if strings.Contains(query, "restype=") {
			return "", true
		}
	}
	return path, false
}
