package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"sync/atomic"

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
func (c *Catalog) definition(d *database, r *ref) (*Container, error) {
	k, err := c.passing(d, r)
	if err == nil && !r.def.CompareAndSwap(nil, k) { // a change has made sure that the kept definition is right
		k = r.def.Load()
	}
	return k, err
}

// passing returns the definition of a container without keeping it. It is for loops over many containers. A change that
// removes or renames the container meanwhile has kept its definition before.
func (c *Catalog) passing(d *database, r *ref) (*Container, error) {
	k := r.def.Load()
	if k != nil {
		return k, nil
	}
	k, err := c.read(d, r)
	if kept := r.def.Load(); kept != nil {
		return kept, nil
	}
	return k, err
}

// read reads a container's entry. Later callers find the definition in memory, so the read doesn't end with the request
// that needs it first.
func (c *Catalog) read(d *database, r *ref) (*Container, error) {
	b, err := c.eng.Get(context.Background(), nil, keys.AppendMeta(nil, keys.MetaContainer, d.Num, r.id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, errNoContainer(r.id, 0) // dropped in the meantime
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
func (c *Catalog) Container(db, id string) (*Container, error) {
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
	k, err := c.definition(d, r)
	if err == nil && (seen == nil || seen.serial != st.serial) {
		place.Store(&recentName{st.serial, d.ID, r.id, k})
	}
	return k, err
}

// ContainerByRID returns the container with these 8 bytes of _rid.
func (c *Catalog) ContainerByRID(rid [8]byte) (*Container, error) {
	if d, ok := c.cur.Load().byNum.get(ridNumber(rid[:4])); ok {
		if r, ok := d.numbers.get(ridNumber(rid[4:])); ok {
			return c.definition(d, r)
		}
	}
	return nil, errNoContainer("", 0)
}

// ContainersFold returns the containers of a database whose ids equal id except for case. A missing database has none.
func (c *Catalog) ContainersFold(db, id string) (out []*Container, err error) {
	d, ok := c.cur.Load().byID.get(db)
	if !ok {
		return nil, nil
	}
	for _, r := range d.folded(id) {
		k, err := c.definition(d, r)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// ContainerFold returns the container with this id, or else the only one whose id differs from it only in case. The
// errors are those of Container.
func (c *Catalog) ContainerFold(db, id string) (*Container, error) {
	k, err := c.Container(db, id)
	if status.CodeOf(err) != status.NotFound {
		return k, err
	}
	if ks, ferr := c.ContainersFold(db, id); ferr != nil || len(ks) == 1 {
		return append(ks, nil)[0], ferr
	}
	return nil, err
}

// Containers gives the current containers of a database in the order of their creation, which is that of their numbers,
// from a number on. It doesn't hold them in memory. A missing database is NotFound with sub-status 1003. A definition
// that can't be read is given as an error, and the others follow.
func (c *Catalog) Containers(db string, from uint32) iter.Seq2[*Container, error] {
	return func(yield func(*Container, error) bool) {
		d, err := c.cur.Load().owner(db)
		if err != nil {
			yield(nil, err)
			return
		}
		for r := range d.numbers.from(from) {
			k, err := c.passing(d, r)
			if status.Is(err, status.NotFound) {
				continue // dropped in the meantime
			}
			if !yield(k, err) {
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
func (c *Catalog) Timed() iter.Seq2[*Container, error] {
	return c.some(func(d *database) iter.Seq[*ref] { return d.timed.all() })
}

// Rebuilding gives the containers whose index entries may still follow former indexing policies.
func (c *Catalog) Rebuilding() iter.Seq2[*Container, error] {
	return c.some(func(d *database) iter.Seq[*ref] {
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
func (c *Catalog) Numbered(low uint32, bits int) iter.Seq2[*Container, error] {
	last := uint64(c.cur.Load().account.NextContainer)
	return c.some(func(d *database) iter.Seq[*ref] {
		return func(yield func(*ref) bool) {
			for n := uint64(low); n < last; n += 1 << bits {
				if r, ok := d.numbers.get(uint32(n) | 1<<31); ok && !yield(r) {
					return
				}
			}
		}
	})
}

// some gives containers of every database, chosen by of.
func (c *Catalog) some(of func(*database) iter.Seq[*ref]) iter.Seq2[*Container, error] {
	return func(yield func(*Container, error) bool) {
		for d := range c.cur.Load().byNum.all() {
			for r := range of(d) {
				if !yield(c.passing(d, r)) {
					return
				}
			}
		}
	}
}

func databaseKey(d *Database) []byte { return keys.AppendMeta(nil, keys.MetaDatabase, 0, d.ID) }

func containerKey(k *Container) []byte {
	return keys.AppendMeta(nil, keys.MetaContainer, k.DBNum, k.ID)
}

// errTaken is the error for a name that is taken.
func errTaken() error {
	return status.New(status.Conflict, "Resource with specified id or name already exists.")
}

// CreateDatabase adds a database; Conflict when the id is taken.
func (c *Catalog) CreateDatabase(ctx context.Context, id string, t Throughput) (out *Database, err error) {
	err = c.change(ctx, func(x *draft) error {
		if _, ok := x.byID.get(id); ok {
			return errTaken()
		}
		out = &Database{ID: id, Num: x.account.NextDB, Version: x.nextVersion(), TS: c.clk.Now().Unix(), Throughput: t}
		x.account.NextDB++
		x.put(&database{Database: out})
		return x.write(databaseKey(out), out)
	})
	return out, err
}

// ReplaceDatabase changes a database's throughput.
func (c *Catalog) ReplaceDatabase(ctx context.Context, id string, f func(*Database) (Throughput, error)) (
	out *Database, err error) {
	err = c.change(ctx, func(x *draft) error {
		old, ok := x.byID.get(id)
		if !ok {
			return errNoDatabase(id, 0)
		}
		t, err := f(old.Database)
		if err != nil {
			return err
		}
		n, d := *old, *old.Database
		d.Throughput, d.TS, d.Version = t.after(old.Throughput), c.clk.Now().Unix(), x.nextVersion()
		n.Database, out = &d, &d
		x.put(&n)
		return x.write(databaseKey(out), out)
	})
	return out, err
}

// CreateContainer adds a container with its slots and physical partitions; Conflict when the id is taken. head is the
// first value of every slot's head, and is written in the same commit. So a writer that finds no head knows that the
// container was dropped.
func (c *Catalog) CreateContainer(ctx context.Context, db string, spec Spec, head []byte) (out *Container, err error) {
	return c.CreateWith(ctx, db, spec, func() []byte { return head })
}

// CreateWith is CreateContainer with a head that depends on the catalog: it is called for each decision.
func (c *Catalog) CreateWith(ctx context.Context, db string, spec Spec, head func() []byte) (out *Container,
	err error) {
	err = c.change(ctx, func(x *draft) error {
		d, err := x.owner(db)
		if err != nil {
			return err
		}
		if err := d.free(c, spec.ID, spec.FoldID); err != nil {
			return err
		}
		if err := c.checkThroughput(spec.Throughput); err != nil {
			return err
		}
		event := cmp.Or(string(spec.Event), string(newsOf("create")))
		spec := spec
		spec.Event = nil
		k := &Container{Spec: spec.Clone(), Database: db, DBNum: d.Num, Num: x.account.NextContainer | 1<<31,
			Gen: x.account.NextGen, Version: x.nextVersion(), TS: c.clk.Now().Unix(), IndexVersion: 1}
		if err := k.prepare(); err != nil {
			return err
		}
		x.account.NextContainer++
		x.account.NextGen++
		c.layOut(k)
		first := head()
		for slot := range k.SlotKeys() {
			x.b.Put(keys.AppendPrefix(nil, slot, keys.KindHead), first)
		}
		out = k
		x.record(k, []byte(event))
		return x.writeContainer(d, k)
	})
	return out, err
}

// Unborn returns the definition that a container of a database would have, without creating it: Conflict when the id is
// taken. Its database need not exist. Its generation is another container's.
func (c *Catalog) Unborn(db string, spec Spec) (*Container, error) {
	k := &Container{Spec: spec.Clone(), Database: db, Version: 1, TS: c.clk.Now().Unix(), IndexVersion: 1}
	if d, err := c.cur.Load().owner(db); err == nil {
		if err := d.free(c, spec.ID, spec.FoldID); err != nil {
			return nil, err
		}
		k.DBNum = d.Num
	}
	if err := c.checkThroughput(spec.Throughput); err != nil {
		return nil, err
	}
	if err := k.prepare(); err != nil {
		return nil, err
	}
	c.layOut(k)
	return k, nil
}

// SlotsOf returns the number of slots of each partition of a new container that has n of them: one, unless the settings
// ask for more. A query over all partitions seeks in each slot, so each further one would make it slower. A partition
// that has to be split later is split by a copy of its slot. On a shared engine each slot counts its own LSNs, and a
// partition has one position, so it has one slot.
func (c *Catalog) SlotsOf(n int) int {
	if c.eng.Shared() {
		return 1
	}
	return max(1, (c.set.MinSlots+n-1)/n)
}

// layOut gives a new container its slots, equal shares of the hash, and its physical partitions over them.
func (c *Catalog) layOut(k *Container) {
	n := c.PartitionsFor(k.Throughput)
	slots := c.SlotsOf(n) * n
	k.SlotMap = newSlotMap(k.PartitionKey.EPKKind(), slots, n)
}

// missingAs turns the error for a missing database into one for a missing container.
func missingAs(err error, id string) error {
	if status.Is(err, status.NotFound) {
		return errNoContainer(id, 0)
	}
	return err
}

// changing finds a container that is to be changed, and its definition.
func (x *draft) changing(c *Catalog, db, id string) (*database, *ref, *Container, error) {
	d, r, err := x.container(db, id)
	if err != nil {
		return nil, nil, nil, err
	}
	k, err := c.definition(d, r)
	return d, r, k, err
}

// ErrRedefined is the error of a replacement that was decided on a definition that is no longer the present one.
var ErrRedefined = status.New(status.RetryWith, "The definition of the container has been changed meanwhile.")

// ReplaceContainer changes the spec of a container. old is the definition on which spec was decided: if it isn't the
// present one, nothing is changed, and the error is ErrRedefined. The partition key, id, unique keys and declared
// indexes don't change. inUse are the versions of the indexing policy that index entries follow now: those policies are
// kept as Former.
func (c *Catalog) ReplaceContainer(ctx context.Context, old *Container, spec Spec, inUse []uint32) (*Container, error) {
	return c.changeSpec(ctx, old.Database, old.ID, old.Gen, inUse, func(now *Container, s *Spec) error {
		if now.Version != old.Version {
			return ErrRedefined
		}
		declared := s.Declared
		*s = spec.Clone()
		s.Event = spec.Event
		s.Declared = declared
		return nil
	})
}

// ChangeSpec changes the spec of the container with a generation by a function, which gets the present one and may
// change its declared indexes. f may be called more than once. inUse is as for ReplaceContainer.
func (c *Catalog) ChangeSpec(ctx context.Context, db, id string, gen uint32, inUse []uint32, f func(*Spec) error) (
	*Container, error) {
	return c.changeSpec(ctx, db, id, gen, inUse, func(_ *Container, s *Spec) error { return f(s) })
}

// changeSpec is ChangeSpec with a function that also gets the present definition.
func (c *Catalog) changeSpec(ctx context.Context, db, id string, gen uint32, inUse []uint32,
	f func(*Container, *Spec) error) (out *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, _, old, err := x.changing(c, db, id)
		if err == nil && old.Gen != gen {
			err = errNoContainer(id, 0)
		}
		if err != nil {
			return missingAs(err, id)
		}
		k := *old
		k.Spec = old.Spec.Clone()
		if err := f(old, &k.Spec); err != nil {
			return err
		}
		if k.Throughput != old.Throughput { // a store can have more than the present settings allow
			if err := c.checkThroughput(k.Throughput); err != nil {
				return err
			}
		}
		k.Throughput = k.Throughput.after(old.Throughput)
		k.Spec.ID, k.Spec.PartitionKey, k.Spec.UniqueKeys, k.Spec.FoldID = old.ID, old.PartitionKey,
			old.UniqueKeys, old.FoldID
		k.TS, k.Version = c.clk.Now().Unix(), x.nextVersion()
		if !bytes.Equal(k.IndexingPolicy, old.IndexingPolicy) {
			k.IndexVersion++
			k.Former = nil
			for _, f := range append(slices.Clone(old.Former), FormerPolicy{old.IndexVersion, old.IndexingPolicy}) {
				// other processes may begin a rebuild from any of them
				if c.eng.Shared() || slices.Contains(inUse, f.Version) {
					k.Former = append(k.Former, f)
				}
			}
		}
		if k.Event != nil {
			x.record(&k, k.Event)
			k.Event = nil
		}
		out = &k
		return x.writeContainer(d, &k)
	})
	return out, err
}

// ForgetFormer drops the former indexing policies of a container whose index entries all follow this version of the
// policy. It does nothing when there is a newer version. It doesn't change the definition otherwise, or its version.
func (c *Catalog) ForgetFormer(ctx context.Context, rid [8]byte, version uint32) error {
	return c.change(ctx, func(x *draft) error {
		d, ok := x.byNum.get(ridNumber(rid[:4]))
		if !ok {
			return nil
		}
		r, ok := d.numbers.get(ridNumber(rid[4:]))
		if !ok {
			return nil
		}
		old, err := c.definition(d, r)
		if err != nil || old.IndexVersion != version || len(old.Former) == 0 {
			return err
		}
		k := *old
		k.Former = nil
		return x.writeContainer(d, &k)
	})
}

// RenameContainer gives a container another id within its database. Its items are not moved. With replace, the
// container that has that id is removed in the same commit and returned as gone. The caller then drops its range.
func (c *Catalog) RenameContainer(ctx context.Context, db, id, to string, replace bool) (
	out, gone *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		gone = nil
		d, r, old, err := x.changing(c, db, id)
		if err != nil {
			return missingAs(err, id)
		}
		if replace && to != id {
			if _, g, k, err := x.changing(c, db, to); err == nil {
				gone = k
				d = x.dropContainer(d, g, k)
			} else if !status.Is(err, status.NotFound) {
				return err
			}
		}
		if err := d.free(c, to, old.FoldID, r); err != nil {
			return err
		}
		k := *old
		k.ID = to
		k.TS, k.Version = c.clk.Now().Unix(), x.nextVersion()
		x.b.Delete(containerKey(old))
		x.recordRename(old, to, gone)
		out = &k
		return x.writeContainer(d, &k)
	})
	if err != nil {
		return nil, nil, err
	}
	return out, gone, nil
}

// DropContainer removes a container and its slot heads, and returns it. The caller drops its range and then calls
// Removed.
func (c *Catalog) DropContainer(ctx context.Context, db, id string) (out *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, r, k, err := x.changing(c, db, id)
		if err != nil {
			return err
		}
		out = k
		x.b.Frees = true
		x.record(k, newsOf("drop"))
		x.put(x.dropContainer(d, r, k))
		return nil
	})
	return out, err
}

// dropContainer removes the entry and every slot head in one commit, so that a later write fails because the head is
// missing. It returns the database without the container and its programs.
func (x *draft) dropContainer(d *database, r *ref, k *Container) *database {
	b := &x.b
	b.Delete(containerKey(k))
	b.Delete(keys.AppendMeta(nil, keys.MetaCounter, k.Gen, ""))
	for slot := range k.SlotKeys() {
		b.Delete(keys.AppendPrefix(nil, slot, keys.KindHead))
	}
	b.Put(droppedKey(k.Gen), note)
	d = d.without(r)
	d.shelf = x.dropChildren(d.shelf, programKinds, k.Num)
	return d
}
