package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// With a shared engine other processes write to the store too, so nothing that a container has in memory is the truth:
// neither its definition and slot map, nor the heads of its slots. Each request therefore begins with a look: it takes
// a snapshot, and reads in it the version of the catalog, the heads of the slots that it is about, and items that it
// names, with one GetMany. If the version isn't the one that the container follows, the container catches up with the
// catalog. If its definition has changed the request looks again. Everything that a reader answers comes from its
// snapshot.
//
// A writer decides on what it has read, and commits under the precondition that the slot's head is still the one that
// the slot has in memory (Slot.head, under the latch). This is the invariant that makes it right:
//
//	The head in memory was the stored one at some time. What a writer reads after that time is consistent with that
//	head, or its commit fails.
//
// For every commit of items raises the head's LSN, so a stored head never comes back: if it is still the same at the
// commit, nobody has committed in between. A commit that fails reads the head again, and the write is repeated. So an
// old head costs a round trip, and is never wrong. To save it, a writer takes over the head that its look has found, if
// that is newer (adopt).
//
// Example: processes A and B have the head with LSN 7. B writes item "x" with LSN 8. A is asked to replace "x" if its
// etag is the one of LSN 8: its look reads the head of LSN 8 and the item, and its commit has the head of LSN 8 as
// precondition. If B writes again before that, A's commit fails. A looks again, and answers that the etag is another.

// look is what a request has read first. The values point into its memory.
type look struct {
	snap  kv.Snapshot // nil: the values aren't of one moment, see lookFrom
	of    *Slots      // the slot map of the snapshot
	vals  kv.Values
	first int // of the heads: the version of the catalog is before them, unless the look trusts (trust.go)
	n     int // number of heads
}

// trusts reports whether the look has not read the version of the catalog.
func (l *look) trusts() bool { return l.first == 0 }

// version returns the version of the catalog that the look has read; ok is false if it has read none.
func (l *look) version() (v uint64, ok bool) {
	if l.trusts() {
		return 0, false
	}
	v, err := catalog.StoredVersion(l.vals.At(0))
	return v, err == nil
}

// head returns the stored head of the i-th slot that was asked for.
func (l *look) head(i int) []byte { return l.vals.At(l.first + i) }

// more returns the value of the i-th key that was asked for besides heads; nil when it is absent.
func (l *look) more(i int) []byte { return l.vals.At(l.first + l.n + i) }

func (l *look) close() {
	if l.snap != nil {
		_ = l.snap.Close()
		l.snap = nil
	}
}

// maxLooks is how often a look is repeated. Each time another process has changed the container's definition, or the
// snapshot has become too old.
const maxLooks = 100

// look takes a snapshot and reads the heads of slots in it, and further keys. want returns them for a version of the
// slot map. It is called after the snapshot was taken, possibly for several snapshots. The engine is a shared one. The
// caller closes the result.
func (c *Container) look(ctx context.Context, want func(of *Slots) ([]*Slot, [][]byte)) (*look, error) {
	return c.lookFrom(ctx, c.st.eng.Snapshot, false, want)
}

// taker takes the snapshot of a look, for each of its tries. nil: the look has none.
type taker func(context.Context) (kv.Snapshot, error)

// newestMost is the longest time of a look without a snapshot. It is far below the time for which the keys of a slot
// stay after another one has taken its place.
const newestMost = 10 * time.Second

