package catalog

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// Settings are what the partition map depends on, and how the store is used.
type Settings struct {
	PartitionRU int // most RU/s of one physical partition; 0 = DefaultPartitionRU
	MinSlots    int // least number of slots of a container; 0 = one for each of its partitions

	ReadOnly bool // the store is only read, so it is opened even while it is being moved (Move)

	Journal journal.Settings // of the store's journal; ReadOnly is added
}

// Catalog is the set of databases and containers. Safe for concurrent use.
type Catalog struct {
	eng kv.Engine
	clk *clock.Clock
	set Settings
	mu  work.Lock // allows one change at a time
	cur atomic.Pointer[state]
	jou *journal.Journal

	recent recent
	trust  trust

	unsure bool // the outcome of a commit is unknown: the store is read again before the next change; guarded by mu
}

// Open reads the catalog of a store. An empty store has an empty catalog. Definitions of containers are read on first
// use.
func Open(eng kv.Engine, clk *clock.Clock, set Settings) (*Catalog, error) {
	if set.PartitionRU <= 0 {
		set.PartitionRU = DefaultPartitionRU
	}
	c := &Catalog{eng: eng, clk: clk, set: set, mu: work.NewLock(), recent: recent{seed: maphash.MakeSeed()}}
	st, err := load(context.Background(), eng, nil, set.ReadOnly)
	if err != nil {
		return nil, err
	}
	c.show(st)
	set.Journal.ReadOnly = set.ReadOnly
	if c.jou, err = journal.Open(context.Background(), eng, clk, set.Journal); err != nil {
		return nil, err
	}
	return c, nil
}

// Journal returns the store's journal. Changes of the catalog are written to it.
func (c *Catalog) Journal() *journal.Journal { return c.jou }

// errNoDatabase and errNoContainer are the errors for missing parents and resources.
func errNoDatabase(id string, sub int) error {
	return status.WithSub(status.NotFound, sub, "Resource Not Found: database %q", id)
}

func errNoContainer(id string, sub int) error {
	return status.WithSub(status.NotFound, sub, "Resource Not Found: container %q", id)
}

// owner returns the database that something belongs to; NotFound with sub-status 1003 when there is none.
func (s *state) owner(db string) (*database, error) {
	if d, ok := s.byID.get(db); ok {
		return d, nil
	}
	return nil, errNoDatabase(db, status.SubOwnerNotFound)
}

// container returns a container and its database. The errors are those of Catalog.Container.
func (s *state) container(db, id string) (*database, *ref, error) {
	d, err := s.owner(db)
	if err != nil {
		return nil, nil, err
	}
	if r, ok := d.ids.get(id); ok {
		return d, r, nil
	}
	return nil, nil, errNoContainer(id, 0)
}

// definition returns the definition of a container and keeps it for later calls.
func (c *Catalog) definition(ctx context.Context, d *database, r *ref) (*Container, error) {
	k, err := c.passing(ctx, d, r)
	if err == nil && !r.def.CompareAndSwap(nil, k) { // a change has made sure that the kept definition is right
		k = r.def.Load()
	}
	return k, err
}

// passing returns the definition of a container without keeping it. It is for loops over many containers. A change that
// removes or renames the container meanwhile has kept its definition before.
func (c *Catalog) passing(ctx context.Context, d *database, r *ref) (*Container, error) {
	k := r.def.Load()
	if k != nil {
		return k, nil
	}
	k, err := c.read(ctx, d, r)
	if kept := r.def.Load(); kept != nil {
		return kept, nil
	}
	return k, err
}

// readTime is the longest time in which a container's entry is read from a shared store.
const readTime = 5 * time.Second

// read reads a container's entry. It ends with ctx. With a shared store it also ends after readTime.
func (c *Catalog) read(ctx context.Context, d *database, r *ref) (*Container, error) {
	within := ctx
	if c.eng.Shared() {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, readTime)
		defer cancel()
	}
	b, err := c.eng.Get(within, nil, keys.AppendMeta(nil, keys.MetaContainer, d.Num, r.id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, errNoContainer(r.id, 0) // dropped in the meantime
	}
	if err != nil && ctx.Err() != nil {
		return nil, status.Wrap(status.Timeout, err, "The request took too long.")
	}
	if err != nil {
		return nil, translate(err)
	}
	k, err := decodeContainer(b, d.ID)
	if err != nil {
		return nil, status.Wrap(status.Corruption, err, "The definition of container %q can't be read.", r.id)
	}
	if k.Num == r.num && k.ID == r.id && k.DBNum == d.Num {
		return k, nil
	}
	if k.ID == r.id && k.DBNum == d.Num && k.Num > r.num { // dropped and created again in the meantime
		return nil, errNoContainer(r.id, 0)
	}
	return nil, status.New(status.Corruption, "the catalog entry of container %q is another one's", r.id)
}

// Database returns a database; NotFound when there is none.
func (c *Catalog) Database(id string) (*Database, error) {
	if d, ok := c.cur.Load().byID.get(id); ok {
		return d.Database, nil
	}
	return nil, errNoDatabase(id, 0)
}

// DatabaseByRID returns the database with these 4 bytes of _rid.
func (c *Catalog) DatabaseByRID(rid [4]byte) (*Database, error) {
	if d, ok := c.cur.Load().byNum.get(ridNumber(rid[:])); ok {
		return d.Database, nil
	}
	return nil, errNoDatabase("", 0)
}

