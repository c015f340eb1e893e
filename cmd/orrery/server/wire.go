package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/graphapi"
	"github.com/orrerydb/orrery/mongoapi"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/peer"
	"github.com/orrerydb/orrery/sqlapi"
	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/tableapi"
)

// openKV opens the storage engine of cfg.
func openKV(cfg *Config) (kv.Engine, error) {
	switch {
	case cfg.Engine != "":
		ctx := context.Background()
		e, err := openAddress(ctx, cfg.Engine, cfg.Engines, EngineOptions{Logger: cfg.Logger, Upgrade: cfg.Upgrade})
		if err != nil || !cfg.Upgrade {
			return e, err
		}
		if err := upgradeAddress(ctx, cfg.Engine, e); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		return e, nil
	case cfg.content != nil:
		e := cfg.content
		cfg.content = nil
		return e, nil
	case cfg.Memory:
		return memkv.New(), nil
	}
	e, err := openDirectory(cfg, StoreDir(cfg.Data), false)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openDirectory opens the store in a directory, as cfg says. A store in reserve waits for its use.
func openDirectory(cfg *Config, dir string, reserve bool) (*pebblekv.Engine, error) {
	o := pebblekv.Options{
		CacheMB: cfg.CacheMB,
		Relaxed: cfg.Durability == "relaxed",
		Scanned: core.OnlyScanned,
		Kept:    core.GotSingly,
		MinFree: cfg.MinFree,
		Stall:   cfg.Stall,
		Upgrade: cfg.Upgrade,
		Logger:  cfg.Logger,
	}
	o.Reserve = reserve
	if cfg.cache != nil { // one of many stores, see rewind.go
		o.Shared, o.Kept, o.MemTableMB = cfg.cache, nil, testMemTableMB
	}
	e, err := pebblekv.Open(dir, o)
	if err != nil {
		return nil, openError(cfg.Data, err)
	}
	return e, nil
}

// storage is the part of a backend about its engine.
type storage struct{ kv kv.Engine }

// Status implements backend.
func (s storage) Status() any {
	if p, ok := s.kv.(*pebblekv.Engine); ok {
		return p.Metrics()
	}
	return nil
}

// Room implements reopened.
func (s storage) Room() <-chan struct{} {
	if p, ok := s.kv.(*pebblekv.Engine); ok {
		return p.Room()
	}
	return nil
}

// Figures implements measured.
func (s storage) Figures() []figure {
	p, ok := s.kv.(*pebblekv.Engine)
	if !ok {
		return nil
	}
	m := p.Metrics()
	return []figure{
		{"orrery_store_disk_bytes", "Bytes of the store on disk, the log included.", gauge, float64(m.DiskBytes), nil},
		{"orrery_store_log_bytes", "Bytes of the write-ahead log.", gauge, float64(m.WALBytes), nil},
		{"orrery_store_memtable_bytes", "Bytes held by memtables.", gauge, float64(m.MemTableBytes), nil},
		{"orrery_store_cache_bytes", "Bytes held by the block cache.", gauge, float64(m.CacheBytes), nil},
		{"orrery_store_cache_hits_total", "Blocks that were found in the cache.", counter, float64(m.CacheHits), nil},
		{"orrery_store_cache_misses_total", "Blocks that were not found in the cache.", counter,
			float64(m.CacheMisses), nil},
		{"orrery_store_values", "Values of items and heads in their cache.", gauge, float64(m.Values), nil},
		{"orrery_store_value_hits_total", "Values that were found among them.", counter, float64(m.ValueHits), nil},
		{"orrery_store_value_misses_total", "Values that were not found among them.", counter,
			float64(m.ValueMisses), nil},
		{"orrery_store_compactions_total", "Compactions.", counter, float64(m.Compactions), nil},
		{"orrery_store_flushes_total", "Memtable flushes.", counter, float64(m.Flushes), nil},
		{"orrery_store_compaction_debt_bytes", "Bytes that wait to be compacted.", gauge,
			float64(m.CompactionDebt), nil},
		{"orrery_store_tables", "Table files.", gauge, float64(m.Tables), nil},
		{"orrery_store_runs", "Flushed memtables that are not yet merged into the tree.", gauge, float64(m.Runs), nil},
	}
}

// Close implements backend.
func (s storage) Close() error { return s.kv.Close() }

// backing is the core with its storage engine.
type backing struct {
	storage
	eng  *core.Engine
	lock io.Closer // of the data directory, if it isn't the store's; may be nil
}

// Close implements backend. The core closes its storage engine.
func (b *backing) Close() error {
	err := b.eng.Close()
	if b.lock != nil {
		err = errors.Join(err, b.lock.Close())
	}
	return err
}

func openBackend(cfg *Config) (backend, error) {
	e, err := openKV(cfg)
	if err != nil {
		return nil, err
	}
	b, err := openOver(cfg, e)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// openOver opens the core over a storage engine, which it closes if that fails.
func openOver(cfg *Config, e kv.Engine) (*backing, error) {
	files, lock, err := cfg.newSpill(e)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the directory for temporary files: %w", err), e.Close())
	}
	o := core.Options{Clock: cfg.Clock, Budget: cfg.newBudget(), Spill: files, Logger: cfg.Logger,
		PartitionRU: cfg.PartitionRU, MinSlots: cfg.MinSlots, MaxPartition: gigabytes(cfg.PartitionGB),
		MaxLogicalPartition: gigabytes(cfg.LogicalGB), Throttle: cfg.Throttle,
		JournalAge: cfg.StreamAge, JournalBytes: int64(cfg.StreamMB) << 20}
	eng, err := core.Open(context.Background(), e, o)
	b := &backing{storage: storage{e}, eng: eng, lock: lock}
	if err == nil {
		return b, nil
	}
	err = errors.Join(fmt.Errorf("the store can't be opened: %w", err), e.Close())
	if lock != nil {
		err = errors.Join(err, lock.Close())
	}
	return nil, err
}

// Engine returns the core of the server, for sample data and tests.
func (s *Server) Engine() *core.Engine { return s.backing().eng }

// backing returns the core with its store, nil if a test has replaced it.
func (s *Server) backing() *backing {
	if s.stage != nil {
		return s.stage.gen.Load().backing
	}
	b, _ := s.back.(*backing)
	return b
}

// store returns the backend. A test may have replaced the one of the start.
func (s *Server) store() backend {
	if s.stage != nil {
		return s.stage.gen.Load()
	}
	return s.back
}

// watchFeeds observes the age of what feeds show.
func (s *Server) watchFeeds(e *core.Engine) {
	e.OnFeed(func(age time.Duration) { s.seen.feedLag.Observe(age.Seconds()) })
}

// makeDoors makes the APIs that are on.
func makeDoors(s *Server) (map[string]door, error) {
	if s.door(NoSQL) != nil || s.door(Mongo) != nil && s.cfg.MongoDoor.JavaScript {
		s.scripts = script.NewPool(script.Options{Memory: int64(s.cfg.ScriptMemory) << 20, Time: s.cfg.ScriptTime,
			Command: s.cfg.ScriptWorker, Clock: s.cfg.Clock})
	}
	if s.cfg.TestControls {
		return stagedDoors(s)
	}
	e := s.Engine()
	s.watchFeeds(e)
	doors := map[string]door{}
	if b := s.door(NoSQL); b != nil {
		h, err := s.nosqlHandler(e, b)
		if err != nil {
			return nil, err
		}
		doors[NoSQL] = s.openTo(NoSQL, h)
	}
	if b := s.door(Table); b != nil {
		h, err := s.tableHandler(e, b)
		if err != nil {
			return nil, err
		}
		doors[Table] = s.openTo(Table, h)
	}
	if b := s.door(Gremlin); b != nil {
		graphs := graphapi.Graphs(e)
		if err := s.prepareGraphs(e, graphs); err != nil {
			return nil, err
		}
		doors[Gremlin] = s.gremlinDoor(graphs, b)
	}
	if b := s.door(Mongo); b != nil {
		doors[Mongo] = mongoapi.New(e, s.mongoOptions(b))
	}
	return doors, nil
}

// openTo returns the door of a handler, which the web page uses too. The listener of the NoSQL API also has the page
// and the certificate.
func (s *Server) openTo(name string, h http.Handler) *httpDoor {
	s.handlers[name] = h
	if name == NoSQL {
		h = s.withPage(NoSQL, s.withCertificate(h))
	}
	return s.httpDoor(name, h)
}

func (s *Server) nosqlHandler(e *core.Engine, b *bound) (http.Handler, error) {
	return sqlapi.New(e, sqlapi.Options{Account: s.cfg.Account, Key: s.cfg.Key, Auth: s.cfg.Auth,
		Clock: s.cfg.Clock, Wall: wall, Logger: s.log, Consistency: s.cfg.Consistency,
		Strict: slices.Contains(s.cfg.Strict, NoSQL), Scripts: s.scripts,
		MaxTime: s.cfg.MaxTime, Gate: b.gate, Observe: s.seen, Faults: s.faultSource()})
}

func (s *Server) tableHandler(e *core.Engine, b *bound) (http.Handler, error) {
	key, err := base64.StdEncoding.DecodeString(s.cfg.Key)
	if err != nil {
		return nil, err
	}
	return tableapi.New(e, tableapi.Options{Account: s.cfg.Account, Key: key, Auth: s.cfg.Auth,
		Clock: s.cfg.Clock, Wall: wall, Log: s.log, MaxTime: s.cfg.MaxTime, Gate: b.gate, Observe: s.seen,
		Faults: s.faultSource()}), nil
}

// gremlinDoor returns the door for graphs.
func (s *Server) gremlinDoor(graphs graphapi.Opener, b *bound) door {
	g := graphapi.NewServer(graphs, graphapi.Options{Account: s.cfg.Account, Key: s.cfg.Key, Auth: s.cfg.Auth,
		Sources: s.graphNames(), Clock: s.cfg.Clock, Log: s.log, MaxTime: s.cfg.MaxTime, Gate: b.gate,
		Observe: s.seen, Budget: s.Engine().Budget()})
	d := s.openTo(Gremlin, g)
	d.first = g.Shutdown
	return d
}

// graphNames are the graphs of the configured sources.
func (s *Server) graphNames() map[string]graphapi.GraphName {
	sources := map[string]graphapi.GraphName{}
	for name, target := range s.cfg.GremlinSources {
		db, graph, _ := strings.Cut(target, "/")
		sources[name] = graphapi.GraphName{Database: db, Graph: graph}
	}
	return sources
}

// prepareGraphs makes the graphs of all sources that are missing.
func (s *Server) prepareGraphs(e *core.Engine, graphs graphapi.Opener) error {
	err := graphapi.Prepare(context.Background(), graphs, s.graphNames())
	if err != nil && e.Health().State >= kv.Full {
		s.log.Warn("The graphs of the Gremlin sources can't be made", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the graphs of the Gremlin sources can't be made: %w", err)
	}
	return nil
}

// mongoLogin returns the credentials of the MongoDB API.
func (c *Config) mongoLogin() (user, password string) {
	return cmp.Or(c.MongoUser, c.Account), cmp.Or(c.MongoPassword, c.Key)
}

// mongoOptions are the settings of the MongoDB API.
func (s *Server) mongoOptions(b *bound) mongoapi.Options {
	limits := peer.Defaults
	if wait := s.cfg.BodyTimeout; wait > 0 {
		limits.Login, limits.Stall = wait, wait
	}
	m := s.cfg.MongoDoor
	var scripts expr.Scripts
	if m.JavaScript {
		scripts = mongoScripts{s.scripts}
	}
	user, password := s.cfg.mongoLogin()
	return mongoapi.Options{Account: user, Key: password, Auth: s.cfg.Auth, Scripts: scripts,
		Release: m.Release, Standalone: m.Topology == Standalone, SetName: m.ReplicaSet, Advertise: m.Advertise,
		Strict: slices.Contains(s.cfg.Strict, Mongo), PlainText: s.cfg.Insecure, TestCommands: m.TestCommands,
		Disk: s.cfg.Disk, Stop: s.cfg.Stop, MaxConnections: s.cfg.MaxConnections,
		Clock: s.cfg.Clock, Logger: s.log, MaxTime: s.cfg.MaxTime, Gate: b.gate, Observe: s.seen, Limits: limits,
		Faults: s.faultSource(), Record: s.recordCommands(), Log: s.lines}
}