// lookFrom is look with a taker. Without one it takes no snapshot: each value is the newest one at some moment of the
// call. That saves a round trip, and is enough for a read of one item:
//
//   - If the version of the catalog was read before the item, the slot may have been replaced in between. Then the item
//     is the last one of the slot, which was current when the slot was replaced, and so at a moment of the call.
//   - If it was read after the item, the slot was the item's slot all the time.
//
// Other values may not fit together. If the head shows that, lookFrom goes on with a snapshot.
//
// trusting says that the look needs no version of the catalog if the one that the container follows is trusted.
func (c *Container) lookFrom(ctx context.Context, take taker, trusting bool,
	want func(of *Slots) ([]*Slot, [][]byte)) (*look, error) {
	for range maxLooks {
		if err := c.Alive(); err != nil {
			return nil, err
		}
		follows := c.follows.Load() // before the map: a newer map has a newer version, which the snapshot shows
		def := c.def.Load()
		l := &look{of: c.Slots(), first: 1}
		begun := realTime.Now()
		var seen catalog.Look
		if take == nil {
			seen = c.st.cat.BeginLook()
		}
		if trusting = trusting && c.st.cat.Trusts(follows); trusting {
			l.first = 0
		}
		if take != nil {
			var err error
			if l.snap, err = take(ctx); err != nil {
				return nil, translate(err)
			}
		}
		slots, more := want(l.of)
		l.n = len(slots)
		names := make([][]byte, 0, 1+len(slots)+len(more))
		if !l.trusts() {
			names = append(names, catalog.VersionKey())
		}
		for _, sl := range slots {
			names = append(names, sl.headKey[:])
		}
		names = append(names, more...)
		var err error
		if take == nil {
			err = kv.GetNewest(ctx, c.st.eng, &l.vals, names)
		} else {
			err = l.snap.GetMany(&l.vals, names)
		}
		if take == nil && err == nil && (realTime.Now().Sub(begun) > newestMost || !l.together()) {
			take, trusting = c.st.eng.Snapshot, false
			continue
		}
		current := false
		switch {
		case err != nil:
		case !trusting:
			current, err = c.shows(l, slots, follows)
			if take == nil && current && err == nil {
				c.st.cat.Saw(seen, follows)
			}
		case l.together() && c.st.cat.Trusts(follows):
			current, err = true, c.showsHeads(l, slots)
		default:
			trusting = false
			l.close()
			continue
		}
		if err == nil && !current {
			if err = c.keepUp(ctx); err == nil {
				current, err = c.asKnown(l, slots, def)
			}
		}
		if err == nil && current {
			return l, nil
		}
		l.close()
		if err != nil && !errors.Is(err, kv.ErrSnapshotTooOld) {
			return nil, translate(err)
		}
	}
	return nil, status.New(status.Unavailable, "The container is changed too often by others.")
}

// together reports whether the heads of a look without a snapshot fit its version of the catalog.
func (l *look) together() bool {
	for i := range l.n {
		var h Head
		if b := l.head(i); b == nil || h.parse(b, new(indexFlags)) == nil && h.Moved {
			return false
		}
	}
	return true
}

// shows reports whether a look shows the version of the catalog that the container follows. Then all of its slots have
// heads. What it shows is durable.
func (c *Container) shows(l *look, slots []*Slot, follows uint64) (bool, error) {
	v, err := catalog.StoredVersion(l.vals.At(0))
	if err != nil || v != follows {
		return false, err
	}
	return true, c.showsHeads(l, slots)
}

func (c *Container) showsHeads(l *look, slots []*Slot) error {
	for i, sl := range slots {
		var h Head
		b := l.head(i)
		if b == nil { // its database was dropped, and is being cleared
			return errDropped()
		}
		if err := h.parse(b, new(indexFlags)); err != nil {
			return err
		}
		if h.Moved {
			return status.New(status.Corruption, "slot %d has left the slot map that names it", sl.ID())
		}
		sl.settled(h.LSN)
	}
	return nil
}

// asKnown reports whether a look shows the container with a definition and its own slot map, although it shows another
// version of the catalog than the one that the container followed. The container has caught up since: if it has still
// both, something else in the catalog has changed. So requests to a container go on however often others change the
// catalog.
//
// No definition and no slot map comes back once another one has taken its place. So values that were read after the
// definition was known, and before the container caught up, go with it. A snapshot may be older: it must show it.
func (c *Container) asKnown(l *look, slots []*Slot, def *catalog.Container) (bool, error) {
	v, err := catalog.StoredVersion(l.vals.At(0))
	if err != nil || v > c.follows.Load() || c.def.Load().Version != def.Version ||
		c.Slots().m.MapVersion != l.of.m.MapVersion || !l.together() {
		return false, err
	}
	if l.snap != nil {
		shown, err := catalog.ShownIn(l.snap, def)
		if err != nil || shown == nil || shown.Gen != def.Gen || shown.Version != def.Version ||
			shown.MapVersion != l.of.m.MapVersion {
			return false, err
		}
	}
	return true, c.showsHeads(l, slots)
}

