package exec

import (
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// tally gives the ends of the values at a path, and rows whose Times add up to the number of items. The first row of a
// slot stands for all of its items with a value, and its other rows stand for none. After the rows of all slots, an
// empty row for each slot stands for its items without a value.
//
// Example: one of two slots has 10 items, 8 with a price from 2 to 9, and the other has 5, all with the price 4. The
// rows are 2 (Times 8), 9 (Times 0), 4 (Times 5) and an empty row (Times 2).
type tally struct {
	ends  *ends
	n     []count // by the number of the slot in the view
	given []bool  // slots whose items with a value have been counted
	i     int     // the span whose items without a value come next; -1 while the ends are given
}

// count is how many items a slot has, and how many of them have a value at a path.
type count struct{ with, items int64 }

// scanTally makes a tally of the ends. The planner has checked that every slot knows its counts.
func (b *builder) scanTally(n *plan.Node, _ *position) (source, error) {
	return &tally{ends: b.endsOf(n), n: b.tallies, given: make([]bool, len(b.view.Slots())), i: -1}, nil
}

// countOf counts the items of a slot, and those with a value at a path. ok is false when the slot doesn't know it, and
// when an item may have several index entries at the path.
func (b *builder) countOf(slot *store.ViewSlot, p access.Path) (c count, ok bool, err error) {
	h, err := b.view.Head(slot)
	if err != nil {
		return c, false, err
	}
	c = count{with: h.Items, items: h.Items}
	if isAlways(p) || h.Items == 0 {
		return c, true, nil
	}
	f, ok := b.fact(slot, p, b.Policy().PathID(p.Segs), nowOr)
	c.with -= f.Missing
	return c, ok && f.Elements == 0, nil
}

func (t *tally) next(r *row) (bool, error) {
	b := t.ends.scan.b
	if t.i < 0 {
		ok, err := t.ends.next(r)
		if err != nil {
			return false, err
		}
		if ok {
			if n := r.slot.Number(); t.given[n] {
				r.more = -1
			} else {
				t.given[n], r.more = true, int(t.n[n].with)-1
			}
			return true, nil
		}
		t.i = 0
	}
	for ; t.i < len(b.spans); t.i++ {
		slot := b.spans[t.i].slot
		c := t.n[slot.Number()]
		if c.with > 0 && !t.given[slot.Number()] {
			return false, status.New(status.Internal, "Slot %d counts %d values and has none.", slot.ID(), c.with)
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

func (t *tally) follows() (bool, error) { return true, nil }
func (t *tally) close()                 { t.ends.close() }
