package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/graphapi"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
	"github.com/orrerydb/orrery/internal/fault"
	"github.com/orrerydb/orrery/mongoapi"
)

// A stage is between the listeners of a server and its store. It exists only with test controls, and lets them replace
// the store while clients stay connected: a reset, and the return to a snapshot, are the replacement of the store by
// another one. Without test controls the listeners call the APIs directly.
//
// Invariants:
//  1. Each request runs on one generation from its beginning to its end, and holds mu for reading.
//  2. mu is held for writing while the generation is replaced, so no request runs then. The requests that arrive
//     meanwhile wait, and run on the new generation.
//
// Example: a client has an HTTP connection and a MongoDB connection. A reset waits for the requests of both, puts an
// empty store in the place of the old one, and both connections go on with the empty store.
type stage struct {
	mu  sync.RWMutex
	gen atomic.Pointer[generation] // changed with mu held for writing

	closing chan struct{} // has an element for each replaced store that is being closed
}

// mostClosing is the number of replaced stores that may be open at a time: replacements that come faster wait.
const mostClosing = 2

// generation is a store with the APIs over it.
type generation struct {
	*backing
	nosql  http.Handler // nil: the API is off
	table  http.Handler
	graphs graphapi.Opener
	mongo  *mongoapi.Server

	life context.Context // ends when requests that still run must end
	end  context.CancelFunc
}

// drainTime is how long requests may take to end before a replacement of the store cancels them.
const drainTime = 50 * time.Millisecond

// enter begins a request. The caller calls leave at its end.
func (st *stage) enter(ctx context.Context) (g *generation, limited context.Context, leave func()) {
	st.mu.RLock()
	g = st.gen.Load()
	limited, cancel := g.limited(ctx)
	return g, limited, func() {
		cancel()
		st.mu.RUnlock()
	}
}

// untilReplaced returns a ctx for work outside of requests on the present generation. Unlike a request it doesn't delay
// the next replacement, which ends it.
func (st *stage) untilReplaced(ctx context.Context) (context.Context, context.CancelFunc) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.gen.Load().limited(ctx)
}

// replace puts a generation in the place of the present one, which it returns, while no request runs. last is called
// immediately before; if it fails, nothing is replaced.
func (st *stage) replace(g *generation, last func() error) (old *generation, err error) {
	old = st.gen.Load()
	if old.mongo != nil {
		old.mongo.EndWaits()
	}
	patience := time.AfterFunc(drainTime, old.end)
	st.mu.Lock()
	defer st.mu.Unlock()
	patience.Stop()
	if err := last(); err != nil {
		old.end()
		old.begin() // for the requests that wait
		return old, err
	}
	st.gen.Store(g)
	return old, nil
}

// limited returns a ctx that ends with the generation too.
func (g *generation) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.life, cancel)
	return limited, func() {
		stop()
		cancel()
	}
}

// begin gives the requests of a generation a new end.
func (g *generation) begin() { g.life, g.end = context.WithCancel(context.Background()) }

// forget closes a replaced generation, and removes its store, in the background: no request uses it any more.
func (st *stage) forget(s *Server, g *generation) {
	st.closing <- struct{}{}
	s.wg.Go(func() {
		defer func() { <-st.closing }()
		if err := g.discard(); err != nil {
			s.log.Warn("A replaced store was not removed", "error", err)
		}
	})
}

// newGeneration makes the APIs over a store. After an error too the caller closes it.
func (s *Server) newGeneration(b *backing) (g *generation, err error) {
	s.watchFeeds(b.eng)
	g = &generation{backing: b, graphs: graphapi.Graphs(b.eng)}
	g.begin()
	if d := s.door(NoSQL); d != nil {
		if g.nosql, err = s.nosqlHandler(b.eng, d); err != nil {
			return g, err
		}
	}
	if d := s.door(Table); d != nil {
		if g.table, err = s.tableHandler(b.eng, d); err != nil {
			return g, err
		}
	}
	if d := s.door(Mongo); d != nil {
		g.mongo = mongoapi.New(b.eng, s.mongoOptions(d))
	}
	if s.door(Gremlin) != nil {
		err = s.prepareGraphs(b.eng, g.graphs)
	}
	return g, err
}

