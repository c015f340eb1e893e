// Package tableapi is the Table API's front door: Microsoft's OData table protocol (spec/table.md) over the core.
//
// One request goes: target split from the account -> signature -> resource address -> handler -> one call of the core ->
// answer appended from stored bytes. Addresses like `people(PartitionKey='a',RowKey='b')` are one path segment with a
// syntax of its own, which no router expresses, so Server is a plain http.Handler with a switch.
//
// Files: server.go and call.go carry a request, auth.go and sas.go check it, tables.go, entities.go, query.go and
// transaction.go and acl.go are the resources, view.go and predicate.go map entities onto stored items, errors.go translates errors.
package tableapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/tableapi/odata"
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
	Log     *slog.Logger // may be nil

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all. Observe is told of each
	// request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
}

// Server answers the Table API. It is an http.Handler, safe for concurrent use.
type Server struct {
	e     *core.Engine
	o     Options
	macs  sync.Pool // hash.Hash keyed with the account key
	calls sync.Pool // *call

	idPrefix string
	idSeq    atomic.Uint64
}

// New returns a server of the engine's tables.
func New(e *core.Engine, o Options) *Server {
	if o.Wall == nil {
		o.Wall = clock.New()
	}
	s := &Server{e: e, o: o, idPrefix: o.Clock.UUID().String()[:24]}
	s.macs.New = func() any { return hmac.New(sha256.New, o.Key) }
	s.calls.New = func() any { return &call{s: s} }
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := s.calls.Get().(*call)
	c.begin(w, r)
	if err := c.serve(); err != nil {
		c.fail(err)
	}
	c.end()
	s.calls.Put(c)
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

// serve authenticates and dispatches.
func (c *call) serve() error {
	if c.r.Method == http.MethodOptions {
		return c.preflight()
	}
	if err := c.checkVersion(); err != nil {
		return err
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	seg, err := url.PathUnescape(c.resource)
	if err != nil {
		return newError("InvalidUri")
	}
	if c.addr, err = odata.ParseAddress(seg); err != nil {
		return err
	}
	if c.addr.Kind == odata.Service || c.param("comp") != "" {
		return c.special()
	}
	method, err := c.method(c.r.Method, c.r.Header.Values("X-Http-Method"))
	if err != nil {
		return err
	}
	if err := c.negotiate(method); err != nil {
		return err
	}
	h := handlers[c.addr.Kind][method]
	if h == nil {
		c.w.Header().Set("Allow", allowed(c.addr.Kind))
		return newError("MethodNotAllowed")
	}
	return h(c)
}

// handlers is the registry of operations: kind of resource and method (after X-HTTP-Method).
var handlers [odata.Batch + 1]map[string]func(*call) error

func init() {
	handlers[odata.Tables] = map[string]func(*call) error{"GET": (*call).queryTables, "POST": (*call).createTable}
	handlers[odata.OneTable] = map[string]func(*call) error{"GET": (*call).getTable, "DELETE": (*call).deleteTable}
	handlers[odata.Entities] = map[string]func(*call) error{"GET": (*call).queryEntities, "POST": (*call).insertEntity}
	handlers[odata.OneEntity] = map[string]func(*call) error{
		"DELETE": (*call).deleteEntity, "GET": (*call).getEntity, "MERGE": (*call).mergeEntity, "PATCH": (*call).mergeEntity,
		"PUT": (*call).replaceEntity,
	}
	handlers[odata.Batch] = map[string]func(*call) error{"POST": (*call).transaction}
}

func allowed(k odata.Kind) string {
	var names []string
	for _, m := range []string{"DELETE", "GET", "MERGE", "PATCH", "POST", "PUT"} {
		if handlers[k][m] != nil {
			names = append(names, m)
		}
	}
	return strings.Join(names, ", ")
}

// method applies X-HTTP-Method, by which a POST stands for another method.
func (c *call) method(m string, override []string) (string, error) {
	if len(override) == 0 {
		return m, nil
	}
	if m != http.MethodPost {
		return "", newError("XMethodNotUsingPost")
	}
	if len(override) > 1 {
		return "", newError("XMethodIncorrectCount")
	}
	switch o := strings.ToUpper(override[0]); o {
	case "DELETE", "MERGE", "PATCH", "PUT":
		return o, nil
	}
	return "", newError("XMethodIncorrectValue")
}

// preflight refuses: there are no CORS rules.
func (c *call) preflight() error {
	if c.r.Header.Get("Origin") == "" {
		return &apiError{Code: "InvalidHeaderValue", Index: -1, XML: true}
	}
	return &apiError{Code: "CorsPreflightFailure", Index: -1, XML: true}
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
