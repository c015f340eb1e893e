package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/invariants"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/yield"
)

// WriteKind says what a Write does.
type WriteKind uint8

// The kinds of Write.
const (
	Create  WriteKind = iota // Conflict when the item is there
	Upsert                   // create or replace
	Replace                  // NotFound when the item is absent
	Delete                   // NotFound when the item is absent
	Update                   // Write.Update decides what is written
)

// Write is one write of one item.
type Write struct {
	Kind WriteKind
	PK   PartitionKey // may be nil when Doc is given: read from it
	ID   value.Value  // may be Undefined when Doc is given: read from it
	Doc  []byte       // the new document (not with Delete and Update); kept until the call returns
	// KeyRead says that PK and ID are those that KeyOf has read from Doc, so they are not read again.
	KeyRead bool
	// NoIndex is the indexing directive Exclude.
	NoIndex bool
	// Check is called before the item is changed. old is nil when the item is absent. Check may run more than once.
	Check func(old *Item) error
	// Update decides the change of kind Update. old is nil when the item is absent. Update may run more than once.
	Update func(old *Item) (Change, error)
	// Partial says that the write changes fields of the item and doesn't replace it. Note is BSON that belongs to the
	// change. Both are for the journal only.
	Partial bool
	Note    []byte
	// With is a record that the write reads and changes too; nil: none. Only for a shared engine.
	With *Attached
	// Mark is a record that the write leaves in its commit; nil: none. Only for an engine that isn't shared.
	Mark *Mark
}

// Change is the result of an Update function. A zero Change, with Doc nil and neither flag set, is an error of the
// caller.
type Change struct {
	Doc    []byte
	Delete bool
	Keep   bool // write nothing
}

// Result is what a write did.
type Result struct {
	Item    *Item // the current item, or the item before when nothing was written; nil when there is none
	Created bool
	Deleted bool
	Kept    bool // nothing was written
	Charge  float64
	Slot    *Slot // of the item
	LSN     int64
	Time    uint64 // of the commit, by the journal's clock; 0 = the journal doesn't record it
}

// change is the change of one item inside a commit, from old to new.
type change struct {
	id       identity
	old      *Item // nil = absent; an expired item is kept here too, with expired set
	expired  bool
	item     *Item // nil = delete
	oldTerms *index.Terms
	newTerms *index.Terms
	shared   int       // number of terms that both have, which were left out
	seen     int64     // LSN of the slot before the old item was read
	shown    int64     // what must be durable before a client learns that nothing was written
	lsn      int64     // of the commit
	upkeep   uint64    // the slot's upkeep when the terms were made
	extra    bool      // newTerms has terms that the policy after a rebuild doesn't have
	basis    []byte    // the slot's stored head when the old item was read, with a shared engine; else nil
	with     *attached // the write's record; nil: none
	mark     *Mark
	partial  bool // for the journal, as is note: see Write
	note     []byte
	order    int // of the write in its request, for the journal

	// The stored head of the logical partition, if logicalRead; nil: it is absent. It is of the slot's LSN logicalAt.
	logical     []byte
	logicalAt   int64
	logicalRead bool

	// Fields of the draft that the change belongs to.
	partition int    // the logical partition's number in its part
	op        int    // the operation that puts the item
	sum       uint64 // checksumDoc of item
}

var termsPool = sync.Pool{New: func() any { return new(index.Terms) }}

func (ch *change) release() {
	if ch.oldTerms != nil {
		termsPool.Put(ch.oldTerms)
	}
	if ch.newTerms != nil {
		termsPool.Put(ch.newTerms)
	}
	ch.oldTerms, ch.newTerms = nil, nil
}

// maxRaces is how often a write is repeated after losing a race before it returns RetryWith.
const maxRaces = 64

// Write writes one item; it is durable when Write returns.
func (c *Container) Write(ctx context.Context, w *Write) (Result, error) {
	if c.st.others {
		return c.writeJoint(ctx, w)
	}
	return c.writeAlone(ctx, w)
}

