// Package core is the facade for APIs: an Engine with its databases and containers, items, transactions, queries and
// change feeds. It knows no protocol. Names and values are in the stored form (see core/doc).
//
// Example: an API calls Container("db", "c"), then Write with a document, and answers when Write returns: the item is
// durable then. Query returns Rows, which the API encodes in its protocol.
package core

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/jobs"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// Types of the packages below, for APIs.
type (
	// Database is a named set of containers as the catalog has it.
	Database = catalog.Database
	// ContainerSpec is the definition of a container.
	ContainerSpec = catalog.Spec
	// Declared is a declared index of a container. Condition says which items it has.
	Declared  = catalog.Declared
	Condition = catalog.Condition
	// Duplicate is the cause of a Conflict with a declared unique index.
	Duplicate = store.Duplicate
	// ParallelArrays is the cause of the refusal of an item that a declared index can't have.
	ParallelArrays = index.ParallelArrays
	// WordsJSON and TextJSON are rules of an indexing policy for the terms of texts: at several paths together, as
	// MongoDB's text index, and at one path. Words is a compiled WordsJSON.
	WordsJSON = index.WordsJSON
	TextJSON  = index.TextJSON
	Words     = index.Words
	// CollatedJSON is a rule of an indexing policy for an index under a collation, ColumnJSON one of its paths.
	CollatedJSON = index.CollatedJSON
	ColumnJSON   = index.ColumnJSON
	// PartitionKeyDef is a container's partition key definition.
	PartitionKeyDef = catalog.PartitionKeyDef
	// Throughput is provisioned request units per second.
	Throughput = catalog.Throughput
	// PartitionKey has one value for each path of the definition. Undefined stands for None.
	PartitionKey = store.PartitionKey
	// Item is a stored item.
	Item = store.Item
	// Mem is the memory of an item that was read. The item is valid until the next read into its Mem.
	Mem = store.Mem
	// WriteKind says what a Write does.
	WriteKind = store.WriteKind
	// Write is one write of one item.
	Write = store.Write
	// Change is the result of a Write's Update function.
	Change = store.Change
	// Slot is a share of a container's hash range. Its items are stored together.
	Slot = store.Slot
	// Result is what a write did.
	Result = store.Result
	// Outcome is the result of one write of WriteMany.
	Outcome = store.Outcome
	// LogEntry is a change in a container's log of all versions.
	LogEntry = store.LogEntry
	// Tx is a transaction on one logical partition.
	Tx = store.Tx
)

// Values of WriteKind.
const (
	Create  = store.Create
	Upsert  = store.Upsert
	Replace = store.Replace
	Delete  = store.Delete
	Update  = store.Update
)

// Values of LogEntry.Op.
const (
	LogCreate  = store.LogCreate
	LogReplace = store.LogReplace
	LogDelete  = store.LogDelete
)

// Options of an Engine. The zero value is valid.
type Options struct {
	Clock               *clock.Clock // nil = the wall clock
	PartitionRU         int          // most RU/s of one physical partition; 0 = 10,000
	MinSlots            int          // least number of slots of a container; 0 = 1 for each physical partition
	MaxItem             int          // bytes of one document; 0 = 16 MiB (APIs have their own, smaller limits)
	MaxPartition        int64        // bytes of a physical partition at which it is split; 0 = 50 GB
	MaxLogicalPartition int64        // bytes of all items of one partition key value; 0 = 20 GB
	// the age of its view at which a long query takes a new one; 0 = a minute
	ViewAge time.Duration
	// JournalAge and JournalBytes limit what the journal of changes keeps; 0 = journal.DefaultAge and DefaultBytes.
	JournalAge   time.Duration
	JournalBytes int64

	Budget   *budget.Budget // memory of requests; nil = no limit
	Spill    *spill.Space   // for requests whose memory is used up; nil = such requests are refused
	Logger   *slog.Logger   // of background work; nil = slog's default
	ReadOnly bool           // the storage engine takes no writes: nothing is repaired, rebuilt or removed
	Throttle bool           // consumption is limited to the provisioned throughput
	// on a store that several processes share: the time without a sign of life of a process after which others take
	// over its background work; 0 = lease.DefaultDuration
	Lease time.Duration
}

