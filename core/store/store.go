// Package store keeps items: read, write, etag, _ts, LSN, TTL, unique keys, index upkeep and the feed entry of every
// item. Tx is a transaction on one logical partition.
//
// Invariants:
//
//  1. An item, its number, index, unique, ttl and feed entries, the slot head and the logical head are committed
//     together in one kv.Write, or not at all.
//  2. Every commit rewrites the slot head under the precondition that it is the one that was read. So LSN order is
//     commit order in a slot, the counts of heads are exact, and a write into a dropped container fails.
//  3. A slot's latch is held while the final bytes are made and the batch becomes visible. It is never held while the
//     batch becomes durable or while a caller's code runs.
//  4. No result is returned before everything that it depends on is durable. A writer waits for its own commit. A
//     reader that returns an item waits for the item's commit. A reader that returns an absence, a count or a refusal
//     waits for every commit that was visible to it.
//
// Example: a create of item "x" plans its batch, takes the slot's latch, writes item, entries and heads with LSN 42,
// releases the latch and waits for durability. A concurrent read sees "x" before that, and waits for LSN 42 too.
package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// Limits that the store enforces, in bytes.
type Limits struct {
	Item             int   // one document; 0 = 16 MiB
	LogicalPartition int64 // all items of one partition key value; 0 = 20 GB
	ReadOnly         bool  // the engine takes no writes: nothing is repaired or rebuilt
	Throttle         bool  // consumption is limited to the throughput: see Container.Admit

	Logger *slog.Logger // nil: nothing is logged

	// Lease is the time after which the work of a process that shares the store and gives no sign of life goes to
	// others; 0 = lease.DefaultDuration.
	Lease time.Duration

	// ViewAge is the age at which a reader that can continue by position takes a new view; 0 = a minute. An open view
	// keeps the space of everything that was removed since then occupied.
	ViewAge time.Duration
}

// Store holds all items of an engine. It is safe for concurrent use.
type Store struct {
	eng kv.Engine
	cat *catalog.Catalog
	jou *journal.Journal
	clk *clock.Clock
	lim Limits

	others bool   // other processes may write to the store: kv.Engine.Shared
	writer uint64 // this process, in the heads of a shared store: Head.Writer

	mu      sync.RWMutex        // never held while the engine is asked
	open    map[uint32]*held    // by generation
	opening map[uint32]*opening // containers that are being loaded, by generation
	gone    map[uint32]bool     // dropped databases whose slots may still have heads
	turn    atomic.Uint32       // goes up with every CloseIdle

	claims claims // of transactions
	looks  looks  // for News

	work   *work.Group // background work that reads the engine
	leases *lease.Leases

	onOpen func(*Container) // see OnOpen; may be nil

	began   time.Duration // clk.Elapsed when the store was opened
	shared  sync.Map      // *ru.Bucket of databases whose containers share a throughput, by uint32 number
	refused atomic.Int64  // requests without request units
}

// Open returns the store of an engine and its catalog. Its background work belongs to bg, which is closed before the
// engine.
func Open(eng kv.Engine, cat *catalog.Catalog, clk *clock.Clock, lim Limits, bg *work.Group) *Store {
	if lim.Item <= 0 {
		lim.Item = 16 << 20
	}
	if lim.LogicalPartition <= 0 {
		lim.LogicalPartition = 20 << 30
	}
	if lim.ViewAge <= 0 {
		lim.ViewAge = time.Minute
	}
	s := &Store{eng: eng, cat: cat, jou: cat.Journal(), clk: clk, lim: lim, open: map[uint32]*held{},
		opening: map[uint32]*opening{}, gone: map[uint32]bool{}, work: bg,
		leases: lease.New(eng, clk, bg, lim.Lease), began: clk.Elapsed(), others: eng.Shared()}
	for s.others && s.writer == 0 {
		s.writer = uint64(clk.Int63())
	}
	s.turn.Store(1)
	return s
}

// Engine returns the engine, for packages that read it beside the store.
func (s *Store) Engine() kv.Engine { return s.eng }

// Leases returns the leases of this process.
func (s *Store) Leases() *lease.Leases { return s.leases }

// FirstHead returns the head of a slot that has never been written to.
func FirstHead() []byte { return (&Head{Index: 1}).append(nil) }

// firstHeadOf returns the head of a slot that has never been written to, of a container with this definition.
func firstHeadOf(s *catalog.Spec) []byte {
	h := Head{Index: 1}
	if s.LogMinutes > 0 {
		h.LogFloor = firstLSN
	}
	return h.append(nil)
}

// FirstHeadIn is firstHeadOf for a container of a database. In a store that several processes share it says whether the
// journal has its commits.
func (s *Store) FirstHeadIn(db string, spec *catalog.Spec) []byte {
	b := firstHeadOf(spec)
	var h Head
	if s.others && s.jou.Records(db, spec.ID) && h.decode(b) == nil {
		h.Recorded = 1
		b = h.append(nil)
	}
	return b
}

// loadedAtOnce is the number of slots whose heads are read in parallel on an engine over a network.
const loadedAtOnce = 512

