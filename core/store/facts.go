package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Fact counts exceptions among the index entries at a path in a slot. All counts are 0 if each item has exactly one
// entry there, the entry of its value, in the order of the values.
//
// Example: of 10 items 7 have a number at /n, 2 have a string that is cut in its entry, 1 has no value. The fact is
// Missing 1, Elements 0, Lossy 2.
type Fact struct {
	Missing  int64 // items less entries of values at the path itself: where Elements is 0, the items without a value
	Elements int64 // entries that an item may have in addition to others, see index.Counts
	Lossy    int64 // entries that don't hold their whole value
}

// without returns the fact without what o has counted.
func (f Fact) without(o Fact) Fact {
	return Fact{f.Missing - o.Missing, f.Elements - o.Elements, f.Lossy - o.Lossy}
}

// after returns the fact after the given items and entries have been added.
func (f Fact) after(items int64, c *index.Counts) Fact {
	return Fact{f.Missing + items - c.Values, f.Elements + c.Elements, f.Lossy + c.Lossy}
}

const (
	formatFact = 1

	factCounting = 1 // the counts are what commits have added since the count began
	factExact    = 2
	factOfCount  = 3 // as factCounting, and the number of the count follows, in a store that several processes share
)

// appendFact appends the stored form of a fact with these counts.
func (f *fact) appendFact(dst []byte, counts Fact) []byte {
	switch {
	case f.exact:
		dst = append(dst, formatFact, factExact)
	case f.count != 0:
		dst = binary.AppendUvarint(append(dst, formatFact, factOfCount), f.count)
	default:
		dst = append(dst, formatFact, factCounting)
	}
	for _, n := range [...]int64{counts.Missing, counts.Elements, counts.Lossy} {
		dst = binary.AppendVarint(dst, n)
	}
	return append(dst, f.field...)
}

// decode reads a stored fact. It leaves path as it is.
func (f *fact) decode(b []byte) error {
	if len(b) < 2 || b[0] != formatFact || b[1] < factCounting || b[1] > factOfCount {
		return status.New(status.Corruption, "fact of unknown format")
	}
	f.exact, f.count = b[1] == factExact, 0
	numbered, size := b[1] == factOfCount, 0
	b = b[2:]
	if numbered {
		if f.count, size = binary.Uvarint(b); size <= 0 {
			return errShortFact()
		}
		b = b[size:]
	}
	for _, n := range [...]*int64{&f.Missing, &f.Elements, &f.Lossy} {
		if *n, size = binary.Varint(b); size <= 0 {
			return errShortFact()
		}
		b = b[size:]
	}
	f.field = string(b)
	return nil
}

func errShortFact() error { return status.New(status.Corruption, "fact that is cut") }

// fact is a Fact that a slot keeps. asked may be used without the latch. The latch guards the counts.
type fact struct {
	Fact
	path  uint64
	field string // the first name of the path; an index rebuild uses it to decide whether the fact stays valid
	exact bool
	count uint64      // of a shared store: the number of the count that will make it exact; else 0
	asked atomic.Bool // a query has used it since the last commit that looked
	wrote int64       // commits that changed it since a query last used it
}

// wear is a number of commits. A fact that no query uses is dropped after so many changes, plus one for each value at
// the path: then counting it again costs less than keeping it. So a path that a query has used once, and that most
// items don't have, costs later commits almost nothing.
const wear = 100

// worn reports whether a fact is dropped instead of changed by a commit.
func (f *fact) worn(items int64) bool {
	if f.asked.Load() {
		f.asked.Store(false)
		f.wrote = 0
	}
	f.wrote++
	return f.wrote > wear+max(0, items-f.Missing)
}

func (f *fact) stored() []byte { return f.appendFact(nil, f.Fact) }

// facts holds all facts of a slot, by path. The lists are never changed.
type facts struct {
	paths []uint64
	list  []*fact
}

// maxFacts bounds the facts of a slot.
const maxFacts = 1000

// get returns the fact of a path, nil when there is none.
func (fs *facts) get(path uint64) *fact {
	if fs == nil {
		return nil
	}
	if i, ok := slices.BinarySearch(fs.paths, path); ok {
		return fs.list[i]
	}
	return nil
}

// all returns the list, also of no facts.
func (fs *facts) all() []*fact {
	if fs == nil {
		return nil
	}
	return fs.list
}

