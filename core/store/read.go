package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Read returns an item; NotFound when it is absent or expired. The caller owns the item's memory.
func (c *Container) Read(ctx context.Context, pk PartitionKey, id value.Value) (*Item, error) {
	it, _, err := c.ReadIn(ctx, pk, id)
	return it, err
}

// ReadIn does what Read does, and returns the slot of the key as ReadInto does.
func (c *Container) ReadIn(ctx context.Context, pk PartitionKey, id value.Value) (*Item, *Slot, error) {
	m := new(struct { // a single allocation for the item and its key
		it  Item
		mem Mem
		key [shortKey]byte
	})
	m.mem.key = m.key[:0]
	sl, err := c.ReadInto(ctx, &m.it, &m.mem, pk, id)
	if err != nil {
		return nil, sl, err
	}
	return &m.it, sl, nil
}

// shortKey is the length that the keys of most items don't exceed.
const shortKey = keys.PrefixLen + 118

// ReadInto does what Read does, but into memory that the caller reuses. It returns the slot of the key even if the item
// is absent; nil when the key doesn't fit the container.
func (c *Container) ReadInto(ctx context.Context, it *Item, m *Mem, pk PartitionKey, id value.Value) (*Slot, error) {
	if err := c.Alive(); err != nil {
		return nil, err
	}
	if c.st.others {
		return c.readShared(ctx, it, m, pk, id)
	}
	if cap(m.key) < shortKey {
		m.key = make([]byte, 0, shortKey)
	}
	at, err := c.locate(m.key[keys.PrefixLen:keys.PrefixLen], pk, id)
	if err != nil {
		return nil, err
	}
	b, err := c.stored(ctx, m, &at)
	sl := at.slot
	if errors.Is(err, kv.ErrNotFound) {
		return sl, orNotFound(sl.settle(ctx))
	}
	if err != nil {
		return sl, translate(err)
	}
	m.val = b
	it.ident, it.paths = at.ident, len(pk)
	if err := decodeEnvelope(b, it); err != nil {
		return sl, err
	}
	if c.expired(it) {
		return sl, orNotFound(sl.waitDurable(ctx, it.LSN))
	}
	return sl, sl.waitDurable(ctx, it.LSN)
}

// stored reads the stored value of the item at an identity, whose suffix is at its place in m.key. The slot of the
// identity may have left the map in the meantime, and its keys may have been removed. So an absence counts only if the
// slot is still the one of the current map.
func (c *Container) stored(ctx context.Context, m *Mem, at *identity) ([]byte, error) {
	for {
		key := keys.AppendPrefix(m.key[:0], at.slot.key, keys.KindItem)
		if n := keys.PrefixLen + len(at.suffix); n <= cap(m.key) {
			key = key[:n] // locate has put the suffix there
		} else {
			key = append(key[:len(key):len(key)], at.suffix...)
		}
		b, err := c.st.eng.Get(ctx, m.val[:0], key)
		if !errors.Is(err, kv.ErrNotFound) || !c.left(at) {
			return b, err
		}
		c.relocate(at)
	}
}

// orNotFound returns NotFound, or the error of the wait that NotFound depends on.
func orNotFound(wait error) error {
	if wait != nil {
		return wait
	}
	return errNotFound()
}

// View is a consistent view of a container for queries. Close it.
//
// In the snapshot every slot has all entries of the view's policy, even during an index rebuild. The view's flags of a
// slot cover at least what the snapshot holds.
//
// The view may show commits that are not durable yet. Before any result of the view is returned, Settle or SettleSlot
// must have returned.
type View struct {
	c       *Container
	snap    kv.Snapshot
	now     int64 // the second at which expiry is decided
	ttl     *int32
	pol     *index.Policy
	of      *Slots     // the version of the slot map that the view shows
	slots   []ViewSlot // in the order of the map: all of it, or those that ViewIn was asked for
	first   int        // number in the map of the first of them
	indexed bool
	bare    bool       // some slot is bare: Head.bare
	opened  time.Time  // by the machine's clock
	sets    *valueSets // nil: there are none
	held    bool       // it is a transaction's: it can't be renewed
	all     together
}

