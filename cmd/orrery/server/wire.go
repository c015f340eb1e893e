package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/graphapi"
	"github.com/orrerydb/orrery/mongoapi"
	"github.com/orrerydb/orrery/sqlapi"
	"github.com/orrerydb/orrery/tableapi"
)

// openKV opens the storage engine that cfg asks for.
func openKV(cfg *Config) (kv.Engine, error) {
	if cfg.Memory {
		return memkv.New(), nil
	}
	e, err := pebblekv.Open(StoreDir(cfg.Data), pebblekv.Options{
		CacheMB: cfg.CacheMB,
		Relaxed: cfg.Durability == "relaxed",
		Scanned: core.OnlyScanned,
		Kept:    core.GotSingly,
		Logger:  cfg.Logger,
	})
	if err != nil {
		return nil, openError(cfg.Data, err)
	}
	return e, nil
}

// storage is what a backend knows about its engine.
type storage struct{ kv kv.Engine }

// Status implements backend.
func (s storage) Status() any {
	if p, ok := s.kv.(*pebblekv.Engine); ok {
		return p.Metrics()
	}
	return nil
}

// Gauges implements measured.
func (s storage) Gauges() []gauge {
	p, ok := s.kv.(*pebblekv.Engine)
	if !ok {
		return nil
	}
	m := p.Metrics()
	return []gauge{
		{"orrery_store_disk_bytes", "Bytes of the store on disk, the log included.", float64(m.DiskBytes)},
		{"orrery_store_log_bytes", "Bytes of the write-ahead log.", float64(m.WALBytes)},
		{"orrery_store_memtable_bytes", "Bytes held by memtables.", float64(m.MemTableBytes)},
		{"orrery_store_cache_bytes", "Bytes held by the block cache.", float64(m.CacheBytes)},
		{"orrery_store_cache_hits", "Block cache hits since start.", float64(m.CacheHits)},
		{"orrery_store_cache_misses", "Block cache misses since start.", float64(m.CacheMisses)},
		{"orrery_store_values", "Values of items and heads that are kept one by one.", float64(m.Values)},
		{"orrery_store_value_hits", "Values that were found among them since start.", float64(m.ValueHits)},
		{"orrery_store_value_misses", "Values that were not found among them since start.", float64(m.ValueMisses)},
		{"orrery_store_compactions", "Compactions since start.", float64(m.Compactions)},
		{"orrery_store_flushes", "Memtable flushes since start.", float64(m.Flushes)},
		{"orrery_store_compaction_debt_bytes", "Bytes that wait to be compacted.", float64(m.CompactionDebt)},
		{"orrery_store_tables", "Table files.", float64(m.Tables)},
		{"orrery_store_runs", "Flushed memtables that are not yet merged into the tree.", float64(m.Runs)},
	}
}

// Close implements backend.
func (s storage) Close() error { return s.kv.Close() }

// backing is the core on its storage engine.
type backing struct {
	storage
	eng *core.Engine
}

// Close implements backend; the core closes its storage engine.
func (b *backing) Close() error { return b.eng.Close() }

func openBackend(cfg *Config) (backend, error) {
	e, err := openKV(cfg)
	if err != nil {
		return nil, err
	}
	eng, err := core.Open(context.Background(), e, core.Options{Clock: cfg.Clock})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the store can't be opened: %w", err), e.Close())
	}
	return &backing{storage{e}, eng}, nil
}

// Engine is the core that the server runs on, for sample data and tests.
func (s *Server) Engine() *core.Engine { return s.back.(*backing).eng }

// makeDoors builds the APIs that are switched on.
func makeDoors(s *Server) (map[string]door, error) {
	e := s.Engine()
	key, err := base64.StdEncoding.DecodeString(s.cfg.Key)
	if err != nil {
		return nil, err
	}
	doors := map[string]door{}
	if s.Addr(NoSQL) != "" {
		h, err := sqlapi.New(e, sqlapi.Options{Account: s.cfg.Account, Key: s.cfg.Key, Auth: s.cfg.Auth, Clock: s.cfg.Clock, Logger: s.log, Consistency: s.cfg.Consistency, Strict: slices.Contains(s.cfg.Strict, NoSQL)})
		if err != nil {
			return nil, err
		}
		doors[NoSQL] = newHTTPDoor(s.guarded(s.count(NoSQL, s.withCertificate(h))), s.log)
	}
	if s.Addr(Table) != "" {
		h := tableapi.New(e, tableapi.Options{Account: s.cfg.Account, Key: key, Auth: s.cfg.Auth, Clock: s.cfg.Clock, Log: s.log})
		doors[Table] = newHTTPDoor(s.guarded(s.count(Table, h)), s.log)
	}
	if s.Addr(Gremlin) != "" {
		if doors[Gremlin], err = s.gremlinDoor(e); err != nil {
			return nil, err
		}
	}
	if b := s.door(Mongo); b != nil {
		doors[Mongo] = mongoapi.New(e, mongoapi.Options{Account: s.cfg.Account, Key: s.cfg.Key, Auth: s.cfg.Auth,
			Clock: s.cfg.Clock, Logger: s.log, Requests: &b.requests})
	}
	return doors, nil
}

// gremlinDoor makes the graphs of all sources first.
func (s *Server) gremlinDoor(e *core.Engine) (door, error) {
	sources := map[string]graphapi.GraphName{}
	for name, target := range s.cfg.GremlinSources {
		db, graph, _ := strings.Cut(target, "/")
		sources[name] = graphapi.GraphName{Database: db, Graph: graph}
	}
	g := graphapi.New(e, graphapi.Options{Account: s.cfg.Account, Key: s.cfg.Key, Auth: s.cfg.Auth, Sources: sources,
		Clock: s.cfg.Clock, Log: s.log})
	if err := g.Prepare(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("the graphs of the Gremlin sources can't be made: %w", err), g.Shutdown(context.Background()))
	}
	d := newHTTPDoor(s.guarded(s.count(Gremlin, g)), s.log)
	d.first = g.Shutdown
	return d, nil
}