// only returns the facts for which keep returns true, nil if there are none.
func (fs *facts) only(keep func(*fact) bool) *facts {
	var out facts
	for _, f := range fs.all() {
		if keep(f) {
			out.paths, out.list = append(out.paths, f.path), append(out.list, f)
		}
	}
	if out.list == nil {
		return nil
	}
	return &out
}

// with returns the facts with f in place of the path's former fact.
func (fs *facts) with(f *fact) *facts {
	out := &facts{}
	if fs != nil {
		out.paths, out.list = slices.Clone(fs.paths), slices.Clone(fs.list)
	}
	i, there := slices.BinarySearch(out.paths, f.path)
	if there {
		out.list[i] = f
		return out
	}
	out.paths, out.list = slices.Insert(out.paths, i, f.path), slices.Insert(out.list, i, f)
	return out
}

// idle returns a fact that no query has used since the last call. If all were used, it returns any.
func (fs *facts) idle() *fact {
	for _, f := range fs.list {
		if !f.asked.Load() {
			return f
		}
	}
	for _, f := range fs.list {
		f.asked.Store(false)
	}
	return fs.list[0]
}

// spilled is a bit of a head's classes. It says that an item had more than index.MaxTerms terms. For such items the
// whole policy decides which paths have entries.
const spilled = 1 << (value.ClassAny >> 3)

// lasting reports whether a rebuild from one policy to another leaves the entries at and below a field unchanged, in a
// slot that has held these classes.
func lasting(a, b *index.Policy, field string, classes uint32) bool {
	return classes&spilled == 0 && a != nil && b != nil && index.SameBelow(a, b, field)
}

// stay returns the facts that stay valid in the commit of a rebuild from a to b. It adds the deletion of the others to
// batch. During a rebuild a slot has only facts whose entries are the same under both policies. A bare slot has no
// facts.
func (fs *facts) stay(batch *kv.Batch, sl *Slot, h *Head, a, b *index.Policy) *facts {
	bare := sl.head.bare()
	if h.Next == 0 && !bare {
		return fs
	}
	return fs.without(batch, sl, h, func(f *fact) bool { return bare || !lasting(a, b, f.field, h.stored().classes) })
}

// without returns the facts for which goes returns false. It adds the deletion of the others to a commit with the head
// h.
func (fs *facts) without(batch *kv.Batch, sl *Slot, h *Head, goes func(*fact) bool) *facts {
	gone := false
	left := fs.only(func(f *fact) bool {
		if !goes(f) {
			return true
		}
		batch.Delete(keys.AppendFact(nil, sl.key, f.path))
		gone = true
		return false
	})
	if !gone {
		return fs
	}
	h.Facts++
	return left
}

// readFacts reads a slot's facts. h is its head.
func (c *Container) readFacts(ctx context.Context, sl *Slot, h *Head) (*facts, error) {
	if h.Facts == 0 {
		return nil, nil
	}
	snap, err := c.st.eng.Snapshot(ctx)
	if err != nil {
		return nil, translate(err)
	}
	defer snap.Close()
	fs := &facts{}
	lo, hi := keys.KindBounds(sl.key, keys.KindFact)
	err = each(snap, lo, hi, func(key, val []byte) error {
		f := &fact{}
		path, ok := keys.FactPath(key)
		if !ok || f.decode(val) != nil {
			return nil // the fact isn't used, and is counted again when a query needs it
		}
		f.path = path
		fs.paths, fs.list = append(fs.paths, f.path), append(fs.list, f)
		return nil
	})
	if err != nil || len(fs.list) == 0 {
		return nil, err
	}
	return fs, nil
}

// factsChange is the effect of a part's commit on the facts of its slot.
type factsChange struct {
	of     *facts // nil: the slot has none
	some   bool   // some fact changes
	goes   bool   // some facts are dropped; left holds the others
	left   *facts
	worn   []uint64
	counts []index.Counts // entries that the changes add, minus those that they remove
	next   []Fact
}

// factRoom is memory of a slot's commits: for the entries at the facts' paths, and for the next facts.
type factRoom struct {
	sums []index.Counts
	next []Fact
}

// beginFacts prepares counting the effect of a part's changes.
func (p *part) beginFacts() {
	p.facts = factsChange{of: p.sl.facts.Load()}
	if p.facts.of == nil {
		return
	}
	n := len(p.facts.of.list)
	if p.sl.room == nil || cap(p.sl.room.sums) < n {
		p.sl.room = &factRoom{make([]index.Counts, n), make([]Fact, n)}
	}
	p.facts.counts, p.facts.next = p.sl.room.sums[:n], p.sl.room.next[:n]
	clear(p.facts.counts)
}

