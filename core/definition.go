package core

import (
	"context"
	"fmt"
	"iter"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Definition is a container as the catalog has it. It never changes. Getting one costs no more than reading its entry,
// and opens nothing.
type Definition struct{ def *catalog.Container }

// Spec returns the container's spec. It must not be changed.
func (d Definition) Spec() *ContainerSpec { return &d.def.Spec }

// ID returns the container's id, Database the id of its database.
func (d Definition) ID() string { return d.def.ID }

// Database returns the id of the container's database.
func (d Definition) Database() string { return d.def.Database }

// RID returns the 8 bytes of the container's _rid; the first 4 are the database's.
func (d Definition) RID() [8]byte { return d.def.RID() }

// Num returns the container's number, which is greater than those of the containers before it: the parent of its
// programs (Resource.Parent).
func (d Definition) Num() uint32 { return d.def.Num }

// ETag returns the entity tag of the container's definition, without quotes.
func (d Definition) ETag() string { return etagOf(d.def.Version, d.def.TS) }

// TS returns when the definition was last changed, in seconds since 1970.
func (d Definition) TS() int64 { return d.def.TS }

// DatabaseETag returns the entity tag of a database, without quotes.
func DatabaseETag(d *Database) string { return etagOf(d.Version, d.TS) }

func etagOf(version uint64, ts int64) string {
	return fmt.Sprintf("%08x-0000-0000-0000-%012x", version, ts)
}

// Containers returns the containers of a database in the order of their creation, opened. For lists of many containers,
// Definitions, Names and Stats cost less.
func (e *Engine) Containers(db string) (out []*Container, err error) {
	if err := e.fresh(context.Background()); err != nil {
		return nil, err
	}
	for def, err := range e.cat.Containers(context.Background(), db, 0) {
		var c *Container
		if err == nil {
			c, err = e.container(context.Background(), def)
		}
		if status.Is(err, status.NotFound) && status.From(err).Sub == status.SubOwnerNotFound && def != nil {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Definitions gives the definitions of a database's containers in the order of their creation, which is that of their
// numbers (Definition.Num), from a number on. It doesn't hold them in memory. A missing database is NotFound with
// sub-status 1003.
func (e *Engine) Definitions(ctx context.Context, db string, from uint32) iter.Seq2[Definition, error] {
	return func(yield func(Definition, error) bool) {
		if err := e.fresh(ctx); err != nil {
			yield(Definition{}, err)
			return
		}
		for def, err := range e.cat.Containers(ctx, db, from) {
			if !yield(Definition{def}, err) || err != nil {
				return
			}
		}
	}
}

// Numbered gives the definitions of the containers whose numbers end with these low bits, databases in the order of
// their creation. It reads no others.
func (e *Engine) Numbered(ctx context.Context, low uint32, bits int) iter.Seq2[Definition, error] {
	return func(yield func(Definition, error) bool) {
		if err := e.fresh(ctx); err != nil {
			yield(Definition{}, err)
			return
		}
		for def, err := range e.cat.Numbered(ctx, low, bits) {
			if !yield(Definition{def}, err) {
				return
			}
		}
	}
}

// ContainerCount returns the number of containers of a database; 0 if it is missing.
func (e *Engine) ContainerCount(ctx context.Context, db string) (int, error) {
	if err := e.fresh(ctx); err != nil {
		return 0, err
	}
	return e.cat.Count(db), nil
}

// ContainerName is a container's id and _rid.
type ContainerName = catalog.Name

// Names gives the names of a database's containers in the order of ids, byte by byte, beginning at an id. It reads no
// definitions. A missing database has none.
func (e *Engine) Names(ctx context.Context, db, from string) (iter.Seq[ContainerName], error) {
	if err := e.fresh(ctx); err != nil {
		return nil, err
	}
	return e.cat.Names(db, from), nil
}

// Stats describes the contents of a container.
type Stats struct {
	Definition
	Items, Bytes int64
	Rebuild      int         // how much of an index rebuild is done, in percent; 100 when none is under way
	Partitions   []Partition // its physical partitions
	open         *store.Container
}

// Settle waits until what the Stats show is durable. It is for answers that show them to clients of an API.
func (s *Stats) Settle() error {
	if s.open == nil {
		return nil // there were no writes for minutes
	}
	return s.open.Settle()
}

// Stats gives the contents of the containers of a database ("" for all databases) in the order of their creation. It
// doesn't open containers. An error concerns one container, and the others follow.
func (e *Engine) Stats(ctx context.Context, db string) iter.Seq2[Stats, error] {
	return func(yield func(Stats, error) bool) {
		if err := e.fresh(ctx); err != nil {
			yield(Stats{}, err)
			return
		}
		for _, d := range e.cat.Databases() {
			if db != "" && d.ID != db {
				continue
			}
			for def, err := range e.cat.Containers(ctx, d.ID, 0) {
				var st Stats
				if err == nil {
					st, err = e.stats(ctx, def)
				}
				if status.Is(err, status.NotFound) {
					continue // dropped meanwhile
				}
				if !yield(st, err) {
					return
				}
			}
		}
	}
}

func (e *Engine) stats(ctx context.Context, def *catalog.Container) (Stats, error) {
	held, slots, rt, err := e.store.Stats(ctx, def)
	if err != nil {
		return Stats{}, err
	}
	st := Stats{Definition: Definition{def}, Rebuild: 100, open: rt}
	if rt != nil {
		st.Rebuild = rt.IndexProgress(ctx)
	}
	for i := range held {
		p := partitionOf(def.PartitionKey.EPKKind(), slots, i)
		p.add(held[i])
		st.Items, st.Bytes = st.Items+p.Items, st.Bytes+p.Bytes
		st.Partitions = append(st.Partitions, p)
	}
	return st, nil
}

// OpenContainers returns the number of open containers: those with requests in the last minutes.
func (e *Engine) OpenContainers() int { return e.store.Open() }

// The operations of a Condition: see catalog.Condition.
const (
	OpExists         = catalog.OpExists
	OpType           = catalog.OpType
	OpEqual          = catalog.OpEqual
	OpLess           = catalog.OpLess
	OpLessOrEqual    = catalog.OpLessOrEqual
	OpGreater        = catalog.OpGreater
	OpGreaterOrEqual = catalog.OpGreaterOrEqual
)