// writeAlone is Write with a commit of its own.
func (c *Container) writeAlone(ctx context.Context, w *Write) (Result, error) {
	res, p, err := c.apply(ctx, w)
	if werr := p.wait(ctx); werr != nil {
		return res, werr
	}
	if res.Kept {
		res.LSN = res.Slot.durable.Load()
	}
	return res, err
}

// pending is a commit that is not known to be durable. Without a commit it stands for a reader's view of a slot: every
// commit up to lsn. The zero value stands for nothing.
type pending struct {
	commit kv.Commit
	slot   *Slot
	lsn    int64
	batch  *kv.Batch
	time   uint64 // by the journal's clock; 0 = it isn't in the journal
}

var batchPool = sync.Pool{New: func() any { return new(kv.Batch) }}

// recycle releases a batch whose commit is durable or was never made.
func recycle(b *kv.Batch) {
	if b.Size() < maxScratch {
		b.Reset()
		batchPool.Put(b)
	}
}

func (p pending) wait(ctx context.Context) error {
	if p.slot == nil {
		return nil
	}
	if p.commit == nil {
		return p.slot.waitDurable(ctx, p.lsn)
	}
	err := yield.While(ctx, p.commit.Wait)
	recycle(p.batch)
	if err != nil {
		return translate(err)
	}
	p.slot.settled(p.lsn)
	return nil
}

// identify finds the place of the written item.
func (c *Container) identify(w *Write) (identity, error) {
	pk, id := w.PK, w.ID
	if w.Doc == nil {
		return c.locate(nil, pk, id)
	}
	if len(w.Doc) > c.st.lim.Item {
		return identity{}, status.New(status.TooLarge, "Request size is too large")
	}
	if w.KeyRead {
		if invariants.Enabled {
			dpk, did, err := c.keyOf(w.Doc)
			invariants.Check(err == nil && value.Identical(id, did) && slices.EqualFunc(pk, dpk, value.Identical),
				"the key of a write is not its document's")
		}
		return c.locate(make([]byte, 0, 96), pk, id)
	}
	var kmem [3]value.Value
	dpk, did, err := c.appendKey(kmem[:0], w.Doc)
	if err != nil {
		return identity{}, err
	}
	ident, err := c.locate(make([]byte, 0, 96), dpk, did)
	if err != nil {
		return ident, err
	}
	if pk == nil && !id.IsDefined() {
		return ident, nil
	}
	if pk == nil {
		pk = dpk
	}
	if !id.IsDefined() {
		id = did
	}
	if value.Identical(id, did) && slices.EqualFunc(pk, dpk, value.Identical) {
		// in most cases: the key isn't hashed twice
		return ident, nil
	}
	var mem [128]byte
	want, err := c.locate(mem[:0], pk, id)
	if err != nil {
		return ident, err
	}
	if !bytes.Equal(want.tuple, ident.tuple) {
		return ident, errKeyMismatch()
	}
	if !bytes.Equal(want.ident, ident.ident) {
		return ident, status.New(status.BadRequest, "The id in the document does not match the id of the item.")
	}
	return ident, nil
}

func errKeyMismatch() error {
	return status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch,
		"PartitionKey extracted from document doesn't match the one specified in the header")
}

// apply makes one write visible. If it writes nothing or is refused, the pending covers the state on which that
// depends.
func (c *Container) apply(ctx context.Context, w *Write) (Result, pending, error) {
	id, err := c.identify(w)
	if err != nil {
		return Result{}, pending{}, err
	}
	if err := id.slot.turns.wait(ctx, id.tuple); err != nil {
		return Result{}, pending{}, err
	}
	queued := false
	for range maxRaces {
		if err := ctx.Err(); err != nil {
			return Result{}, pending{}, translate(err)
		}
		res, p, raced, err := c.attempt(ctx, w, id)
		if err != nil || !raced {
			return res, p, err
		}
		c.relocate(&id)
		if !queued { // after one lost race it races only with writes that haven't lost
			queued = true
			q := &id.slot.losers
			if err := q.LockFor(ctx); err != nil {
				return Result{}, pending{}, err
			}
			defer q.Unlock()
		}
	}
	return Result{}, pending{}, errRaces()
}