// keepUp brings the container up to the stored catalog.
func (c *Container) keepUp(ctx context.Context) error {
	def, version, err := c.st.cat.At(ctx, c.Def().RID(), c.gen)
	if status.Is(err, status.NotFound) {
		c.dropped.Store(true)
		return errDropped()
	}
	if err != nil {
		return err
	}
	if c.def.Load().Version < def.Version {
		if err := c.update(ctx, def); err != nil {
			return err
		}
	}
	if def.MapVersion != c.Slots().m.MapVersion {
		if _, err := c.remap(ctx); err != nil {
			return err
		}
	}
	for {
		if was := c.follows.Load(); was >= version || c.follows.CompareAndSwap(was, version) {
			return nil
		}
	}
}

// adopt takes over a stored head that a writer has read, if it is newer than the slot's. nil is none. The container's
// definition is at least as new as that head. If a copy or a rebuild of another process asks writers to wait, it waits.
// The caller holds the latch.
func (c *Container) adopt(ctx context.Context, sl *Slot, b []byte) error {
	if err := c.takeNewer(ctx, sl, b); err != nil {
		return err
	}
	if b != nil && bytes.Equal(b, sl.headBytes) {
		sl.behind = false
	}
	if !sl.head.Held {
		return nil
	}
	return c.heed(ctx, sl)
}

// takeNewer takes over a stored head if it is newer than the slot's. nil is none. The caller holds the latch.
func (c *Container) takeNewer(ctx context.Context, sl *Slot, b []byte) error {
	if b == nil || bytes.Equal(b, sl.headBytes) {
		return nil
	}
	var h Head
	if err := h.parse(b, new(indexFlags)); err != nil {
		return err
	}
	if h.LSN < sl.head.LSN {
		return nil
	}
	if h.LSN == sl.head.LSN { // a commit without items lies between the two: which of them is newer isn't known
		return c.newestHead(ctx, sl)
	}
	return c.install(ctx, sl, b)
}

// Bounds of a writer's wait for the last round of a copy in another process: a share of the duration of leases, and the
// time between two looks at the head.
const (
	heldShare = 8
	heldLook  = 5 * time.Millisecond
)

// asks reports whether a stored head that a writer has read asks writers to wait, and this process hasn't waited yet.
// The caller holds the latch.
func (sl *Slot) asks(b []byte) bool {
	if bytes.Equal(b, sl.headBytes) {
		return sl.head.Held
	}
	var h Head
	return h.parse(b, new(indexFlags)) == nil && h.Held && h.LSN >= sl.head.LSN
}

// heed waits until the last round of a copy in another process has ended, or a chunk of a rebuild: the slot is
// replaced, or its head doesn't ask to wait any more. The wait is bounded, because that process may have ended. Then
// the caller's commit takes the hold away, and the other process has to try again. The caller holds the latch, so other
// writers of this process wait too.
func (c *Container) heed(ctx context.Context, sl *Slot) error {
	for end := realTime.Now().Add(c.st.leases.Duration() / heldShare); sl.head.Held && !sl.head.Moved; {
		if realTime.Now().After(end) {
			sl.head.Held = false // the next commit stores it
			return nil
		}
		t := time.NewTimer(heldLook)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		if err := ctx.Err(); err != nil {
			return translate(err)
		}
		if err := c.newestHead(ctx, sl); err != nil {
			return err
		}
	}
	return nil
}