// Engine is one store with its contents. It is safe for concurrent use.
type Engine struct {
	onFeed func(age time.Duration) // see OnFeed; may be nil

	kv    kv.Engine
	bud   *budget.Budget
	spill *spill.Space
	kept  *spill.Kept
	log   *slog.Logger
	cat   *catalog.Catalog
	store *store.Store
	clk   *clock.Clock
	work  *work.Group
	drops *work.Queue[dropped]
	notes dropNotes // on a shared store

	records recordSights // likewise

	resizes  *work.Queue[[8]byte] // containers to resize, by _rid; nil: nothing is resized
	waiting  sync.Map             // those of them that wait
	resizing sync.Map             // the one that is being resized
	sizes    oversize

	reap  *jobs.Reaper
	scrub *jobs.Scrub
	keep  *jobs.Upkeep // nil: the storage engine has no chores
	up    upgrade
}

// Open opens the store of a storage engine. It completes work that a crash has interrupted: it removes the data of
// dropped containers, and continues index rebuilds and splits of partitions. The Engine then owns kv.
func Open(ctx context.Context, eng kv.Engine, o Options) (*Engine, error) {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	cat, err := catalog.Open(eng, o.Clock,
		catalog.Settings{PartitionRU: o.PartitionRU, MinSlots: o.MinSlots, ReadOnly: o.ReadOnly,
			Journal: journal.Settings{Age: o.JournalAge, Bytes: o.JournalBytes}})
	if err != nil {
		return nil, err
	}
	bg := work.New(o.Logger)
	limits := store.Limits{Item: o.MaxItem, LogicalPartition: o.MaxLogicalPartition, ViewAge: o.ViewAge,
		ReadOnly: o.ReadOnly, Throttle: o.Throttle, Logger: o.Logger, Lease: o.Lease}
	e := &Engine{kv: eng, cat: cat, clk: o.Clock, bud: o.Budget, spill: o.Spill, log: o.Logger, work: bg,
		store: store.Open(eng, cat, o.Clock, limits, bg)}
	if !o.ReadOnly {
		cat.TrustWhile(e.leases().Sign)
	}
	e.kept = spill.NewKept(keptBytes(o.Budget), o.Clock.Now, func() uint64 { return uint64(o.Clock.Int63()) })
	e.drops = work.NewQueue(bg, "drop of a container", e.remove)
	if o.ReadOnly {
		return e, nil
	}
	e.resizes = work.NewQueue(bg, "split of partitions", e.resize)
	e.store.OnOpen(e.opened)
	e.sizes = oversize{limit: o.MaxPartition, alone: map[partitionID]int64{}}
	if e.sizes.limit <= 0 {
		e.sizes.limit = defaultPartitionBytes
	}
	if e.leases().Shared() {
		e.notes.wait = 2 * o.viewAge()
		bg.Go("turns of work on a shared store", e.takeTurns)
	} else if err := e.resumeDrops(ctx); err != nil {
		return nil, err
	}
	if eng.Shared() {
		bg.Go("renewal of the version of the catalog", func() {
			for bg.Sleep(catalog.RenewTime) {
				cat.Renew(bg.Context())
			}
		})
	}
	bg.Go("removal of records that have expired", e.expireRecords)
	bg.Go("sizes of partitions", e.watchSizes)
	e.resume(ctx)
	bg.Go("search for interrupted resizes", e.resumeResizes)
	e.startUpgrade()
	bg.Go("removal of what queries have kept", func() {
		for bg.Sleep(spill.KeptFor / 10) {
			e.kept.Sweep()
		}
	})
	e.reap = jobs.StartReaper(bg, o.Clock, jobs.Containers{Used: e.store.Opened, All: e.timed})
	e.scrub = jobs.StartScrub(bg, eng, e.all, e.leases(), o.Clock, o.Logger)
	e.keep = jobs.StartUpkeep(bg, eng, e.leases(), o.Clock, o.Logger)
	bg.Go("removal of old entries of the journal", e.trimJournal)
	if eng.Shared() {
		bg.Go("look for changes of other processes", e.followJournal)
	}
	e.startMeters()
	bg.Go("closing of idle containers", func() {
		for bg.Sleep(idleTurn) {
			e.store.CloseIdle()
		}
	})
	return e, nil
}

// idleTurn is the interval at which idle containers are closed. A container without requests stays open for one to two
// intervals.
const idleTurn = 5 * time.Minute