// attempt runs a write once: the costly part without the latch, then the commit under it. raced says that the item has
// changed in between.
func (c *Container) attempt(ctx context.Context, w *Write, id identity) (res Result, p pending, raced bool, err error) {
	var one [1]change
	ch := &one[0]
	ch.id = id
	if kept, err := c.ready(ctx, w, ch, &res); kept || err != nil {
		if c.left(&ch.id) {
			return Result{}, p, true, nil
		}
		return res, ch.seenBy(ch.id.slot), false, err
	}
	sl := ch.id.slot
	defer ch.release()
	d, err := c.plan(one[:])
	if err != nil {
		return res, p, false, err
	}
	if p, raced, err = c.commit(ctx, sl, d, ch); raced || err != nil {
		if h := heldBy(err); h != nil && h.expired {
			err := c.removeExpired(ctx, h)
			return res, pending{}, err == nil, err
		}
		return res, p, raced, err
	}
	ch.result(&res)
	res.Time = p.time
	return res, p, false, nil
}

// commit commits the draft of one change under the latch.
func (c *Container) commit(ctx context.Context, sl *Slot, d *draft, ch *change) (p pending, raced bool, err error) {
	if err := sl.mu.LockFor(ctx); err != nil {
		d.free()
		return p, false, err
	}
	defer sl.mu.Unlock() // a panic of the engine must not leave the latch held
	if err := c.adopt(ctx, sl, ch.basis); err != nil {
		d.free()
		return p, false, err
	}
	if same, err := c.unchanged(ctx, sl, ch); err != nil || !same {
		d.free()
		return p, err == nil, err
	}
	return d.commit(ctx)
}

// ready reads the current item, lets the write decide, and makes the new item and its terms: the costly part. kept says
// that nothing is to be written; then res is complete except for its LSN. In that case, and when the write is refused,
// the caller waits for ch.shown.
func (c *Container) ready(ctx context.Context, w *Write, ch *change, res *Result) (kept bool, err error) {
	if c.st.others {
		if w.With != nil {
			ch.with = &attached{Attached: w.With}
		}
		err = c.readOldShared(ctx, ch)
	} else {
		ch.seen, ch.mark = ch.id.slot.lsn.Load(), w.Mark
		err = c.readOld(ctx, ch, w.Kind == Create)
	}
	if res.Slot = ch.id.slot; err != nil {
		return false, err
	}
	return c.choose(ctx, w, ch, res)
}

// choose is ready after the item was read.
func (c *Container) choose(ctx context.Context, w *Write, ch *change, res *Result) (kept bool, err error) {
	live := ch.live()
	ch.partial, ch.note = w.Partial, w.Note
	if ch.old != nil {
		ch.shown = ch.old.LSN
	} else {
		ch.shown = ch.id.slot.begun.Load() // after the read
	}
	next, keep, err := decide(w, live)
	if err != nil {
		return false, err
	}
	if !keep {
		if ch.with != nil {
			c.decideAttached(ch.with)
		}
		return false, c.prepare(ctx, ch, next, w.NoIndex, w.Kind != Update)
	}
	res.Item, res.Kept = live, true
	res.Charge = ru.Read(itemSize(live))
	return true, nil
}

// seenBy returns what must be durable before a client learns that a change isn't made.
func (ch *change) seenBy(sl *Slot) pending { return pending{slot: sl, lsn: ch.shown} }

// live returns the item before the change as readers see it.
func (ch *change) live() *Item {
	if ch.expired {
		return nil
	}
	return ch.old
}

// result fills in the result of a committed change.
func (ch *change) result(res *Result) {
	res.Item, res.Created, res.Deleted, res.LSN = ch.item, ch.live() == nil && ch.item != nil, ch.item == nil, ch.lsn
	res.Charge = charge(ch)
}

func itemSize(it *Item) int {
	if it == nil {
		return 0
	}
	return len(it.Doc)
}

func charge(ch *change) float64 {
	return ru.Write(max(itemSize(ch.item), itemSize(ch.old)), ch.terms())
}

// terms returns the number of index terms of the item, before or after the change: the greater one.
func (ch *change) terms() int {
	n := 0
	if ch.item != nil {
		n = ch.newTerms.Len()
	}
	if ch.old != nil && ch.oldTerms != nil {
		n = max(n, ch.oldTerms.Len())
	}
	return n + ch.shared
}