// Close closes a generation without requests.
func (g *generation) Close() (err error) {
	g.end()
	if g.mongo != nil {
		err = g.mongo.Shutdown(context.Background())
	}
	return errors.Join(err, g.backing.Close())
}

// discard closes a generation without requests, and removes its store. A store that can't be closed is left to the next
// start.
func (g *generation) discard() error {
	if p, ok := g.kv.(*pebblekv.Engine); ok {
		p.Discard()
	}
	if err := g.Close(); err != nil {
		return err
	}
	return removeStore(g.kv)
}

// stagedDoors makes the APIs that are on, for a server with test controls.
func stagedDoors(s *Server) (map[string]door, error) {
	first, err := s.newGeneration(s.back.(*backing))
	if err != nil {
		return nil, err
	}
	st := &stage{closing: make(chan struct{}, mostClosing)}
	st.gen.Store(first)
	s.stage = st
	doors := map[string]door{}
	if s.door(NoSQL) != nil {
		h := st.handler(func(g *generation) http.Handler { return g.nosql })
		doors[NoSQL] = s.openTo(NoSQL, s.recorder().recorded(NoSQL, s.cfg.Account, h))
	}
	if s.door(Table) != nil {
		h := st.handler(func(g *generation) http.Handler { return g.table })
		doors[Table] = s.openTo(Table, s.recorder().recorded(Table, s.cfg.Account, h))
	}
	if b := s.door(Gremlin); b != nil {
		doors[Gremlin] = s.gremlinDoor(stagedGraphs{st, s.faultSource(), s.recorder()}, b)
	}
	if b := s.door(Mongo); b != nil {
		o := s.mongoOptions(b)
		o.Turn = st.turn
		doors[Mongo] = mongoapi.New(s.Engine(), o)
	}
	return doors, nil
}

// handler serves the requests of an HTTP API on the current generation.
func (st *stage) handler(of func(*generation) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, ctx, leave := st.enter(r.Context())
		defer leave()
		of(g).ServeHTTP(w, r.WithContext(ctx))
	})
}

// turn is mongoapi.Options.Turn.
func (st *stage) turn(ctx context.Context) (*mongoapi.Server, context.Context, func()) {
	g, ctx, leave := st.enter(ctx)
	return g.mongo, ctx, leave
}

// stagedGraphs opens the graphs of the current generation.
type stagedGraphs struct {
	st       *stage
	faults   fault.Source
	recorder *recording
}

// OpenGraph implements graphapi.Opener.
func (o stagedGraphs) OpenGraph(ctx context.Context, n graphapi.GraphName, create bool) (graphapi.Graph, error) {
	g, ctx, leave := o.st.enter(ctx)
	defer leave()
	if _, err := g.graphs.OpenGraph(ctx, n, create); err != nil {
		return nil, err
	}
	return stagedGraph{o.st, o.faults, o.recorder, n, create}, nil
}

// stagedGraph is a graph by its name.
type stagedGraph struct {
	st     *stage
	faults fault.Source

	recorder *recording
	name     graphapi.GraphName
	create   bool
}

// Evaluate implements graphapi.Graph.
func (s stagedGraph) Evaluate(ctx context.Context, r *message.Request, emit func(any, int64) error) (run.Stats, error) {
	g, ctx, leave := s.st.enter(ctx)
	defer leave()
	graph, err := g.graphs.OpenGraph(ctx, s.name, s.create)
	if err != nil {
		return run.Stats{}, err
	}
	s.recorder.script(s.name.Database+"/"+s.name.Graph, r)
	operation := "eval"
	if r.Bytecode != nil {
		operation = "bytecode"
	}
	e := s.faults.Hit(fault.Request{API: Gremlin, Operation: operation, Database: s.name.Database,
		Container: s.name.Graph})
	if e == nil {
		return graph.Evaluate(ctx, r, emit)
	}
	did := run.Stats{}
	err = e.Do(ctx, func() (err error) {
		if e.Loss != fault.Kept {
			emit = func(any, int64) error { return nil }
		}
		did, err = graph.Evaluate(ctx, r, emit)
		return err
	})
	return did, err
}
