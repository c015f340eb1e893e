package exec

import (
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// tally gives the ends of the values at a path and how many rows there are: the first row of a slot stands for all items with a
// value, its others for none, and an empty one behind them for the items without.
type tally struct {
	ends  *ends
	n     []count // by slot
	given []bool  // slots whose items with a value were counted
	i     int     // span whose items without a value come next, -1 while the ends come
}

// count is how many items a slot has, and how many of them have a value at a path.
type count struct{ with, items int64 }

// newTally makes a tally of an ends; nil when a slot can't tell its counts. The first question about a path makes the slots keep them.
func (b *builder) newTally(x *ends) (*tally, error) {
	if b.q.Match != nil || !b.wholeSlots() || x.scan.leaf.pred.Op != access.OpExists {
		return nil, nil
	}
	t := &tally{ends: x, n: make([]count, b.view.Slots()), given: make([]bool, b.view.Slots()), i: -1}
	for i := range b.spans {
		slot := b.spans[i].slot
		c, ok, err := b.countOf(slot, x.scan.leaf.pred.Path)
		if err != nil || !ok {
			return nil, err
		}
		t.n[slot] = c
	}
	return t, nil
}

// maxMissing is how many entries of items without a value are counted one by one.
const maxMissing = 4096

// countOf counts the items of a slot that have a value at a path, one index entry each; ok is false when the slot doesn't know. Then it
// will for the next query, where it can.
func (b *builder) countOf(slot int, p access.Path) (c count, ok bool, err error) {
	h, err := b.view.Head(slot)
	if err != nil || h.Next != 0 {
		return c, false, err
	}
	c = count{with: h.Items, items: h.Items}
	if isAlways(p) || h.Items == 0 {
		return c, true, nil
	}
	id := b.Policy().PathID(p.Segs)
	if b.view.HasElements(slot, id) {
		return c, false, nil
	}
	if c.with, ok = b.tracked(&h, id, maxTallied); !ok {
		return c, false, nil
	}
	lo, hi := keys.ClassRange(value.ClassUndefined)
	n := b.countEntries(slot, &access.Pred{Op: access.OpExists, Path: p}, []access.Interval{{Lo: lo, Hi: hi}}, maxMissing)
	c.with -= int64(n)
	return c, n < maxMissing, nil
}

// A slot counts eight paths. Some are left to orders, whose first rows they save a sort of all items.
const (
	maxTallied = 6 // paths that it counts, up to which a count is worth one more
	maxCovered = 4 // up to which reading entries in place of items is
)

// tracked returns how many entries a slot's head counts for the values at a path; ok is false when it doesn't. Unless it counts most paths
// already it will for the next query: this one's view is older.
func (b *builder) tracked(h *store.Head, path uint64, most int) (n int64, ok bool) {
	for _, t := range h.Tracked {
		if t.Path == path {
			return t.Count, true
		}
	}
	if len(h.Tracked) < most {
		_ = b.view.Container().Track(b.rows.ctx, path)
	}
	return 0, false
}

// NamesEveryItem implements access.Source.
func (b *builder) NamesEveryItem(p access.Path) bool {
	if isAlways(p) {
		return true
	}
	id := b.Policy().PathID(p.Segs)
	for i := range b.spans {
		slot := b.spans[i].slot
		h, err := b.view.Head(slot)
		if err != nil || h.Next != 0 || b.view.HasElements(slot, id) {
			return false
		}
		if h.Items == 0 {
			continue
		}
		if n, ok := b.tracked(&h, id, maxCovered); !ok || n != h.Items {
			return false
		}
	}
	return true
}

// isAlways reports whether every item has one index entry for the value at a path: the identity and the time of the last write.
func isAlways(p access.Path) bool {
	return isID(p) || len(p.Segs) == 1 && p.Segs[0] == index.SystemTS
}

func (t *tally) next(r *row) (bool, error) {
	b := t.ends.scan.b
	if t.i < 0 {
		ok, err := t.ends.next(r)
		if err != nil {
			return false, err
		}
		if ok {
			if r.more = -1; !t.given[r.slot] {
				t.given[r.slot], r.more = true, int(t.n[r.slot].with)-1
			}
			return true, nil
		}
		t.i = 0
	}
	for ; t.i < len(b.spans); t.i++ {
		slot := b.spans[t.i].slot
		c := t.n[slot]
		if c.with > 0 && !t.given[slot] {
			return false, status.New(status.Internal, "Slot %d counts %d values and has none.", slot, c.with)
		}
		if c.items > c.with {
			t.i++
			r.slot, r.pos, r.more = slot, position{}, int(c.items-c.with)-1
			b.view.FromEntry(&r.item, nil, 0, emptyDoc, 0)
			return true, nil
		}
	}
	return false, nil
}

func (t *tally) empty() bool { return false }
func (t *tally) close()      { t.ends.close() }
