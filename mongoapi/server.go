// Package mongoapi is the MongoDB door: OP_MSG over TCP, SCRAM, and the commands of drivers and mongosh, on the
// containers of the core.
//
// A request is parsed in place: the command document stays in the connection's read buffer, and the reply is appended
// to the connection's write buffer. A find by `_id` copies stored BSON from the store to the reply. One goroutine
// serves a connection. Another one, the watcher, handles commands that run for long: it ends those whose client has
// disconnected.
//
// A collection is a container. An unsharded collection has the partition key path /id, so each document is a logical
// partition. A sharded one has the path of its shard key. Containers of other APIs are collections too.
package mongoapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/internal/admit"
	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/internal/observe"
	"github.com/orrerydb/orrery/internal/recentlog"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/failpoint"
	"github.com/orrerydb/orrery/mongoapi/peer"
)

// Options of a Server.
type Options struct {
	Account string // user name
	Key     string // password: the account key as text (base64), as in connection strings
	Auth    bool   // false: no credentials are required
	// Release is the release of MongoDB that the server announces, one of Releases; "" = DefaultRelease.
	Release string
	// Standalone announces a single server, to which drivers send no retryable writes. Otherwise the server is a
	// replica set with one member, whose name is SetName ("" = DefaultSetName).
	Standalone bool
	SetName    string
	// Advertise is the address that the server announces, as host:port. "" = the address that the client dialled.
	Advertise string
	// Strict refuses what the service refuses.
	Strict bool
	// Log has the last records of the process's log, for getLog; nil: it shows none.
	Log *recentlog.Log
	// MaxConnections is how many connections a listener lets in, for serverStatus; 0: it isn't said.
	MaxConnections int
	// PlainText allows logins with the mechanism PLAIN on connections without TLS.
	PlainText bool
	// TestCommands enables the commands with which tests make the server fail.
	TestCommands bool
	// Scripts runs JavaScript for $where, $function, $accumulator and mapReduce; nil: they are refused.
	Scripts expr.Scripts
	// Disk returns the free and all bytes of the store's disk, for dbStats; nil: it isn't said.
	Disk func() (free, total int64, err error)
	// Stop ends the process, for the command shutdown; nil: it is refused.
	Stop   func()
	Clock  *clock.Clock // nil: the wall clock
	Logger *slog.Logger // nil: slog's default
	// Requests, if set, is incremented for each message.
	Requests *atomic.Int64

	// MaxTime is the longest time of a request; 0 = no limit. Gate limits the running requests; nil = no limit. Observe
	// is told of each request; nil = nobody.
	MaxTime time.Duration
	Gate    *admit.Gate
	Observe observe.Observer
	// Limits are the limits of connections; zero = peer.Defaults.
	Limits peer.Limits
	// Faults decides which commands fail because a test wants it; nil = none.
	Faults fault.Source
	// Record, if set, is called for each command. What it returns, unless nil, gets the command in Extended JSON,
	// without what belongs to its session. Commands about logins and users are left out.
	Record func() func(text []byte)
	// Turn, if set, is called before each message. It returns the server that executes it, which may be another one
	// than that of the message before, and the message's context. leave is called after the reply. So tests replace the
	// store below open connections.
	Turn func(context.Context) (s *Server, ctx context.Context, leave func())
}

// Server serves the MongoDB protocol. Safe for concurrent use.
type Server struct {
	tops      tops
	counters  counters
	uses      allUses
	eng       *core.Engine
	o         Options
	clk       *clock.Clock
	real      *clock.Clock // wall clock for the limits of commands; the data's clock may be frozen
	log       *slog.Logger
	cursors   *cursors
	sessions  *sessions
	snapshots snapshots
	creds     credentials
	connID    atomic.Int32
	opNumber  atomic.Uint32 // the number that an operation was given last
	began     time.Time
	ids       objectIDs
	times     clusterClock
	release   release
	profiles  profiler
	process   []byte // the ObjectId of this run of the server
	fails     failpoint.Set
	waits     idleWaits

	verbosities verbosities

	mu     sync.Mutex
	lns    map[net.Listener]struct{}
	conns  map[*conn]struct{}
	left   traffic // of the connections that have ended
	closed bool
	stop   chan struct{}
	wg     sync.WaitGroup

	startupWarnings []slog.Record // that were logged before the server began

	awake atomic.Bool // the watcher is active
	stirs stirs
	wake  chan struct{} // activates it
}

// New makes a Server for an engine.
func New(e *core.Engine, o Options) *Server {
	if o.Clock == nil {
		o.Clock = e.Clock()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SetName == "" {
		o.SetName = DefaultSetName
	}
	if o.Release == "" {
		o.Release = DefaultRelease
	}
	if o.Limits == (peer.Limits{}) {
		o.Limits = peer.Defaults
	}
	s := &Server{eng: e, o: o, clk: o.Clock, real: clock.New(), log: o.Logger,
		lns: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, stop: make(chan struct{}),
		wake: make(chan struct{}, 1), began: o.Clock.Now()}
	s.release = releases[o.Release]
	if o.Log != nil {
		_, recs := o.Log.Records()
		s.startupWarnings = slices.DeleteFunc(recs, func(r slog.Record) bool { return r.Level < slog.LevelWarn })
	}
	s.counters.commands = make([]commandCount, len(commandNames)+1)
	s.waits.round.Store(newRound())
	s.cursors = newCursors(o.Clock)
	s.sessions = newSessions(o.Clock)
	s.snapshots.clk, s.snapshots.shared = o.Clock, e.Shared()
	s.ids.init(o.Clock)
	s.profiles.init()
	s.process = s.ids.next().Bytes()
	s.times.now = &e.Journal().Clock
	s.times.init(o.Account, o.Key, o.Auth)
	s.wg.Add(2)
	go s.sweep()
	go s.watch()
	return s
}

// sweep parks and removes idle cursors and removes old sessions.
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
			s.snapshots.expire()
			s.abortOld()
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
	c := &conn{s: s, home: s, nc: nc, id: s.connID.Add(1), authed: !s.o.Auth}
	c.p = peer.New(nc, s.o.Limits, func() { s.stirs.add(c.p) })
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
			s.left.in += c.bytes.in
			s.left.out += c.bytes.out
			s.mu.Unlock()
		}()
		c.serve()
	}()
}

// Shutdown stops accepting, lets requests in flight finish until ctx ends, and then closes all connections.
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
	s.snapshots.closeAll()
	for _, t := range s.sessions.running(func(*transaction) bool { return true }) {
		s.abort(t)
	}
	return err
}

// connections returns the number of open connections.
func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