// load reads a container's heads and counters.
func (s *Store) load(ctx context.Context, def *catalog.Container) (*Container, error) {
	known, err := compilePolicies(def)
	if err != nil {
		return nil, err
	}
	c := &Container{st: s, gen: def.Gen, counter: counter{eng: s.eng, gen: def.Gen, work: s.work}}
	c.def.Store(def)
	c.known.Store(&known)
	if c.uniques, err = compileUniques(def.UniqueKeys); err != nil {
		return nil, err
	}
	set, err := compileDeclared(def)
	if err != nil {
		return nil, err
	}
	c.declared.Store(set)
	slots := &Slots{m: def.SlotMap, all: make([]*Slot, len(def.Slots))}
	workers := 1
	if s.eng.Remote() {
		workers = loadedAtOnce
	}
	if err := work.Each(workers, len(slots.all), func(i, _ int) (err error) {
		slots.all[i], err = c.loadSlot(ctx, def.SlotMap, i)
		return err
	}); err != nil {
		return nil, err
	}
	for _, sl := range slots.all {
		if sl.head.LogFloor != 0 {
			c.logs.Store(true)
		}
		c.counter.gave(sl.head.LSN)
	}
	c.slots.Store(slots)
	if err := c.counter.load(ctx); err != nil {
		return nil, translate(err)
	}
	if err := c.survey(ctx); err != nil {
		return nil, err
	}
	for _, sl := range slots.all {
		sl.publish()
	}
	_ = c.followLog(ctx) // if it fails, the reaper does it
	return c, nil
}

// newSlot returns a slot whose head isn't known yet.
func (c *Container) newSlot(id uint32, min, max []byte) *Slot {
	sl := &Slot{c: c, key: keys.Slot{Gen: c.gen, ID: id}, min: min, max: max}
	keys.AppendPrefix(sl.headKey[:0], sl.key, keys.KindHead)
	return sl
}

// loadSlot reads the head and the facts of a slot.
func (c *Container) loadSlot(ctx context.Context, m *catalog.SlotMap, i int) (*Slot, error) {
	min, max := m.Bounds(i, i+1)
	sl := c.newSlot(m.Slots[i].ID, min, max)
	b, err := c.st.eng.Get(ctx, nil, sl.headKey[:])
	if errors.Is(err, kv.ErrNotFound) {
		return nil, status.WithSub(status.NotFound, status.SubOwnerNotFound,
			"Resource Not Found: container %q", c.def.Load().ID)
	}
	if err != nil {
		return nil, translate(err)
	}
	if err := sl.head.decode(b); err != nil {
		return nil, err
	}
	sl.headBytes = b
	known, err := c.readFacts(ctx, sl, &sl.head)
	if err != nil {
		return nil, err
	}
	sl.facts.Store(known)
	sl.durable.Store(sl.head.LSN)
	return sl, nil
}

// DropGenerations removes all data of dropped containers. The catalog must not name them any more. Containers with
// adjacent generations are removed with one range.
func (s *Store) DropGenerations(ctx context.Context, gens []uint32) error {
	gens = slices.Clone(gens)
	slices.Sort(gens)
	for len(gens) > 0 {
		n := 1
		for n < len(gens) && gens[n] <= gens[n-1]+1 {
			n++
		}
		lo, _ := keys.GenerationBounds(gens[0])
		_, hi := keys.GenerationBounds(gens[n-1])
		if err := s.eng.DropRange(ctx, lo, hi); err != nil {
			return translate(err)
		}
		gens = gens[n:]
	}
	return nil
}

// DropSlots removes all data of slots that no slot map names.
func (s *Store) DropSlots(ctx context.Context, slots []keys.Slot) error {
	for _, sl := range slots {
		lo, hi := keys.SlotBounds(sl)
		if err := s.eng.DropRange(ctx, lo, hi); err != nil {
			return translate(err)
		}
	}
	return nil
}

// translate is kv.Status.
func translate(err error) error { return kv.Status(err) }

// Generations returns the container generations that have any data.
func (s *Store) Generations(ctx context.Context) ([]uint32, error) {
	snap, err := s.eng.Snapshot(ctx)
	if err != nil {
		return nil, translate(err)
	}
	defer snap.Close()
	lo, hi := keys.DataBounds()
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return nil, translate(err)
	}
	defer it.Close()
	var out []uint32
	for ok := it.First(); ok; {
		gen, valid := keys.Generation(it.Key())
		if !valid {
			return nil, status.New(status.Corruption, "malformed key %x", it.Key())
		}
		out = append(out, gen)
		_, after := keys.GenerationBounds(gen)
		ok = it.SeekGE(after)
	}
	return out, translate(it.Err())
}

// ValidateSpec checks the parts of a container's spec that the store compiles: the indexing policy, the unique keys and
// the declared indexes.
func ValidateSpec(s *catalog.Spec) error {
	pol, err := index.Compile(s.IndexingPolicy, 0)
	if err != nil {
		return err
	}
	for _, d := range s.Declared {
		// Expired items are found by the index.
		if d.After != nil && len(d.Paths) == 1 && !pol.Covers(d.Paths[0], true) {
			return status.New(status.BadRequest, "The index %q ends the life of items by a path that the indexing "+
				"policy excludes.", d.Name)
		}
	}
	if _, err := compileDeclared(&catalog.Container{Spec: *s}); err != nil {
		return err
	}
	_, err = compileUniques(s.UniqueKeys)
	return err
}