// Alive returns NotFound with sub-status 1003 when the container was dropped.
func (c *Container) Alive() error {
	if c.dropped.Load() {
		return errDropped()
	}
	return nil
}

func errDropped() error {
	return status.WithSub(status.NotFound, status.SubOwnerNotFound, "Resource Not Found: the container was dropped")
}

// readOld reads the current item into ch.old. For an absent item the slot's id filter is enough in most cases. With
// create and no id filter, it uses the engine's filter.
func (c *Container) readOld(ctx context.Context, ch *change, create bool) error {
	if c.lacks(&ch.id, create) {
		ch.old = nil
		return nil
	}
	var buf [256]byte
	key := append(keys.AppendPrefix(buf[:0], ch.id.slot.key, keys.KindItem), ch.id.suffix...)
	if create {
		snap, err := c.st.eng.Snapshot(ctx)
		if err != nil {
			return translate(err)
		}
		has, err := snap.Has(key)
		snap.Close()
		if err != nil {
			return translate(err)
		}
		if !has {
			ch.old = nil
			return nil
		}
	}
	b, err := c.st.eng.Get(ctx, nil, key)
	if errors.Is(err, kv.ErrNotFound) {
		ch.old = nil
		return nil
	}
	if err != nil {
		return translate(err)
	}
	return c.decodeOld(ch, b)
}

// decodeOld takes the stored value of the current item; nil: it is absent.
func (c *Container) decodeOld(ch *change, b []byte) error {
	if b == nil {
		ch.old = nil
		return nil
	}
	it := &Item{ident: ch.id.ident, paths: len(c.keyPaths())}
	if err := decodeEnvelope(b, it); err != nil {
		return err
	}
	ch.old, ch.expired = it, c.expired(it)
	return nil
}

func (c *Container) expired(it *Item) bool {
	def := c.def.Load().DefaultTTL
	if def == nil {
		return false
	}
	e := it.expiry(def)
	return e != 0 && e <= c.st.clk.Now().Unix()
}

// decide applies the rule of the kind to the current item. It returns the new document (nil = delete), or keep.
func decide(w *Write, old *Item) (doc []byte, keep bool, err error) {
	if w.Check != nil {
		if err := w.Check(old); err != nil {
			return nil, false, err
		}
	}
	switch w.Kind {
	case Create:
		if old != nil {
			return nil, false, errExists()
		}
		return w.Doc, false, nil
	case Upsert:
		return w.Doc, false, nil
	case Replace:
		if old == nil {
			return nil, false, errNotFound()
		}
		return w.Doc, false, nil
	case Delete:
		if old == nil {
			return nil, false, errNotFound()
		}
		return nil, false, nil
	}
	chg, err := w.Update(old)
	switch {
	case err != nil:
		return nil, false, err
	case chg.Keep, chg.Delete && old == nil:
		return nil, true, nil
	case chg.Delete:
		return nil, false, nil
	case chg.Doc == nil:
		return nil, false, status.New(status.Internal, "update without a document")
	}
	return chg.Doc, false, nil
}

func errExists() error {
	return status.New(status.Conflict, "Resource with specified id or name already exists.")
}

func errNotFound() error {
	return status.New(status.NotFound, "Resource Not Found.")
}

// belongs checks that a document may be stored under an identity: its size, partition key and id.
func (c *Container) belongs(doc []byte, to *identity) error {
	if len(doc) > c.st.lim.Item {
		return status.New(status.TooLarge, "Request size is too large")
	}
	var kmem [3]value.Value
	pk, id, err := c.appendKey(kmem[:0], doc)
	if err != nil {
		return err
	}
	var mem [128]byte
	at, err := c.locate(mem[:0], pk, id)
	if err != nil {
		return err
	}
	if !bytes.Equal(at.tuple, to.tuple) {
		return errKeyMismatch()
	}
	if !bytes.Equal(at.ident, to.ident) {
		return status.New(status.BadRequest, "The id in the document does not match the id of the item.")
	}
	return nil
}

