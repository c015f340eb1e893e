// Package mongoapi is the MongoDB door: OP_MSG over TCP, SCRAM, and the commands that drivers and mongosh send, on the
// containers of the core.
//
// A request is parsed in place: the command document stays in the connection's read buffer, the reply is appended to
// the connection's write buffer, and a find by `_id` copies stored BSON from one to the other. One goroutine serves a
// connection; another one, the watcher, looks after commands that run for long: it ends those whose client has left.
//
// A collection is a container. One that isn't sharded has the partition key path /id, so that each document is a
// logical partition of its own; a sharded one has its shard key's path. Containers of other APIs are collections too.
package mongoapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/mongoapi/peer"
)

// Version is the MongoDB version that the server announces, and MaxWire its wire version (7.0).
const (
	Version = "7.0.0"
	MaxWire = 21
)

// Options of a Server.
type Options struct {
	Account string // user name
	Key     string // password: the account key as text (base64), as connection strings carry it
	Auth    bool   // false: no credentials needed
	// Advertise is the address that the server says it has, as host:port; "" is the address that the client dialled.
	Advertise string
	Clock     *clock.Clock // nil: the wall clock
	Logger    *slog.Logger // nil: slog's default
	// Requests, when given, is counted up by one per message.
	Requests *atomic.Int64

	// MaxTime is how long one request may run; 0 is for ever. Gate bounds how many run at once; nil lets in all.
	// Observe is told of each request; nil is nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
	// Limits bound what a client may make the server wait for; zero is peer.Defaults.
	Limits peer.Limits
}

// Server serves the MongoDB protocol. Safe for concurrent use.
type Server struct {
	eng      *core.Engine
	o        Options
	clk      *clock.Clock
	log      *slog.Logger
	cursors  *cursors
	sessions *sessions
	creds    credentials
	connID   atomic.Int32
	began    time.Time
	ids      objectIDs

	mu     sync.Mutex
	lns    map[net.Listener]struct{}
	conns  map[*conn]struct{}
	closed bool
	stop   chan struct{}
	wg     sync.WaitGroup

	awake atomic.Bool   // the watcher looks at the connections
	wake  chan struct{} // makes it begin
}

// New makes a Server on an engine.
func New(e *core.Engine, o Options) *Server {
	if o.Clock == nil {
		o.Clock = e.Clock()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Limits == (peer.Limits{}) {
		o.Limits = peer.Defaults
	}
	s := &Server{eng: e, o: o, clk: o.Clock, log: o.Logger, lns: map[net.Listener]struct{}{},
		conns: map[*conn]struct{}{},
		stop:  make(chan struct{}), wake: make(chan struct{}, 1), began: o.Clock.Now()}
	s.cursors = newCursors(o.Clock)
	s.sessions = newSessions(o.Clock)
	s.ids.init(o.Clock)
	s.wg.Add(2)
	go s.sweep()
	go s.watch()
	return s
}

// sweep parks and drops idle cursors and forgets old sessions.
func (s *Server) sweep() {
	defer s.wg.Done()
	t := time.NewTicker(cursorRest)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.cursors.expire(s.eng.Budget())
			s.sessions.expire()
		}
	}
}

// Serve accepts connections until Shutdown and returns nil after it.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ln.Close()
	}
	s.lns[ln] = struct{}{}
	s.mu.Unlock()
	for {
		nc, err := ln.Accept()
		if err != nil {
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return nil
			}
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				continue
			}
			return err
		}
		s.start(nc)
	}
}

func (s *Server) start(nc net.Conn) {
	c := &conn{s: s, nc: nc, p: peer.New(nc, s.o.Limits), id: s.connID.Add(1), authed: !s.o.Auth}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("mongo connection failed", "panic", p, "stack", string(debug.Stack()))
			}
			c.p.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
		c.serve()
	}()
}

// Shutdown stops accepting, lets requests in flight finish until ctx ends, then cuts connections off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	for ln := range s.lns {
		_ = ln.Close()
	}
	for c := range s.conns {
		c.p.Finish()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			c.p.Close()
		}
		s.mu.Unlock()
		err = ctx.Err()
	}
	s.cursors.closeAll()
	return err
}

// connections returns how many connections are open.
func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
