package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// A declared unique index has one entry for each key of each item. Its key names the index and the values, and its
// value the item. The entries of a container stand beside its slots and not in them, because they are unique across
// slots. These are the invariants:
//
//  1. A commit of an item adds and removes its entries in the same engine write. An entry that it adds has the
//     precondition Absent. So of two commits in different slots that add one entry, one fails: it begins again, finds
//     the entry, and is refused.
//  2. Only commits of an item's own slot remove its entries. They do so with the item unchanged (under the latch, or
//     with the head as precondition).
//  3. While the index is being built an item may lack entries. So a commit removes an entry only after it has seen that
//     the entry names the item. When the index is ready, every item has its entries: see declaring.
//
// Example: items A and B are in different slots, and "x" is A's value. B is created with "x": the commit reads the
// entry of "x", which names A, and is refused. A changes to "y": the commit deletes the entry of "x" and puts that of
// "y" if it is absent. Now B can have "x".

// declared are the compiled declared indexes of a container. It is immutable.
type declared struct {
	unique  []*index.Declared // whose entries writers make
	timed   []*index.Declared // that end the life of items
	ruined  bool              // some index isn't ready: it is being built or dropped, or that was interrupted
	version uint64            // of the definition
}

// compileDeclared compiles the declared indexes of a definition, nil if there are none.
func compileDeclared(def *catalog.Container) (*declared, error) {
	if len(def.Declared) == 0 {
		return nil, nil
	}
	s := &declared{version: def.Version}
	for _, of := range def.Declared {
		d, err := index.CompileDeclared(of)
		if err != nil {
			return nil, err
		}
		if d.Unique && d.State != catalog.IndexDropping {
			s.unique = append(s.unique, d)
		}
		if d.After != nil && d.State == catalog.IndexReady {
			s.timed = append(s.timed, d)
		}
		s.ruined = s.ruined || d.State != catalog.IndexReady
	}
	return s, nil
}

// declares returns the unique declared indexes whose entries writers make.
func (c *Container) declares() []*index.Declared {
	if s := c.declared.Load(); s != nil {
		return s.unique
	}
	return nil
}

// single reports whether the writes of several items are committed one after the other: a unique value that one of them
// frees must not be visible to the write before it.
func (c *Container) single() bool { return len(c.uniques) > 0 || len(c.declares()) > 0 }

// Duplicate is the cause of a Conflict: another item has a value that a declared index keeps unique.
type Duplicate struct {
	Paths  [][]string
	Index  string        // the name of the index
	Values []value.Value // of the paths
}

// Error implements error.
func (d *Duplicate) Error() string { return "the index " + d.Index + " has the values already" }

// holder is the item that has a value which a commit would take.
type holder struct {
	slot    *Slot
	suffix  []byte
	expired bool  // it can be removed
	lsn     int64 // of its version
	cause   error // what the writer gets if the item isn't expired
}

// Error implements error.
func (h *holder) Error() string { return h.cause.Error() }

// Unwrap gives the Conflict.
func (h *holder) Unwrap() error { return h.cause }

// held returns the holder that has made a commit fail, nil if it was something else.
func heldBy(err error) *holder {
	var h *holder
	if errors.As(err, &h) {
		return h
	}
	return nil
}

// refusal returns what a client gets for an error of a commit, and what must be durable before.
func (h *holder) refusal() (pending, error) { return pending{slot: h.slot, lsn: h.lsn}, h.cause }

// removeExpired removes an expired item that has a value which a commit would take. The caller holds no latch.
func (c *Container) removeExpired(ctx context.Context, h *holder) error {
	p, _, err := c.reapBatch(ctx, h.slot, [][]byte{h.suffix})
	return cmp.Or(err, p.wait(ctx))
}

func duplicate(d *index.Declared, k *index.DeclaredKey) error {
	cause := &Duplicate{Index: d.Name, Paths: d.Paths}
	for _, v := range k.Values {
		cause.Values = append(cause.Values, v.Clone())
	}
	return status.Wrap(status.Conflict, cause, "Unique index constraint violation.")
}

// entryMove is an entry that a commit removes from an item, or adds to it.
type entryMove struct {
	key []byte
	of  *index.Declared
	k   index.DeclaredKey
	ch  *change
	add bool
}