// install makes a stored head the slot's: another process has written it, or the outcome of a commit was unknown. The
// caller holds the latch.
func (c *Container) install(ctx context.Context, sl *Slot, b []byte) error {
	var h Head
	if err := sl.readHead(&h, b); err != nil {
		return err
	}
	known, err := c.readFacts(ctx, sl, &h)
	if err != nil {
		return err
	}
	c.st.jou.Clock.Advance(h.Recorded)
	if h.LSN != sl.head.LSN {
		sl.overtaken()
	}
	sl.head, sl.headBytes, sl.spare, sl.behind = h, bytes.Clone(b), nil, true
	sl.facts.Store(known)
	if h.LogFloor != 0 {
		c.logs.Store(true)
	}
	c.counter.gave(h.LSN)
	sl.publish()
	sl.settled(h.LSN)
	return nil
}

// A slot is behind when its head was read without the catalog. The head may be newer than the container's definition
// then: a definition that writers must follow is stored first, and after that each head is replaced (fence). A commit
// whose slot is behind reads the version of the catalog first.
//
// Example: a transaction has read the head with LSN 7. Another process declares a unique index, and replaces the head
// by one with LSN 8. The commit fails, and the head with LSN 8 is read. A commit based on it needs the index's entry.

// errBehind is the error of a commit whose container doesn't follow the newest catalog. The write begins again, with a
// look.
var errBehind = errors.New("the container follows an older catalog")

// caughtUp makes sure that the definitions of a draft's containers are at least as new as the heads of its slots. The
// caller holds the latches.
func (d *draft) caughtUp(ctx context.Context) error {
	for i := range d.parts {
		sl := d.parts[i].sl
		if !sl.behind {
			continue
		}
		b, err := orNil(d.c.st.eng.Get(ctx, nil, catalog.VersionKey()))
		if err != nil {
			return translate(err)
		}
		switch later, err := sl.c.later(b); {
		case err != nil:
			return err
		case later:
			return errBehind
		}
		sl.behind = false
	}
	return nil
}

// later reports whether a stored version of the catalog is later than the one that the container follows.
func (c *Container) later(stored []byte) (bool, error) {
	v, err := catalog.StoredVersion(stored)
	return v > c.follows.Load(), err
}

// maxAgain is how often Again calls its function.
const maxAgain = 3

// Again calls f, and calls it again if the snapshot that it has read can't be read any more: a bounded number of times.
// It is for reads that have answered nothing yet.
func Again(f func() error) (err error) {
	for range maxAgain {
		if err = f(); !errors.Is(err, kv.ErrSnapshotTooOld) {
			break
		}
	}
	return err
}

// Shared reports whether other processes may write to the container too.
func (c *Container) Shared() bool { return c.st.others }

// Refresh takes over the heads of all slots, so that the counts and LSNs in memory are those of the store. If other
// processes can't write to the container it does nothing.
func (c *Container) Refresh(ctx context.Context) error {
	if !c.st.others {
		return nil
	}
	l, err := c.look(ctx, func(of *Slots) ([]*Slot, [][]byte) { return of.all, nil })
	if err != nil {
		return err
	}
	defer l.close()
	for i, sl := range l.of.all {
		if err := c.takeHead(ctx, sl, l.head(i)); err != nil {
			return err
		}
	}
	return nil
}

// newestHead brings a slot's head up to the stored one, if the engine is a shared one. If other slots have replaced the
// slot, it looks the map up again, and the slot isn't in it afterwards. The caller holds the latch.
func (c *Container) newestHead(ctx context.Context, sl *Slot) error {
	if !c.st.others {
		return nil
	}
	b, err := orNil(c.st.eng.Get(ctx, nil, sl.headKey[:]))
	if err != nil || bytes.Equal(b, sl.headBytes) {
		return err
	}
	if b != nil {
		if err := c.install(ctx, sl, b); err != nil || !sl.head.Moved {
			return err
		}
	}
	if _, err := c.remap(ctx); err != nil {
		return err
	}
	if b == nil && c.Slots().has(sl) {
		return c.gone()
	}
	return nil
}

// takeHead is takeNewer for a caller without the latch.
func (c *Container) takeHead(ctx context.Context, sl *Slot, b []byte) error {
	if err := sl.mu.LockFor(ctx); err != nil {
		return err
	}
	defer sl.mu.Unlock()
	return c.takeNewer(ctx, sl, b)
}