// Databases returns all databases in the order of their creation.
func (c *Catalog) Databases() []*Database {
	st := c.cur.Load()
	out := make([]*Database, 0, st.byNum.len())
	for d := range st.byNum.all() {
		out = append(out, d.Database)
	}
	return out
}

// Container returns a container. A missing database is NotFound with sub-status 1003, a missing container NotFound.
func (c *Catalog) Container(ctx context.Context, db, id string) (*Container, error) {
	st := c.cur.Load()
	place := c.recent.at(db, id)
	seen := place.Load()
	if seen != nil && seen.serial == st.serial && seen.id == id && seen.db == db {
		return seen.k, nil
	}
	d, r, err := st.container(db, id)
	if err != nil {
		return nil, err
	}
	k, err := c.definition(ctx, d, r)
	if err == nil && (seen == nil || seen.serial != st.serial) {
		place.Store(&recentName{st.serial, d.ID, r.id, k})
	}
	return k, err
}

// ContainerByRID returns the container with these 8 bytes of _rid.
func (c *Catalog) ContainerByRID(ctx context.Context, rid [8]byte) (*Container, error) {
	if d, ok := c.cur.Load().byNum.get(ridNumber(rid[:4])); ok {
		if r, ok := d.numbers.get(ridNumber(rid[4:])); ok {
			return c.definition(ctx, d, r)
		}
	}
	return nil, errNoContainer("", 0)
}

// ContainersFold returns the containers of a database whose ids equal id except for case. A missing database has none.
func (c *Catalog) ContainersFold(ctx context.Context, db, id string) (out []*Container, err error) {
	d, ok := c.cur.Load().byID.get(db)
	if !ok {
		return nil, nil
	}
	for _, r := range d.folded(id) {
		k, err := c.definition(ctx, d, r)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// ContainerFold returns the container with this id, or else the only one whose id differs from it only in case. The
// errors are those of Container.
func (c *Catalog) ContainerFold(ctx context.Context, db, id string) (*Container, error) {
	k, err := c.Container(ctx, db, id)
	if status.CodeOf(err) != status.NotFound {
		return k, err
	}
	if ks, ferr := c.ContainersFold(ctx, db, id); ferr != nil || len(ks) == 1 {
		return append(ks, nil)[0], ferr
	}
	return nil, err
}

// Containers gives the current containers of a database in the order of their creation, which is that of their
// numbers, from a number on. It doesn't hold them in memory. A missing database is NotFound with sub-status 1003. A
// definition that can't be read is given as an error, and the others follow, until ctx ends.
func (c *Catalog) Containers(ctx context.Context, db string, from uint32) iter.Seq2[*Container, error] {
	return func(yield func(*Container, error) bool) {
		d, err := c.cur.Load().owner(db)
		if err != nil {
			yield(nil, err)
			return
		}
		for r := range d.numbers.from(from) {
			k, err := c.passing(ctx, d, r)
			if status.Is(err, status.NotFound) {
				continue // dropped in the meantime
			}
			if !yield(k, err) || err != nil && ctx.Err() != nil {
				return
			}
		}
	}
}

// Count returns the number of containers of a database; 0 if it is missing.
func (c *Catalog) Count(db string) int {
	if d, ok := c.cur.Load().byID.get(db); ok {
		return d.ids.len()
	}
	return 0
}

// Name is a container's id and _rid.
type Name struct {
	ID  string
	RID [8]byte
}

// Names gives the names of a database's containers in the order of ids, byte by byte, beginning at an id. It reads no
// definition. A missing database has none.
func (c *Catalog) Names(db, from string) iter.Seq[Name] {
	return func(yield func(Name) bool) {
		d, ok := c.cur.Load().byID.get(db)
		if !ok {
			return
		}
		for r := range d.ids.from(from) {
			if !yield(Name{r.id, ridOf(d.Num, r.num)}) {
				return
			}
		}
	}
}

// Timed gives the current containers with a default time to live or a log of all versions. It doesn't hold them in
// memory.
func (c *Catalog) Timed(ctx context.Context) iter.Seq2[*Container, error] {
	return c.some(ctx, func(d *database) iter.Seq[*ref] { return d.timed.all() })
}

// Rebuilding gives the containers whose index entries may still follow former indexing policies.
func (c *Catalog) Rebuilding(ctx context.Context) iter.Seq2[*Container, error] {
	return c.some(ctx, func(d *database) iter.Seq[*ref] {
		return func(yield func(*ref) bool) {
			for r := range d.numbers.all() {
				if r.flags&flagFormer != 0 && !yield(r) {
					return
				}
			}
		}
	})
}

// Numbered gives the current containers whose numbers end with these low bits.
func (c *Catalog) Numbered(ctx context.Context, low uint32, bits int) iter.Seq2[*Container, error] {
	last := uint64(c.cur.Load().account.NextContainer)
	return c.some(ctx, func(d *database) iter.Seq[*ref] {
		return func(yield func(*ref) bool) {
			for n := uint64(low); n < last; n += 1 << bits {
				if r, ok := d.numbers.get(uint32(n) | 1<<31); ok && !yield(r) {
					return
				}
			}
		}
	})
}

// some gives containers of every database, chosen by of, until ctx ends.
func (c *Catalog) some(ctx context.Context, of func(*database) iter.Seq[*ref]) iter.Seq2[*Container, error] {
	return func(yield func(*Container, error) bool) {
		for d := range c.cur.Load().byNum.all() {
			for r := range of(d) {
				k, err := c.passing(ctx, d, r)
				if !yield(k, err) || err != nil && ctx.Err() != nil {
					return
				}
			}
		}
	}
}
