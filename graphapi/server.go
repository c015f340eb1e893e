package graphapi

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
)

// Limits of the door. They bound what one connection can make the server hold.
const (
	maxFrame          = 10 << 20         // bytes of one request, as Gremlin Server's maxContentLength
	maxRunning        = 8                // requests that one connection has running at a time
	maxPending        = 256              // requests that one connection has running or waiting
	maxPendingBytes   = 32 << 20         // their frames together
	maxChunkBytes     = 256 << 10        // a chunk of results is sent when it is this long, whatever the batch size
	maxBatchSize      = 10_000           // items of one chunk
	defaultBatchSize  = 64               // items of one chunk
	defaultTimeout    = 30 * time.Second // of an evaluation
	idleTimeout       = time.Hour        // of a connection on which nothing comes, not even a ping
	stallTimeout      = 30 * time.Second // of a frame of which no byte comes any more
	loginTimeout      = 60 * time.Second // from the challenge to the login
	writeTimeout      = 60 * time.Second // for a client that doesn't read its answers
	handshakeTimeout  = 10 * time.Second
	sweepInterval     = 15 * time.Second // between two looks at all connections
	cancelGrace       = time.Second      // for cancelled requests to end at Shutdown
	closeWait         = time.Second      // that a close frame waits for what is being written
	keepBuffer        = 64 << 10         // a longer buffer isn't kept for the next request
	maxLoginAttempts  = 3
	maxSASLBytes      = 8 << 10
	maxLoginBytes     = 1 << 20  // frames that are kept for a client that hasn't logged in yet, together
	freeBytes         = 32 << 10 // of a frame or of results in flight: only what is longer is charged to the budget
	maxSessionsOnConn = 64
)

// GraphName is a graph: a container of a database.
type GraphName struct{ Database, Graph string }

// Graph evaluates requests on one graph. It calls emit for every result in order; an error of emit ends the evaluation
// and is returned. Safe for concurrent use.
type Graph interface {
	Evaluate(ctx context.Context, r *message.Request, emit func(v any, bulk int64) error) (run.Stats, error)
}

// Opener finds graphs. With create a missing one is made, as a plain graph without partition key; otherwise a missing
// one is status.NotFound.
type Opener interface {
	OpenGraph(ctx context.Context, name GraphName, create bool) (Graph, error)
}

// Options are the settings of the server.
type Options struct {
	Account string               // user name of a client that logs in as the account
	Key     string               // password of all logins, as text
	Auth    bool                 // false: nobody is asked for a login
	Sources map[string]GraphName // traversal sources beside g, which is graphs/g
	Clock   *clock.Clock
	Log     *slog.Logger // nil: slog.Default()

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all.
	// Observe is told of each request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer

	// Budget is what long frames and answers in flight are charged to. New takes the engine's when it is nil.
	Budget *budget.Budget
}

// defaultGraph is what the source g means where the login didn't name a graph.
var defaultGraph = GraphName{"graphs", "g"}

// Server answers the Gremlin API. It is an http.Handler for / and /gremlin.
//
// A hijacked connection is the server's until it ends; Shutdown ends them all.
type Server struct {
	o        Options
	open     Opener
	upgrader websocket.Upgrader

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	wg     sync.WaitGroup // one per connection
	stop   chan struct{}  // ends the sweep
}

// NewServer makes a Server over graphs. It has a goroutine of its own until Shutdown.
func NewServer(open Opener, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{o: o, open: open, conns: map[*conn]struct{}{}, stop: make(chan struct{})}
	s.upgrader = websocket.Upgrader{HandshakeTimeout: handshakeTimeout, ReadBufferSize: 4096,
		WriteBufferSize: pieceBytes,
		WriteBufferPool: &sync.Pool{}}
	if o.Auth {
		// Every connection has to prove itself, so a page of any origin may connect. Without logins only the same
		// origin may: else any web site could reach a server on the visitor's own machine.
		s.upgrader.CheckOrigin = func(*http.Request) bool { return true }
	}
	go s.sweep()
	return s
}

// sweep looks after all connections until Shutdown.
func (s *Server) sweep() {
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		s.mu.Lock()
		for c := range s.conns {
			c.sweep()
		}
		s.mu.Unlock()
	}
}

// Prepare makes the graphs of the named sources and of g that don't exist yet.
func (s *Server) Prepare(ctx context.Context) error {
	names := []GraphName{defaultGraph}
	for _, n := range s.o.Sources {
		names = append(names, n)
	}
	for _, n := range names {
		if _, err := s.open.OpenGraph(ctx, n, true); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := strings.TrimSuffix(r.URL.Path, "/"); path != "" && path != "/gremlin" {
		http.NotFound(w, r)
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		switch {
		case r.Method == http.MethodPost, r.Method == http.MethodGet && r.URL.Query().Has("gremlin"):
			s.serveHTTP(w, r)
		default:
			w.Header().Set("Upgrade", "websocket")
			http.Error(w, "this is a Gremlin server: connect with a WebSocket, or POST a script",
				http.StatusUpgradeRequired)
		}
		return
	}
	h := &hijacker{ResponseWriter: w}
	ws, err := s.upgrader.Upgrade(h, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	c := newConn(s, ws, h.sender)
	if !s.add(c) {
		c.close(websocket.CloseGoingAway, "the server is closing")
		return
	}
	defer s.remove(c)
	c.serve()
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.wg.Done()
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown lets running requests end, then closes all connections. When ctx ends first, the running requests are
// cancelled, and Shutdown waits a little for them to notice, because the store below may be closed next.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range conns {
			c.drain()
		}
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		for _, c := range conns {
			c.cancel()
			c.ws.Close()
		}
		select {
		case <-done:
		case <-time.After(cancelGrace):
		}
		return ctx.Err()
	}
}

// sameSecret compares in constant time.
func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
