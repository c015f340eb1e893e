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

// Limits of the door: they limit the memory that one connection can occupy.
const (
	maxFrame          = 10 << 20         // bytes of one request, as Gremlin Server's maxContentLength
	maxRunning        = 8                // running requests of one connection
	maxPending        = 256              // running or waiting requests of one connection
	maxPendingBytes   = 32 << 20         // the frames of these requests together
	maxChunkBytes     = 256 << 10        // size at which a chunk of results is sent, for any batch size
	maxBatchSize      = 10_000           // items of one chunk
	defaultBatchSize  = 64               // items of one chunk
	defaultTimeout    = 30 * time.Second // of an evaluation
	idleTimeout       = time.Hour        // of a connection on which nothing arrives, not even a ping
	stallTimeout      = 30 * time.Second // of an incomplete frame without further bytes
	loginTimeout      = 60 * time.Second // from the challenge to the login
	writeTimeout      = 60 * time.Second // for a client that doesn't read its replies
	handshakeTimeout  = 10 * time.Second
	sweepInterval     = 15 * time.Second // between two checks of all connections
	cancelGrace       = time.Second      // for cancelled requests to end during Shutdown
	closeWait         = time.Second      // for a close frame to wait for a message that is being written
	keepBuffer        = 64 << 10         // larger buffers aren't kept for the next request
	maxLoginAttempts  = 3
	maxSASLBytes      = 8 << 10
	maxLoginBytes     = 1 << 20  // all frames that are kept for a client before its login
	freeBytes         = 32 << 10 // the part of a frame or of results that isn't counted in the budget
	maxSessionsOnConn = 64
)

// GraphName names a graph: a container of a database.
type GraphName struct{ Database, Graph string }

// Graph evaluates requests on one graph. It calls emit for every result in order. An error of emit ends the evaluation
// and is returned. Safe for concurrent use.
type Graph interface {
	Evaluate(ctx context.Context, r *message.Request, emit func(v any, bulk int64) error) (run.Stats, error)
}

// Opener opens graphs. With create, a missing graph is created as a plain graph without a partition key; otherwise a
// missing graph is status.NotFound.
type Opener interface {
	OpenGraph(ctx context.Context, name GraphName, create bool) (Graph, error)
}

// Options are the settings of the server.
type Options struct {
	Account string               // user name for a login as the account
	Key     string               // password of all logins, as text
	Auth    bool                 // false: no login is required
	Sources map[string]GraphName // traversal sources besides g, which is graphs/g
	Clock   *clock.Clock
	Log     *slog.Logger // nil: slog.Default()

	// MaxTime is the longest time of a request; 0 = no limit. Gate limits the running requests; nil = no limit. Observe
	// is told of each request; nil = nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer

	// Budget limits the memory of large frames and replies. nil = one without a limit.
	Budget *budget.Budget
}

// defaultGraph is the graph of the source g if the login didn't name one.
var defaultGraph = GraphName{"graphs", "g"}

// Server serves the Gremlin API. It is an http.Handler for / and /gremlin.
//
// A hijacked connection belongs to the server until it ends. Shutdown ends all of them.
type Server struct {
	o        Options
	open     Opener
	upgrader websocket.Upgrader

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	wg     sync.WaitGroup // one for each connection
	stop   chan struct{}  // ends the sweep
}

// NewServer makes a Server for graphs. It runs a goroutine until Shutdown.
func NewServer(open Opener, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Server{o: o, open: open, conns: map[*conn]struct{}{}, stop: make(chan struct{})}
	s.upgrader = websocket.Upgrader{HandshakeTimeout: handshakeTimeout, ReadBufferSize: 4096,
		WriteBufferSize: pieceBytes,
		WriteBufferPool: &sync.Pool{}}
	if o.Auth {
		// With logins every connection must authenticate, so pages of all origins may connect. Without logins only the
		// same origin may, because otherwise any web site could use a server on the user's machine.
		s.upgrader.CheckOrigin = func(*http.Request) bool { return true }
	}
	go s.sweep()
	return s
}

// sweep checks all connections regularly until Shutdown.
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

// Prepare creates the missing graphs of the named sources and of g.
func (s *Server) Prepare(ctx context.Context) error { return Prepare(ctx, s.open, s.o.Sources) }

// Prepare creates the missing graphs of named sources and of g.
func Prepare(ctx context.Context, open Opener, sources map[string]GraphName) error {
	names := []GraphName{defaultGraph}
	for _, n := range sources {
		names = append(names, n)
	}
	for _, n := range names {
		if _, err := open.OpenGraph(ctx, n, true); err != nil {
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
		return // Upgrade has replied
	}
	c := newConn(s, ws, h.sender)
	c.bare = readsBareElements(r.UserAgent())
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

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown waits for running requests and then closes all connections. If ctx ends first, it cancels the running
// requests, and waits a short time for them to end, because the store may be closed next.
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