// sharedView is ViewIn with a shared engine. Policy, flags and counts are those of the heads in the view's snapshot.
func (c *Container) sharedView(ctx context.Context, lo, hi []byte) (*View, error) {
	var slots []*Slot
	l, err := c.look(ctx, func(of *Slots) ([]*Slot, [][]byte) {
		slots = of.within(lo, hi)
		return slots, nil
	})
	if err != nil {
		return nil, err
	}
	v := &View{c: c, snap: l.snap, now: c.st.clk.Now().Unix(), ttl: c.def.Load().DefaultTTL, opened: realTime.Now(),
		of: l.of}
	if err := v.decide(slots, l.head); err != nil {
		l.close()
		return nil, err
	}
	return v, nil
}

// decide gives a view its slots, a part of the map or all of it, and sets what their stored heads say. They say enough
// of themselves: the index of each slot has all entries of the policy that its head names, whatever others have
// (rebuild).
func (v *View) decide(slots []*Slot, head func(i int) []byte) error {
	hs, list := make([]Head, len(slots)), make([]*Head, len(slots))
	v.slots, v.first, v.indexed, v.bare = make([]ViewSlot, len(hs)), v.of.m.Slot(slots[0].min), true, false
	for i, sl := range slots {
		if err := hs[i].decode(head(i)); err != nil {
			return err
		}
		list[i] = &hs[i]
		f := hs[i].held()
		v.slots[i] = ViewSlot{Slot: sl, n: i, index: f, head: &hs[i]}
		v.indexed = v.indexed && f.classes&index.Unindexed == 0
		v.bare = v.bare || f.bare
	}
	known := *v.c.known.Load()
	if r, ok := between(list, known); ok {
		v.pol = known.at(r.readable)
		if len(slots) == len(v.of.all) || r.to == 0 {
			v.c.reads(r.readable)
		}
		return nil
	}
	v.pol, v.indexed, v.bare = v.c.pol.Load(), false, true
	return nil
}

// itemKey returns the key of an item.
func (id *identity) itemKey() []byte {
	return append(keys.AppendPrefix(nil, id.slot.key, keys.KindItem), id.suffix...)
}

// lookAt looks at one item: the head of its slot, and the item itself. It finds the item's slot in the map of the
// snapshot. with is one more key; nil: none. take and trusting are for lookFrom.
func (c *Container) lookAt(ctx context.Context, id *identity, take taker, trusting bool, with []byte) (*look, error) {
	return c.lookFrom(ctx, take, trusting, func(of *Slots) ([]*Slot, [][]byte) {
		id.slot, id.version = of.at(id.place), of.m.MapVersion
		more := [][]byte{id.itemKey()}
		if with != nil {
			more = append(more, with)
		}
		return []*Slot{id.slot}, more
	})
}

// readShared is ReadInto with a shared engine.
func (c *Container) readShared(ctx context.Context, it *Item, m *Mem, pk PartitionKey, id value.Value) (*Slot, error) {
	at, err := c.locate(nil, pk, id)
	if err != nil {
		return nil, err
	}
	l, err := c.lookAt(ctx, &at, nil, true, nil)
	if err != nil {
		return at.slot, err
	}
	defer l.close()
	b := l.more(0)
	if b == nil {
		return at.slot, errNotFound()
	}
	m.val = append(m.val[:0], b...)
	it.ident, it.paths = at.ident, len(pk)
	if err := decodeEnvelope(m.val, it); err != nil {
		return at.slot, err
	}
	at.slot.settled(it.LSN) // it may be younger than the head that was read
	if c.expired(it) {
		return at.slot, errNotFound()
	}
	return at.slot, nil
}

// readOldShared reads what a write is decided on: its item, the head that the slot had then, and its record.
func (c *Container) readOldShared(ctx context.Context, ch *change) error {
	var with []byte
	if ch.with != nil {
		with = ch.with.Name.key()
	}
	l, err := c.lookAt(ctx, &ch.id, c.st.eng.Snapshot, false, with)
	if err != nil {
		return err
	}
	defer l.close()
	var h Head
	ch.basis = bytes.Clone(l.head(0))
	if err := h.parse(ch.basis, new(indexFlags)); err != nil {
		return err
	}
	ch.seen = h.LSN
	if err := c.decodeOld(ch, bytes.Clone(l.more(0))); err != nil || with == nil {
		return err
	}
	return ch.checkAttached(l.more(1))
}