// declared checks and moves the entries of declared indexes. The parts of a container are adjacent.
func (d *draft) declared(ctx context.Context) error {
	for i := 0; i < len(d.parts); {
		c, j := d.parts[i].sl.c, i+1
		for j < len(d.parts) && d.parts[j].sl.c == c {
			j++
		}
		if err := d.declaredOf(ctx, c, d.parts[i:j]); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// declaredOf is declared for the parts of one container.
func (d *draft) declaredOf(ctx context.Context, c *Container, parts []part) error {
	all := c.declares()
	if len(all) == 0 {
		return nil
	}
	var moves []entryMove
	for _, of := range all {
		for i := range parts {
			for _, chs := range [][]change{parts[i].evicted, parts[i].chs} {
				for k := range chs {
					var err error
					if moves, err = c.entryMoves(moves, of, &chs[k]); err != nil {
						return err
					}
				}
			}
		}
	}
	if len(moves) == 0 {
		return nil
	}
	return d.move(ctx, c, moves)
}

// entryMoves appends the entries that differ between the two versions of an item.
func (c *Container) entryMoves(moves []entryMove, of *index.Declared, ch *change) ([]entryMove, error) {
	var old, now []index.DeclaredKey
	if ch.old != nil {
		old, _ = of.Keys(ch.old.Doc) // a version without keys is older than the index
	}
	if ch.item != nil {
		var err error
		if now, err = of.Keys(ch.item.Doc); err != nil {
			return moves, err
		}
	}
	same := func(in []index.DeclaredKey, k *index.DeclaredKey) bool {
		return slices.ContainsFunc(in, func(o index.DeclaredKey) bool { return bytes.Equal(o.Bytes, k.Bytes) })
	}
	for i := range old {
		if !same(now, &old[i]) {
			moves = append(moves, entryMove{c.entryKey(of, &old[i]), of, old[i], ch, false})
		}
	}
	for i := range now {
		if !same(old, &now[i]) {
			moves = append(moves, entryMove{c.entryKey(of, &now[i]), of, now[i], ch, true})
		}
	}
	return moves, nil
}

func (c *Container) entryKey(of *index.Declared, k *index.DeclaredKey) []byte {
	return keys.AppendDeclared(make([]byte, 0, keys.PrefixLen+4+len(k.Bytes)), c.gen, of.Num, k.Bytes)
}

// move reads the present entries and adds the moves to the batch.
func (d *draft) move(ctx context.Context, c *Container, moves []entryMove) error {
	slices.SortStableFunc(moves, func(a, b entryMove) int { return bytes.Compare(a.key, b.key) })
	names := make([][]byte, len(moves))
	for i := range moves {
		names[i] = moves[i].key
	}
	var there kv.Values
	if err := kv.GetNewest(ctx, c.st.eng, &there, names); err != nil {
		return translate(err)
	}
	for i := 0; i < len(moves); {
		freed, owner := false, there.At(i)
		var adds *entryMove
		for first := i; i < len(moves) && bytes.Equal(moves[i].key, moves[first].key); i++ {
			switch m := &moves[i]; {
			case !m.add:
				freed = freed || bytes.Equal(owner, m.ch.id.suffix)
			case adds != nil:
				return duplicate(m.of, &m.k)
			default:
				adds = m
			}
		}
		if err := d.moveOne(ctx, &moves[i-1], adds, owner, freed); err != nil {
			return err
		}
	}
	return nil
}

// moveOne adds to the batch what a commit does to one entry, which now names owner. m is one of its moves. freed says
// that the owner gives it up.
func (d *draft) moveOne(ctx context.Context, m, adds *entryMove, owner []byte, freed bool) error {
	switch {
	case adds == nil && freed:
		d.late.Delete(m.key)
		return nil
	case adds == nil:
		return nil
	case owner == nil:
		d.pre = append(d.pre, kv.Precondition{Key: m.key, Expect: kv.Absent})
	case bytes.Equal(owner, adds.ch.id.suffix): // the entry was made by the build
	case !freed:
		return adds.ch.id.slot.c.holderOf(ctx, adds, owner)
	}
	d.late.Put(m.key, adds.ch.id.suffix)
	return nil
}

// holderOf returns the error for an entry that names another item.
func (c *Container) holderOf(ctx context.Context, m *entryMove, owner []byte) error {
	id, err := c.identityOf(bytes.Clone(owner))
	if err != nil {
		return err
	}
	c.relocate(&id)
	now := change{id: id}
	if err := c.readOld(ctx, &now, false); err != nil {
		return err
	}
	h := &holder{slot: id.slot, suffix: id.suffix, cause: duplicate(m.of, &m.k)}
	if now.old != nil { // else it was removed since the entry was read, which showed it
		h.expired, h.lsn = now.expired, now.old.LSN
	}
	return h
}

// Declared reports whether the container has a declared index that ends the life of items, or one whose entries are to
// be removed.
func (c *Container) Declared() bool {
	s := c.declared.Load()
	return s != nil && (len(s.timed) > 0 || s.ruined)
}

// overdue reports whether a declared index ends the life of an item now.
func (c *Container) overdue(it *Item) bool {
	s := c.declared.Load()
	if s == nil {
		return false
	}
	now := c.st.clk.Now().UnixMilli()
	return slices.ContainsFunc(s.timed, func(d *index.Declared) bool { return d.Due(it.Doc, now) })
}

// dueDeclared appends the suffixes of items whose life a declared index ends. The container's index lists the items by
// the dates at a path, so the walk reads those whose dates are past. Some of these stay: an index with a condition is
// not for all items, and a date in an array of arrays ends no life. An item with too many terms may have an entry that
// matches any value in place of its date. So each item is looked at, and a walk reads a bounded number of entries. If
// some items of a slot aren't in the index, the walk goes on over its items.
func (c *Container) dueDeclared(view *View, slot *ViewSlot, out [][]byte) (_ [][]byte, more bool, err error) {
	s := c.declared.Load()
	if s == nil || view.pol == nil || view.bare {
		return out, false, nil
	}
	for _, d := range s.timed {
		if !view.pol.Covers(d.Paths[0], true) {
			continue
		}
		w := dateWalk{c: c, d: d, view: view, slot: slot, out: out, seen: map[string]bool{},
			now: c.st.clk.Now().UnixMilli()}
		for _, suffix := range out {
			w.seen[string(suffix)] = true
		}
		if err := w.run(); err != nil {
			return out, false, err
		}
		out, more = w.out, more || w.bound && len(w.out) > 0
	}
	return out, more, nil
}

// dateWalk walks over the entries of dates at a path, oldest first, then over those that match any value, and then over
// the items.
type dateWalk struct {
	c     *Container
	d     *index.Declared
	view  *View
	slot  *ViewSlot
	out   [][]byte
	seen  map[string]bool // what is in out
	mem   Mem
	now   int64
	bound bool // a bound was reached
}

func (w *dateWalk) run() error {
	lo, hi := index.DatesUntil(w.d.DueBefore(w.now))
	err := w.entries(lo, hi)
	if err == nil && w.slot.Classes()&(1<<(value.ClassAny>>3)) != 0 {
		err = w.entries(keys.ClassRange(value.ClassAny))
	}
	if err == nil && w.slot.Classes()&index.Unindexed != 0 {
		lo, hi := keys.KindBounds(w.slot.key, keys.KindItem)
		err = w.walk(0, lo, hi, func(key []byte) error { return w.look(bytes.Clone(key[keys.PrefixLen:])) })
	}
	return err
}

// entries walks over the entries of the encoded values [from, to).
func (w *dateWalk) entries(from, to []byte) error {
	path := keys.AppendIndexPath(nil, w.slot.key, w.view.pol.PathID(w.d.Paths[0]))
	return w.walk(from[0], append(bytes.Clone(path), from...), append(path, to...), w.entry)
}

// walk calls f for the keys [lo, hi). If it reaches a bound, the next walk of this kind goes on there.
func (w *dateWalk) walk(kind byte, lo, hi []byte, f func(key []byte) error) error {
	if len(w.out) >= reapItems {
		return nil
	}
	at := atRoam{w.slot.key, w.d.Num, w.d.Name, kind}
	if v, ok := w.c.roamed.LoadAndDelete(at); ok {
		lo = v.([]byte)
	}
	passed := 0
	return w.view.walk(lo, hi, func(key, _ []byte) (bool, error) {
		if err := f(key); err != nil {
			return false, err
		}
		passed++
		over := len(w.out) >= reapItems || passed >= reapEntries
		if over {
			w.bound = true
			w.c.roamed.Store(at, append(bytes.Clone(key), 0))
		}
		return !over, nil
	})
}

// atRoam names a walk of an index in a slot: the first byte of the values that it walks over, 0 for items.
type atRoam struct {
	slot keys.Slot
	num  uint32
	name string
	kind byte
}

// entry looks at the item of an entry.
func (w *dateWalk) entry(key []byte) error {
	layout := w.c.Entries()
	e, err := layout.Parse(key)
	if err != nil {
		return translate(err)
	}
	suffix, err := w.c.appendPlace(nil, e.Name)
	if err != nil {
		return err
	}
	return w.look(layout.AppendIdentity(suffix, e.Name))
}

// look appends an item if its life has ended.
func (w *dateWalk) look(suffix []byte) error {
	if w.seen[string(suffix)] {
		return nil // perhaps by another element of the same array
	}
	var it Item
	alive, err := w.view.FetchSuffix(&it, w.slot, suffix, &w.mem)
	if err == nil && alive && w.d.Due(it.Doc, w.now) {
		w.out, w.seen[string(suffix)] = append(w.out, suffix), true
	}
	return err
}

// leaseDeclaring waits for the lease of changes of declared indexes.
func (c *Container) leaseDeclaring(ctx context.Context) (*lease.Lease, error) {
	l, err := c.st.leases.Acquire(ctx, lease.Name{Kind: lease.Declare, Gen: c.gen})
	return l, translate(err)
}