// prepare makes the new item and both sets of index terms. checked says that the document was already checked against
// the identity.
func (c *Container) prepare(ctx context.Context, ch *change, doc []byte, noIndex, checked bool) error {
	sl := ch.id.slot
	if doc != nil {
		if !checked {
			if err := c.belongs(doc, &ch.id); err != nil {
				return err
			}
		}
		it := &Item{Doc: doc, ident: ch.id.ident, paths: len(c.keyPaths()), TTL: ownTTL(doc)}
		if noIndex {
			it.flags |= flagNoIndex
		}
		it.Ticks = c.now()
		if ch.old != nil && ch.old.Ticks-it.Ticks <= clockTolerance {
			it.Ticks = max(it.Ticks, ch.old.Ticks+1)
		}
		if ch.old != nil && !ch.expired {
			it.Number = ch.old.Number
		} else {
			n, err := c.nextNumber(ctx)
			if err != nil {
				return translate(err)
			}
			it.Number = c.number(ch.id.place, n)
		}
		ch.item = it
	}
	ch.collect(c.upkeepOf(ctx, sl))
	return nil
}

// collect makes the change's index terms. If an item is replaced by another version of itself, only terms that may
// differ are made.
func (ch *change) collect(up upkeep) {
	ch.release()
	old, it, pol := ch.old, ch.item, up.policy
	ch.upkeep, ch.shared, ch.extra = up.state, 0, false
	if up.next != nil {
		if it != nil {
			ch.newTerms, ch.extra = up.termsToHave(it)
		}
		if old != nil {
			ch.oldTerms = up.termsThere(old)
		}
		return
	}
	if old != nil && it != nil && old.Number == it.Number && (old.flags|it.flags)&flagNoIndex == 0 {
		ch.oldTerms, ch.newTerms = termsPool.Get().(*index.Terms), termsPool.Get().(*index.Terms)
		ch.shared = pol.CollectChange(ch.oldTerms, ch.newTerms, index.Version{Doc: old.Doc, TS: old.TS()},
			index.Version{Doc: it.Doc, TS: it.TS()})
		return
	}
	if it != nil {
		ch.newTerms = collect(pol, it)
	}
	if old != nil {
		ch.oldTerms = collect(pol, old)
	}
}

// now returns the time in ticks.
func (c *Container) now() int64 {
	t := c.st.clk.Now()
	return t.Unix()*ticksPerSecond + int64(t.Nanosecond()/100)
}

// collect gives the index terms of an item.
func collect(pol *index.Policy, it *Item) *index.Terms {
	t := termsPool.Get().(*index.Terms)
	if it.flags&flagNoIndex != 0 {
		pol.Minimal().Collect(t, it.Doc, it.TS())
		t.Classes |= index.Unindexed
		return t
	}
	pol.Collect(t, it.Doc, it.TS())
	return t
}

// ownTTL returns the item's own ttl: an integer field ttl of at least 1 or exactly -1.
func ownTTL(doc []byte) int32 {
	v := value.ObjectOf(doc).Get("ttl")
	if k := v.Kind(); k != value.Int32 && k != value.Int64 {
		return 0
	}
	if n := v.Int(); n == -1 || n > 0 && n <= 1<<31-1 {
		return int32(n)
	}
	return 0
}

// unchanged reports whether the item is still as ch.old says. The caller holds the latch.
func (c *Container) unchanged(ctx context.Context, sl *Slot, ch *change) (bool, error) {
	if !c.current(ch) {
		return false, nil
	}
	if sl.head.LSN == ch.seen {
		return true, nil
	}
	return c.stands(ctx, &ch.id, ch.old)
}

// stands reports whether an item is still the one that was read; nil = absent.
func (c *Container) stands(ctx context.Context, id *identity, old *Item) (bool, error) {
	now := change{id: *id}
	if err := c.readOld(ctx, &now, old == nil); err != nil {
		return false, err
	}
	return sameVersion(old, now.old), nil
}

// sameVersion reports whether two stored items with one key are the same version; nil = absent.
func sameVersion(a, b *Item) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.LSN == b.LSN && a.Pos == b.Pos
}
