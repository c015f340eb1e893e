package core

import (
	"context"
	"slices"
	"strconv"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// Container is a container with its items. A handle stays valid after a replace. After a drop its calls fail with
// NotFound and sub-status 1003. It is safe for concurrent use.
type Container struct {
	Definition
	e  *Engine
	rt *store.Container
}

// container opens a container. It waits for that until ctx ends.
func (e *Engine) container(ctx context.Context, def *catalog.Container) (*Container, error) {
	rt, err := e.store.Container(ctx, def)
	if err != nil {
		return nil, err
	}
	return &Container{Definition{def}, e, rt}, nil
}

// Budget returns the memory that requests share; nil when it has no limit.
func (c *Container) Budget() *budget.Budget { return c.e.bud }

// Spill returns the space for temporary files of requests; nil when there is none.
func (c *Container) Spill() *spill.Space { return c.e.spill }

// Kept returns the states of queries that are kept for their next pages.
func (c *Container) Kept() *spill.Kept { return c.e.kept }

// Count returns the exact number of items, including expired ones that are not reaped yet. It reads nothing, except in
// a store that other processes write to. If that can't be read it fails: what is in memory may be old.
func (c *Container) Count(ctx context.Context) (int64, error) {
	if err := c.fresh(ctx); err != nil {
		return 0, err
	}
	return c.rt.Items(), nil
}

// Size returns the bytes of all items. It fails where Count does.
func (c *Container) Size(ctx context.Context) (int64, error) {
	if err := c.fresh(ctx); err != nil {
		return 0, err
	}
	return c.rt.Bytes(), nil
}

// HasTTL reports whether items can expire.
func (c *Container) HasTTL() bool { return c.rt.Def().DefaultTTL != nil }

// SlotOf returns the slot of a partition key, for SessionOf.
func (c *Container) SlotOf(pk PartitionKey) (*Slot, error) {
	return c.rt.SlotOf(pk)
}

// LSN returns the greatest durable LSN of the container. It fails where Count does.
func (c *Container) LSN(ctx context.Context) (int64, error) {
	if err := c.fresh(ctx); err != nil {
		return 0, err
	}
	return store.StatsOf(c.rt.Slots().All()).LSN, nil
}

// LSNOf returns the greatest durable LSN of the slot that holds a partition key. An item of the key that is written
// later has a greater one. LSNs of different slots can't be compared where several processes write to the store.
func (c *Container) LSNOf(ctx context.Context, pk PartitionKey) (int64, error) {
	if err := c.rt.Refresh(ctx); err != nil {
		return 0, err
	}
	sl, err := c.rt.SlotOf(pk)
	if err != nil {
		return 0, err
	}
	return sl.Stats().LSN, nil
}

// GivenLSN returns the greatest LSN that a commit of the container has received. No session token that a client got is
// above it. It fails where Count does.
func (c *Container) GivenLSN(ctx context.Context) (int64, error) {
	if err := c.fresh(ctx); err != nil {
		return 0, err
	}
	return c.rt.GivenLSN(), nil
}

// KnownLSN returns the greatest LSN of the container that this process has seen: no more than GivenLSN, which reads the
// store if other processes write to it.
func (c *Container) KnownLSN() int64 {
	lsn := c.rt.GivenLSN()
	if c.e.Shared() {
		lsn = max(lsn, store.StatsOf(c.rt.Slots().All()).LSN) // reads raise these
	}
	return lsn
}

// KeyOf returns the partition key and id of a document by the container's definition; they point into it. A document
// without identity is BadRequest.
func (c *Container) KeyOf(d doc.Doc) (PartitionKey, value.Value, error) { return c.rt.KeyOf(d) }

// Indexes reports whether the indexing policy covers every value at a path, so that queries on it need no scan.
func (c *Container) Indexes(p access.Path) bool { return c.rt.Policy().Covers(p.Segs, p.Elements) }

// IndexesPlaces reports whether the indexing policy has a spatial index for geometries at a path: in a plane, or on the
// earth.
func (c *Container) IndexesPlaces(p access.Path, plane bool) bool {
	r, _ := c.rt.Policy().Spatial(p.Segs, plane, false)
	return r != nil
}

// IndexProgress returns the completed part of an index rebuild, 0 to 99 percent; 100 when no rebuild is in progress.
// With a shared store it reads the store, without a deadline: a request takes IndexProgressWithin.
func (c *Container) IndexProgress() int { return c.IndexProgressWithin(context.Background()) }

// IndexProgressWithin is IndexProgress that ends with ctx, and then returns what is known.
func (c *Container) IndexProgressWithin(ctx context.Context) int { return c.rt.IndexProgress(ctx) }

// WaitIndex returns when the index follows the newest policy. It returns immediately when no rebuild is in progress.
func (c *Container) WaitIndex(ctx context.Context) error { return c.rt.WaitIndex(ctx) }

// KeyPaths returns the stored segments of each path of the partition key.
func (c *Container) KeyPaths() [][]string { return c.rt.Def().KeyPaths() }

// Read returns an item; NotFound when it is absent or expired. The caller owns the item's memory.
func (c *Container) Read(ctx context.Context, pk PartitionKey, id value.Value) (*Item, error) {
	if c.rt.Throttled() {
		if _, err := c.admit(pk); err != nil {
			return nil, err
		}
	}
	it, sl, err := c.rt.ReadIn(ctx, pk, id)
	c.spendRead(sl, it, err)
	return it, err
}

// ReadInto does what Read does, but into memory that the caller reuses: the item is valid until the next use. It
// returns the slot of the key even if the item is absent; nil when the key doesn't fit the container.
func (c *Container) ReadInto(ctx context.Context, it *Item, m *Mem, pk PartitionKey, id value.Value) (*Slot, error) {
	if c.rt.Throttled() {
		if _, err := c.admit(pk); err != nil {
			return nil, err
		}
	}
	sl, err := c.rt.ReadInto(ctx, it, m, pk, id)
	c.spendRead(sl, it, err)
	return sl, err
}

// Write does one write; it is durable when Write returns.
func (c *Container) Write(ctx context.Context, w Write) (Result, error) {
	if c.rt.Throttled() {
		if _, err := c.admitWrite(&w); err != nil {
			return Result{}, err
		}
	}
	if c.def.Capped != nil {
		res, err := c.writeCapped(ctx, &w)
		c.spend(res.Slot, res.Charge, err)
		return res, err
	}
	res, err := c.rt.Write(ctx, &w)
	c.spend(res.Slot, res.Charge, err)
	return res, err
}

// Waiting returns the number of writes that wait for a commit of others before their own can begin. With an engine that
// isn't shared it is 0.
func (c *Container) Waiting() int { return c.rt.Waiting() }

// WriteMany does independent writes and waits once until all are durable. With ordered it stops at the first error: the
// outcomes end there.
func (c *Container) WriteMany(ctx context.Context, ws []Write, ordered bool) []Outcome {
	if c.rt.Throttled() {
		return c.writeMany(ctx, ws, ordered)
	}
	out := c.doMany(ctx, ws, ordered)
	c.spendMany(out)
	return out
}

// Commit is the result of a transaction.
type Commit struct {
	LSN    int64
	Charge float64
	Writes []float64 // the parts of Charge of the writes that changed something, in their order
}

// WithTx runs fn in a transaction on one logical partition: all of its writes are committed, or none. fn may run again
// after a conflict, when another request has changed what it has read. In fn the Container isn't asked for what must be
// the newest, as Count and Partitions are: that may wait for what the transaction holds. After too many conflicts the
// error is RetryWith. A transaction writes at most 16 MiB of documents; beyond that its Write fails with TooLarge.
func (c *Container) WithTx(ctx context.Context, pk PartitionKey, fn func(*Tx) error) (Commit, error) {
	if c.rt.Throttled() {
		if _, err := c.admit(pk); err != nil {
			return Commit{}, err
		}
	}
	var last *Tx
	lsn, charge, err := c.rt.WithTx(ctx, pk, func(tx *Tx) error {
		last = tx
		return fn(tx)
	})
	if charge > 0 {
		if place, _, _, bad := c.rt.Place(pk); bad == nil {
			c.rt.Spend(place, charge)
		}
	}
	if err != nil {
		return Commit{lsn, charge, nil}, err
	}
	return Commit{lsn, charge, last.Writes()}, nil
}

// Query starts a query; the caller closes the Rows.
func (c *Container) Query(ctx context.Context, q *exec.Query) (*exec.Rows, error) {
	return exec.Open(ctx, c.rt, q, c.e.bud, c.e.spill)
}

// QueryTx starts a query on the logical partition of a transaction: its snapshot, and what it has written itself. The
// caller closes the Rows before the transaction writes again or ends.
func (c *Container) QueryTx(ctx context.Context, tx *Tx, q *exec.Query) (*exec.Rows, error) {
	return exec.OpenIn(ctx, tx, q, c.e.bud, c.e.spill)
}

// Explain returns the plan of a query.
func (c *Container) Explain(ctx context.Context, q *exec.Query) (access.Plan, error) {
	r, err := exec.Open(ctx, c.rt, q, c.e.bud, c.e.spill)
	if err != nil {
		return access.Plan{}, err
	}
	defer r.Close()
	return *r.Stats().Plan, nil
}

// ChangeFeed reads a page of the change feed of a physical partition (its id), or of the whole container with "".
func (c *Container) ChangeFeed(ctx context.Context, partition string, pos feed.Position, max int) (feed.Page, error) {
	var sc feed.Scope
	if partition != "" {
		if err := c.fresh(ctx); err != nil {
			return feed.Page{}, err
		}
		m := c.rt.Slots().Map()
		i := slices.IndexFunc(m.Partitions, func(p catalog.PartitionDef) bool {
			return strconv.Itoa(p.ID) == partition
		})
		if i < 0 {
			return feed.Page{}, status.WithSub(status.Gone, status.SubPartitionKeyRangeGone,
				"The partition key range %q is gone.", partition)
		}
		p := partitionOf(c.rt.Def().PartitionKey.EPKKind(), m, i)
		sc.Range = epk.Range{Min: p.Min, Max: p.Max}
	}
	return c.Feed(ctx, sc, pos, max)
}

// Feed reads a page of the change feed of a part of the container.
func (c *Container) Feed(ctx context.Context, sc feed.Scope, pos feed.Position, max int) (feed.Page, error) {
	return c.fed(ctx, sc, pos, max, feed.Read)
}

// reader is feed.Read or feed.ReadLog.
type reader func(context.Context, *store.Container, feed.Scope, feed.Position, int) (feed.Page, error)

// fed reads a page of a feed, within the throughput of the physical partitions, and counts its charge.
func (c *Container) fed(ctx context.Context, sc feed.Scope, pos feed.Position, max int, read reader) (feed.Page,
	error) {
	slots := c.scopeSlots(sc)
	if c.rt.Throttled() {
		if err := c.rt.AdmitIn(slots); err != nil {
			return feed.Page{}, err
		}
	}
	p, err := read(ctx, c.rt, sc, pos, max)
	if err == nil {
		c.rt.SpendIn(slots, FeedCharge(&p))
		c.e.fed(&p)
	}
	return p, err
}

// FeedNow returns the current end of the change feed: every write that is acknowledged later comes after it.
func (c *Container) FeedNow(ctx context.Context, sc feed.Scope) (feed.Position, error) {
	return feed.Now(ctx, c.rt, sc)
}

// FeedVersions reads a page of the feed of all versions and deletions of a part of the container. The page has Changes
// instead of Items.
func (c *Container) FeedVersions(ctx context.Context, sc feed.Scope, pos feed.Position, max int) (feed.Page, error) {
	return c.fed(ctx, sc, pos, max, feed.ReadLog)
}

// FeedVersionsNow does what FeedNow does. It fails if the container has no log of all versions.
func (c *Container) FeedVersionsNow(ctx context.Context, sc feed.Scope) (feed.Position, error) {
	return feed.NowLog(ctx, c.rt, sc)
}

// EPKText returns the effective partition key of a partition key as SDKs compute it: upper-case hex.
func EPKText(def PartitionKeyDef, pk PartitionKey) string { return epk.Text(def.EPKKind(), pk) }

// EPKRange returns the range of effective partition keys of a partition key, which may be a prefix of a hierarchical
// one.
func EPKRange(def PartitionKeyDef, pk PartitionKey) epk.Range { return epk.KeyRange(def.EPKKind(), pk) }

// Indexing policies: the default of a container, the path that all policies exclude, and the limits.
const (
	DefaultIndexing     = index.Default
	ETagPath            = index.ETagPath
	ETagPathJSON        = index.ETagJSON
	MaxIndexPaths       = index.MaxPaths
	MaxCompositeIndexes = index.MaxComposites
	MaxCompositePaths   = index.MaxColumns
)

// TuplePath says whether an indexing path has the form of a tuple path, /events/[]/{name, category}/?, and whether it
// is a valid one.
func TuplePath(path string) (is, valid bool) {
	_, _, valid = index.ParseTuple(path)
	return index.IsTuple(path), valid
}

// ParsePath splits a NoSQL path ("/a/b", "/\"odd name\"") into stored segments.
func ParsePath(path string) ([]string, error) { return catalog.ParsePath(path) }