// resume continues index rebuilds that the end of the previous process has interrupted.
func (e *Engine) resume(ctx context.Context) {
	for def, err := range e.cat.Rebuilding(ctx) {
		if err == nil {
			_, _ = e.container(ctx, def) // a request for a container that can't be opened gets the error
		}
	}
}

// all gives the run-time state of all containers in sequence. Containers that were closed are closed again.
func (e *Engine) all() iter.Seq[*store.Container] {
	return func(yield func(*store.Container) bool) {
		for _, d := range e.cat.Databases() {
			for def, err := range e.cat.Containers(e.work.Context(), d.ID, 0) {
				if err == nil && !e.visit(def, yield) {
					return
				}
			}
		}
	}
}

// timed does what all does for the containers that may have items or entries of a log which expire. It doesn't open an
// empty container without a log.
func (e *Engine) timed() iter.Seq[*store.Container] {
	return func(yield func(*store.Container) bool) {
		for def, err := range e.cat.Timed(e.work.Context()) {
			if err != nil {
				continue
			}
			held, _, open, err := e.store.Stats(e.work.Context(), def)
			items := int64(0)
			for _, s := range held {
				items += s.Items
			}
			if err == nil && (open != nil || items > 0 || def.LogMinutes > 0) && !e.visit(def, yield) {
				return
			}
		}
	}
}

// visit calls yield with the run-time state of a container. It skips a container that can't be opened; a request for it
// gets the error.
func (e *Engine) visit(def *catalog.Container, yield func(*store.Container) bool) bool {
	c, done, err := e.store.Visit(e.work.Context(), def)
	if err != nil {
		return true
	}
	defer done()
	return yield(c)
}

// Reap removes expired items now and returns their number. The background does the same periodically.
func (e *Engine) Reap(ctx context.Context) int {
	if e.reap == nil {
		return 0
	}
	return e.reap.Round(ctx)
}

// Reaped returns how often this process has looked for expired items, and how many it has removed.
func (e *Engine) Reaped() (rounds, removed int64) {
	if e.reap == nil {
		return 0, 0
	}
	return e.reap.Done()
}

// Close ends background work and closes the storage engine.
func (e *Engine) Close() error {
	e.work.Close()
	e.leases().Close()
	e.kept.Close()
	return e.kv.Close()
}

// Faults returns how many panics of background work were caught since the engine was opened. The log has their stacks.
func (e *Engine) Faults() int64 { return e.work.Panics() }

// Budget returns the memory that requests share; nil when it has no limit.
func (e *Engine) Budget() *budget.Budget { return e.bud }

// Spill returns the space for temporary files of requests; nil when there is none.
func (e *Engine) Spill() *spill.Space { return e.spill }

// Kept returns the states of queries that are kept for their next pages.
func (e *Engine) Kept() *spill.Kept { return e.kept }

// leastKept is the least number of bytes of memory for states of queries between their pages: enough for some merges of
// files.
const leastKept = 4 << 20

// keptBytes is the number of bytes of memory for states of queries between their pages: an eighth of what requests may
// hold.
func keptBytes(b *budget.Budget) int64 { return max(b.Limit()/8, leastKept) }

// Identity returns the identity of the store. It is empty if the engine has none.
func (e *Engine) Identity() (i kv.Identity) {
	if k, ok := e.kv.(kv.Identified); ok {
		i = k.Identity()
	}
	return i
}

// Health returns the health of the storage engine, including what a scrub has found.
func (e *Engine) Health() (h kv.Health) {
	if m, ok := e.kv.(kv.Monitored); ok {
		h = m.Health()
	}
	if s := e.ScrubStatus(); h.State == kv.Well && s.Found > 0 {
		h = kv.Health{State: kv.Damaged, Reason: "A scrub has found damage: " + s.Problems[0]}
	}
	return h
}

// Clock returns the engine's clock: the only source of time, ids and randomness.
func (e *Engine) Clock() *clock.Clock { return e.clk }

// Checkpoint writes a consistent copy of the store to dir, which must not exist.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	return e.kv.Checkpoint(ctx, dir)
}

// GotSingly reports whether a key of a store is read with single gets, and repeatedly. Engines may cache the values of
// such keys.
func GotSingly(key []byte) bool { return keys.GotSingly(key) }

// OnlyScanned reports whether a key of a store is only found by scans. Engines with filters may leave such keys out of
// them.
func OnlyScanned(key []byte) bool { return keys.OnlyScanned(key) }