// ViewSlot is a slot in one view. It must not be used with other views.
type ViewSlot struct {
	*Slot
	n     int         // its number among slots
	index *indexFlags // the flags of the slot's index
	seen  sight       // the commits that the snapshot includes
	head  *Head       // in the snapshot, with a shared engine; else nil
}

// maxViews is how often View takes a snapshot if index rebuilds switch the policy of queries, or narrow a slot's flags,
// at that moment. Then it returns a view whose index entries aren't used. After a change of the slot map View always
// takes another snapshot.
const maxViews = 8

// ViewIn is View for a reader that wants only items with placements in [lo, hi); a nil hi is open. With a shared engine
// the view has the slots of these alone: to read the heads of all would cost more, the larger the container is.
func (c *Container) ViewIn(ctx context.Context, lo, hi []byte) (*View, error) {
	if c.st.others {
		return c.sharedView(ctx, lo, hi)
	}
	return c.View(ctx)
}

// View opens a view of the current state. Its reads belong to one request, or to one step of background work, and end
// with ctx.
func (c *Container) View(ctx context.Context) (*View, error) {
	if c.st.others {
		return c.sharedView(ctx, nil, nil)
	}
	v := &View{c: c, now: c.st.clk.Now().Unix(), ttl: c.def.Load().DefaultTTL, opened: realTime.Now()}
	for n := 1; ; n++ {
		pol, resets := c.pol.Load(), c.resets.Load()
		v.sets = c.sets.Load()
		if of := c.Slots(); v.of != of {
			v.of, v.slots = of, make([]ViewSlot, len(of.all))
		}
		var err error
		if v.snap, err = c.st.eng.Snapshot(ctx); err != nil {
			return nil, translate(err)
		}
		v.pol, v.indexed, v.bare = pol, true, false
		for i, sl := range v.of.all {
			f := sl.flags.Load()
			v.slots[i] = ViewSlot{Slot: sl, n: i, index: f, seen: sl.seen()}
			v.indexed = v.indexed && f.classes&index.Unindexed == 0
			v.bare = v.bare || f.bare
		}
		moved := c.Slots() != v.of
		if c.pol.Load() == pol && c.resets.Load() == resets && !moved {
			return v, nil
		}
		if n >= maxViews && !moved {
			v.indexed, v.bare = false, true
			return v, nil
		}
		_ = v.snap.Close()
	}
}

// Indexed reports whether the index entries in the view follow Policy and name every item that they should. Otherwise
// entries, HasElements and HasLossy must not be used, and Classes only for partition keys and ids.
func (v *View) Indexed() bool { return v.indexed }

// Numbered reports whether every item in the view has its number entry. Otherwise readers of number entries must read
// items instead.
func (v *View) Numbered() bool { return !v.bare }

// Policy returns the indexing policy of the view.
func (v *View) Policy() *index.Policy { return v.pol }

// maxViewAges is the age, as a multiple of the age of an old view, at which a view that can't be renewed is given up.
const maxViewAges = 10

// Old reports whether a reader that can continue by position should do so in a new view. gone says that no reader may
// continue in this one.
func (v *View) Old() (old, gone bool) {
	if v.held {
		return false, false
	}
	age, most := realTime.Now().Sub(v.opened), v.c.st.lim.ViewAge
	return age > most, age > maxViewAges*most
}

// ErrOld is the error for a reader that can't continue because its view is too old.
func (v *View) ErrOld() error {
	return status.Wrap(status.Unavailable, kv.ErrSnapshotTooOld, "The query has read one state of the container for "+
		"longer than %v. Read it in pages.",
		maxViewAges*v.c.st.lim.ViewAge)
}

// Close releases the view.
func (v *View) Close() { _ = v.snap.Close() }

// Items returns the number of the container's items, including expired ones that are not reaped yet.
func (v *View) Items() (n int64) {
	for i := range v.slots {
		n += v.slots[i].Items()
	}
	return n
}

// Held reports whether the view belongs to a transaction: a new view would show another state.
func (v *View) Held() bool { return v.held }

// Container returns the container of the view.
func (v *View) Container() *Container { return v.c }

// Version returns the version of the slot map that the view shows.
func (v *View) Version() *Slots { return v.of }

// Slots returns the view's slots, in the order of their placements: all, or those of ViewIn. They must not be changed.
func (v *View) Slots() []ViewSlot { return v.slots }