// look takes the snapshot of a transaction, and finds its slot in the map of the snapshot.
func (tx *Tx) look() error {
	take := func(ctx context.Context) (kv.Snapshot, error) {
		if s := tx.hold.look(); s != nil {
			return s, nil
		}
		return tx.c.st.eng.Snapshot(ctx)
	}
	l, err := tx.c.lookFrom(tx.ctx, take, false, func(of *Slots) ([]*Slot, [][]byte) {
		tx.at.slot, tx.at.version = of.at(tx.at.place), of.m.MapVersion
		if tx.c.def.Load().KeyIsID() {
			return []*Slot{tx.at.slot}, nil
		}
		return []*Slot{tx.at.slot}, [][]byte{tx.logicalKey()}
	})
	if err != nil {
		return err
	}
	var h Head
	tx.basis = bytes.Clone(l.head(0))
	err = h.parse(tx.basis, new(indexFlags))
	if err == nil && !tx.c.def.Load().KeyIsID() {
		err = tx.keepWas(l.more(0))
	}
	if err != nil {
		l.close()
		return err
	}
	tx.snap, tx.of, tx.seen, tx.begun = l.snap, l.of, h.LSN, h.LSN
	return nil
}

// endLook closes the snapshot of look, once.
func (tx *Tx) endLook() {
	if tx.snap != nil {
		_ = tx.snap.Close()
		tx.snap = nil
	}
}

// sharedView is view with a shared engine. It has the slot of the Tx only, whose head was read at its beginning.
func (tx *Tx) sharedView() (*View, error) {
	v := &View{c: tx.c, snap: heldSnapshot{tx.snap}, held: true, now: tx.c.st.clk.Now().Unix(),
		ttl: tx.c.def.Load().DefaultTTL, opened: realTime.Now(), of: tx.of}
	return v, v.decide([]*Slot{tx.at.slot}, func(int) []byte { return tx.basis })
}

// checkShared brings what a check compares with up to its snapshot. The error is errLeft if another process has
// replaced the slot. The caller holds the latch of the slot, so the snapshot is at least as new as what the slot has in
// memory.
func (c *Container) checkShared(k *checker) error {
	b, err := orNil(k.snap.Get(nil, k.sl.headKey[:]))
	var h Head
	if err == nil && b != nil {
		err = h.decode(b)
	}
	if err == nil && (b == nil || h.Moved) {
		if _, err = c.remap(k.ctx); err == nil {
			err = errLeft
			if c.Slots().has(k.sl) {
				err = c.gone()
			}
		}
		return err
	}
	if err == nil && !bytes.Equal(b, k.sl.headBytes) {
		err = c.install(k.ctx, k.sl, b)
	}
	if err == nil {
		var lsn uint64
		lsn, k.given, _, err = c.counter.stored(k.ctx)
		k.limit = int64(lsn)
	}
	return translate(err)
}

// learn compiles the indexing policies that the stored definition has and the container doesn't know. It takes no
// locks: the caller may hold a latch.
func (c *Container) learn(ctx context.Context) error {
	def, _, err := c.st.cat.At(ctx, c.Def().RID(), c.gen)
	if err != nil {
		return err
	}
	more, err := compilePolicies(def)
	if err != nil {
		return err
	}
	for {
		was := c.known.Load()
		if sum := was.with(more); c.known.CompareAndSwap(was, &sum) {
			return nil
		}
	}
}

// reads records the version of the policy that queries use, unless a later one is known. It is for Container.Policy:
// views decide by the heads in their snapshots.
func (c *Container) reads(version uint32) {
	for {
		was, known := c.pol.Load(), *c.known.Load()
		p := known.at(version)
		if p == nil || p == was || known.of(was) > version || c.pol.CompareAndSwap(was, p) {
			return
		}
	}
}
