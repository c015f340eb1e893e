// Package tableapi is the Table API's front door: Microsoft's OData table protocol over the core.
//
// One request goes: target split from the account -> signature -> resource address -> handler -> one call of the core
// -> answer appended from stored bytes. The middlewares are those of internal/rest.
//
// Files: server.go, routes.go and call.go carry a request, auth.go and sas.go check it, tables.go, entities.go,
// query.go, transaction.go and acl.go are the resources, view.go and predicate.go map entities onto stored items,
// errors.go translates errors.
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
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/internal/rest"
)

// Database is the database whose containers are the tables.
const Database = "TablesDB"

// Options configure a Server.
type Options struct {
	Account string
	Key     []byte       // the account key, decoded from base64
	Auth    bool         // false: credentials are neither needed nor looked at
	Clock   *clock.Clock // time of data, and ids
	Wall    *clock.Clock // real time, of signatures; nil: the wall clock
	Log     *slog.Logger // nil: slog.Default

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all.
	// Observe is told of each request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
}

// Server answers the Table API. It is an http.Handler, safe for concurrent use.
type Server struct {
	e     *core.Engine
	o     Options
	gin   *gin.Engine
	door  *rest.Door
	macs  sync.Pool // hash.Hash keyed with the account key
	calls sync.Pool // *call
}

// New returns a server of the engine's tables.
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

// begin is the middleware that makes a call of a request.
func (s *Server) begin(g *gin.Context) {
	c := s.calls.Get().(*call)
	c.Begin(s.door, g)
	defer func() { // a panic that ends the connection gives back what the call holds, too
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

// target cuts the request's target into path and query, as they came over the wire.
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

// resourceOf takes the account off a path, for addresses of both styles: /people and /account/people. A table that is
// called like the account is reached in path style, and in root style only where nothing else fits.
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