// At returns the slot of a placement. If it isn't one of Slots (ViewIn), it has no items that the reader wants, and
// nothing is known of its index.
func (v *View) At(place []byte) *ViewSlot {
	at := v.of.m.Slot(place)
	if n := at - v.first; n >= 0 && n < len(v.slots) {
		return &v.slots[n]
	}
	return &ViewSlot{Slot: v.of.all[at], index: &bareFlags, head: &Head{}}
}

// Of returns a slot as the view shows it. It returns nil when it isn't one of Slots.
func (v *View) Of(sl *Slot) *ViewSlot {
	if n := v.of.m.Slot(sl.min) - v.first; n >= 0 && n < len(v.slots) && v.slots[n].Slot == sl {
		return &v.slots[n]
	}
	return nil
}

// Iter returns an iterator over a key range.
func (v *View) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := v.snap.Iter(lo, hi)
	return it, translate(err)
}

// Number returns the slot's number among the view's slots: 0, 1, ..
func (s *ViewSlot) Number() int { return s.n }

// Items returns the number of the slot's items, including expired ones that are not reaped yet.
func (s *ViewSlot) Items() int64 {
	if s.head != nil {
		return s.head.Items
	}
	return s.Slot.Items()
}

// Stats returns the contents of the slot: see Slot.Stats.
func (s *ViewSlot) Stats() Stats {
	if s.head != nil {
		return Stats{s.head.LSN, s.head.Items, s.head.Bytes}
	}
	return s.Slot.Stats()
}

// Classes returns the value classes that the slot's index has ever held, a bit for each class byte c at c>>3.
func (s *ViewSlot) Classes() uint32 { return s.index.classes }

// HasElements reports whether a path may have array elements in the slot.
func (s *ViewSlot) HasElements(path uint64) bool { return s.index.elements.Has(path) }

// HasLossy reports whether a path may have cut values in the slot.
func (s *ViewSlot) HasLossy(path uint64) bool { return s.index.lossy.Has(path) }

// HasInColumn reports whether columns of composite indexes in the slot may have held the feature that an id of
// index.Column stands for.
func (s *ViewSlot) HasInColumn(id uint64) bool { return s.index.columns.Has(id) }

// Place returns the placement and tuple bytes of a partition key. The key may have values for only the first paths:
// then complete is false and the place is a prefix too.
func (c *Container) Place(pk PartitionKey) (place, tuple []byte, complete bool, err error) {
	if len(pk) == len(c.keyPaths()) {
		id, err := c.locate(nil, pk, value.Value{})
		return id.place, id.tuple, true, err
	}
	place, tuple = c.prefix(pk)
	return place, tuple, false, nil
}

// Within returns the bounds [lo, hi) of the placements of a partition key, or of all keys that begin with it; a nil hi
// is open. If that isn't known they are those of all.
func (c *Container) Within(pk PartitionKey) (lo, hi []byte) {
	if len(pk) > len(c.keyPaths()) {
		return nil, nil
	}
	if place, _, _, err := c.Place(pk); err == nil && len(place) > 0 {
		lo, hi = place, keys.After(place)
	}
	return lo, hi
}

// Locate returns the result of Container.Place, and the slot of the placement in the view. For a prefix it is the first
// slot.
func (v *View) Locate(pk PartitionKey) (slot *ViewSlot, place, tuple []byte, complete bool, err error) {
	if place, tuple, complete, err = v.c.Place(pk); err != nil {
		return nil, nil, nil, complete, err
	}
	return v.At(place), place, tuple, complete, nil
}

// Decode reads a stored item (key after the kind's prefix, and value) into it. It returns false when the item is
// expired. The item points into key and val.
func (v *View) Decode(it *Item, suffix, val []byte) (bool, error) {
	place := v.c.placeLen()
	if err := decodeEnvelope(val, it); err != nil {
		return false, err
	}
	it.ident, it.paths = suffix[place:], len(v.c.keyPaths())
	if e := it.expiry(v.ttl); e != 0 && e <= v.now {
		return false, nil
	}
	return true, nil
}

// Mem is the memory of fetched items. An item is valid until the next fetch into its Mem.
type Mem struct {
	key, val []byte
}

// fewValue is the memory for the values of items from the second one on: enough for most.
const fewValue = 1536

