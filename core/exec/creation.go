package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// Rows of a query without an order are given in creation order if the reader shows the order and its cost is bounded:
// docs/decisions/0022. An item's place in that order is the counter of its number. A position is a counter in a range
// of placements. It fits every access path, so any source in this file can continue after any other.
//
// Example: a query selects 300 of 4,000 items by an index, in pages of 100. The first page gathers the 300 entries,
// sorts them by counter and fetches 100 items. Its token says "after counter 5120". Then the policy drops the index.
// The next page walks the number entries after 5120 and filters their items.

// stretch is a range of placements whose items come in one creation order.
type stretch struct {
	lo, hi []byte // placements; hi nil: no upper end
	spans  []span
	from   *position // the start is after it; nil: at the beginning
	size   int64     // approximate number of items in its slots
	ready  *gathered // its source, where the planner has read what an index names; nil: not read
}

// discard closes the source that the planner has made.
func (g *stretch) discard() {
	if g.ready != nil {
		g.ready.close()
		g.ready = nil
	}
}

// groups cuts the spans of the query into groups. After a position, the first group is the remainder of the position's
// own group.
func (b *builder) groups(shown Shown, from *position) []stretch {
	slots := b.view.Version().Map()
	most := 1
	if shown == CreationByPartition {
		most = min(len(b.spans), len(slots.Partitions))
	}
	out := make([]stretch, 0, most)
	begin := 0 // of the last group's spans, which stand together in b.spans
	partition := 0
	for i := range b.spans {
		s := &b.spans[i]
		var lo, hi []byte
		if shown == CreationByPartition {
			partition = slots.PartitionFrom(partition, s.slot.Min())
			lo, hi = slots.Bounds(slots.Run(partition))
		}
		if from != nil {
			switch {
			case from.unit.holds(s):
				lo, hi = from.unit.lo, from.unit.hi
			case bytes.Compare(s.least(), from.unit.lo) < 0:
				continue // has been given
			case bytes.Compare(lo, from.unit.hi) < 0:
				lo = from.unit.hi
			}
		}
		if n := len(out); n == 0 || !bytes.Equal(out[n-1].lo, lo) {
			begin, out = i, append(out, stretch{lo: lo, hi: hi})
		}
		out[len(out)-1].spans = b.spans[begin : i+1 : i+1]
	}
	for i := range out {
		g := &out[i]
		if from != nil && bytes.Equal(g.lo, from.unit.lo) {
			g.from = &position{kind: posCreation, number: from.number}
		}
		g.size = b.sizeOf(g.spans)
	}
	return out
}

// sizeOf returns the approximate number of items in the slots of spans, or in the logical partition.
func (b *builder) sizeOf(spans []span) (n int64) {
	if len(spans) == 1 && spans[0].full {
		s := &spans[0]
		n, err := b.view.LogicalItems(s.slot, s.base[:len(s.base)-len(s.tuple)], s.tuple)
		b.failed(err)
		return n
	}
	var last *store.ViewSlot
	for i := range spans {
		if slot := spans[i].slot; slot != last {
			n, last = n+slot.Items(), slot
		}
	}
	return n
}

const noLimit = int(^uint(0) >> 1)

// created gives the rows of the groups in turn, each group in creation order.
type created struct {
	b      *builder
	node   *plan.Node
	plan   *access.Plan // with an index
	groups []stretch
	i      int
	src    source // of group i; nil: not opened
}

// creation makes the source of creation order.
func (b *builder) creation(n *plan.Node, _ *position) (source, error) {
	if b.stretches == nil {
		b.stretches = b.groups(b.q.Shown, b.from)
	}
	return &created{b: b, node: n, plan: &b.tree.Access, groups: b.stretches}, b.err
}

func (c *created) next(r *row) (bool, error) {
	for c.i < len(c.groups) {
		if err := c.open(); err != nil {
			return false, err
		}
		ok, err := c.b.rows.candidate(c.src, r)
		if err != nil {
			return false, err
		}
		if ok {
			g := &c.groups[c.i]
			r.pos = position{kind: posCreation, number: store.Counter(r.item.Number),
				unit: places{g.lo, g.hi}}
			return true, nil
		}
		c.leave()
	}
	return false, nil
}

func (c *created) follows() (bool, error) {
	for c.i < len(c.groups) {
		if err := c.open(); err != nil {
			return false, err
		}
		if ok, err := c.src.follows(); ok || err != nil {
			return ok, err
		}
		c.leave()
	}
	return false, nil
}

// leave ends the current group.
func (c *created) leave() {
	c.src.close()
	switch s := c.src.(type) {
	case *sorter:
		s.clear()
	case *gathered:
		if !c.b.view.Remote() {
			c.b.gathering.idle = s
		}
	}
	c.src = nil
	c.i++
}

func (c *created) close() {
	if c.src != nil {
		c.src.close()
	}
	for i := range c.groups {
		c.groups[i].discard()
	}
}

// open makes the source of the current group.
func (c *created) open() (err error) {
	if c.src != nil {
		return nil
	}
	g := &c.groups[c.i]
	if g.ready != nil {
		c.src = g.ready
		return nil
	}
	switch c.node.Kids[0].Op {
	case plan.Points:
		c.src, err = c.sorted(g)
	case plan.PartitionScan, plan.Scan:
		c.src, err = c.scan(g)
	default:
		c.src, err = c.named(g)
	}
	return err
}

// of makes a builder for only the spans of a stretch.
func (b *builder) of(g *stretch) *builder {
	own := *b
	own.spans, own.from = g.spans, g.from
	return &own
}

// sorted reads all items of a stretch and sorts them.
func (c *created) sorted(g *stretch) (*sorter, error) {
	b := c.b.of(g)
	s := newSorter(b, c.node.Kids[0])
	s.owes = account{on: true, newest: b.q.Shown == Newest}
	s.window = b.tree.SortWindow(g.size)
	var err error
	s.src, err = s.candidates()
	return s, err
}