// countFacts adds the effect of a change at the paths of which the slot keeps facts.
func (p *part) countFacts(ch *change) {
	if p.facts.of == nil {
		return
	}
	if ch.newTerms != nil {
		ch.newTerms.Count(p.facts.of.paths, p.facts.counts, 1)
	}
	if ch.oldTerms != nil {
		ch.oldTerms.Count(p.facts.of.paths, p.facts.counts, -1)
	}
}

// facts adds to a part's commit the facts that change: those for which one of its items is, or was, an exception.
func (d *draft) facts(p *part) {
	fc := &p.facts
	if fc.of == nil {
		return
	}
	if p.h.Next != 0 && p.h.stored().classes&spilled != 0 { // see lasting
		fc.goes, fc.left = true, fc.of.without(d.late, p.sl, &p.h, func(*fact) bool { return true })
		return
	}
	items := p.h.Items - p.sl.head.Items
	for i, f := range fc.of.list {
		fc.next[i] = f.after(items, &fc.counts[i])
		switch {
		case fc.next[i] == f.Fact:
		case f.worn(p.h.Items):
			fc.worn = append(fc.worn, f.path)
		default:
			fc.some = true
			d.mem.val = f.appendFact(d.mem.val[:0], fc.next[i])
			d.put(d.late, keys.AppendFact(d.mem.key[:0], p.sl.key, f.path), d.mem.val)
		}
	}
	if fc.worn != nil {
		fc.goes = true
		fc.left = fc.of.without(d.late, p.sl, &p.h, func(f *fact) bool { return slices.Contains(fc.worn, f.path) })
	}
}

// keepFacts stores the facts of a visible commit in the slot.
func (p *part) keepFacts() {
	if p.facts.some {
		for i, f := range p.facts.of.list {
			f.Fact = p.facts.next[i]
		}
	}
	if p.facts.goes {
		p.sl.facts.Store(p.facts.left)
	}
}

// Fact returns what a slot knows about the index entries at a path, as of the view. ok is false when it doesn't know:
// see Container.Count.
func (v *View) Fact(slot *ViewSlot, path uint64) (known Fact, ok bool, err error) {
	f := slot.facts.Load().get(path)
	if f == nil {
		return known, false, nil
	}
	if !f.asked.Load() {
		f.asked.Store(true)
	}
	var val [64]byte
	b, err := v.fact(val[:0], slot, path)
	if errors.Is(err, kv.ErrNotFound) {
		return known, false, nil
	}
	if err != nil {
		return known, false, translate(err)
	}
	var shown fact
	err = shown.decode(b)
	return shown.Fact, shown.exact && err == nil, nil
}

// The check of a slot's facts.

// readFacts reads the exact facts. The stored facts must be those that the slot keeps in memory: commits change no
// others.
func (k *checker) readFacts() error {
	err := k.entries(keys.KindFact, func(key, val []byte) error {
		f := &fact{}
		path, ok := keys.FactPath(key)
		err := f.decode(val)
		switch {
		case !ok:
			k.bad("malformed key of a fact: %x", key[keys.PrefixLen-1:])
		case err != nil:
			k.bad("fact of path %x: %v", path, err)
		case !bytes.Equal(k.kept[path], val):
			k.bad("fact of path %x is another one than the slot keeps", path)
		case f.exact:
			k.facts.paths, k.facts.list = append(k.facts.paths, path), append(k.facts.list, f)
			k.counted = append(k.counted, index.Counts{})
		}
		delete(k.kept, path)
		return nil
	})
	for path := range k.kept {
		if err != nil || k.ends[keys.KindFact] != nil {
			break // not all could be read
		}
		k.bad("fact of path %x is missing", path)
	}
	return err
}

// compareFacts compares the facts with the items.
func (k *checker) compareFacts(h *Head) {
	if len(k.facts.list) > 0 && h.Facts == 0 {
		k.bad("head says that there are no facts, there are %d", len(k.facts.list))
	}
	for i, f := range k.facts.list {
		var none Fact
		if there := none.after(k.head.Items, &k.counted[i]); there != f.Fact && !k.unread {
			k.bad("fact of path %x says %+v, the items %+v", k.facts.paths[i], f.Fact, there)
		}
	}
}