// use gives m memory before a fetch. The first value gets memory of its own size, because many queries read one item.
func (m *Mem) use() {
	switch {
	case m.key == nil:
		m.key = make([]byte, 0, shortKey)
	case m.val != nil && cap(m.val) < fewValue:
		m.val = make([]byte, 0, fewValue)
	}
}

// Release gives up the memory of a document and returns true, if m holds it. The document is then valid as long as its
// reader needs it, and the next fetch gets other memory.
func (m *Mem) Release(doc []byte) bool {
	n := len(m.val)
	if n == 0 || len(doc) == 0 || &m.val[n-1] != &doc[len(doc)-1] { // the document ends the stored value
		return false
	}
	m.val = nil
	return true
}

// Size returns the number of bytes that it keeps.
func (m *Mem) Size() int { return cap(m.key) + cap(m.val) }

// Fetch reads the item with this identity (tuple, id) in a slot into it. It returns false when the item is absent or
// expired.
func (v *View) Fetch(it *Item, slot *ViewSlot, ident []byte, m *Mem) (ok bool, err error) {
	m.use()
	m.key = keys.AppendPrefix(m.key[:0], slot.key, keys.KindItem)
	if m.key, err = v.c.appendPlace(m.key, ident); err != nil {
		return false, err
	}
	m.key = append(m.key, ident...)
	return v.fetch(it, m)
}

// FetchSuffix reads the item with this suffix (placement, tuple, id) in a slot into it. It returns false when the item
// is absent or expired.
func (v *View) FetchSuffix(it *Item, slot *ViewSlot, suffix []byte, m *Mem) (bool, error) {
	m.key = append(keys.AppendPrefix(m.key[:0], slot.key, keys.KindItem), suffix...)
	return v.fetch(it, m)
}

func (v *View) fetch(it *Item, m *Mem) (bool, error) {
	b, err := v.snap.Get(m.val[:0], m.key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, translate(err)
	}
	m.val = b
	return v.Decode(it, m.key[keys.PrefixLen:], b)
}

// ByNumber returns the suffix of the item in a slot whose number has the same counter as number. It returns nil when
// there is none, or when the slot's number entries aren't complete (Container.Numbered).
func (v *View) ByNumber(slot *ViewSlot, number uint64) ([]byte, error) {
	if v.bare {
		return v.searchNumber(slot, number)
	}
	b, err := v.snap.Get(nil, keys.AppendNumber(nil, slot.key, Counter(number)))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return b, translate(err)
}

// searchNumber does what ByNumber does without number entries: it reads all items of the slot.
func (v *View) searchNumber(slot *ViewSlot, number uint64) (suffix []byte, err error) {
	lo, hi := keys.KindBounds(slot.key, keys.KindItem)
	err = v.walk(lo, hi, func(k, val []byte) (bool, error) {
		var it Item
		if err := decodeEnvelope(val, &it); err != nil {
			return false, err
		}
		if it.Number == number {
			suffix = bytes.Clone(k[keys.PrefixLen:])
		}
		return suffix == nil, nil
	})
	return suffix, err
}

// Settle waits until the commit of the item is durable.
func (v *View) Settle(ctx context.Context, slot *ViewSlot, it *Item) error {
	return slot.waitDurable(ctx, it.LSN)
}

// SettleSlot waits until everything that the view shows of a slot is durable, including absences. If it is already
// durable, the call costs two atomic loads.
func (v *View) SettleSlot(ctx context.Context, slot *ViewSlot) error {
	return slot.await(ctx, slot.seen)
}

// LogicalItems returns the number of items of a logical partition.
func (v *View) LogicalItems(slot *ViewSlot, place, tuple []byte) (int64, error) {
	if v.c.Def().KeyIsID() { // the id of the only item is the key
		item := append(append(keys.AppendPrefix(nil, slot.key, keys.KindItem), place...), tuple...)
		has, err := v.snap.Has(append(item, tuple...))
		if err != nil || !has {
			return 0, translate(err)
		}
		return 1, nil
	}
	key := append(append(keys.AppendPrefix(nil, slot.key, keys.KindLogical), place...), tuple...)
	b, err := v.snap.Get(nil, key)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, translate(err)
	}
	var h LogicalHead
	err = h.decode(b)
	return h.Items, err
}
