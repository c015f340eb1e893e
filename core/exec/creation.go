package exec

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// Rows that nobody ordered come in creation order where somebody sees them and that is affordable: docs/decisions/0022.
// An item's place in that order is the counter of its number. A position is a counter in a range of placements, so it
// fits every access path: any of the sources here can go on where another one ended.
//
// Example: a query selects 300 of 4,000 items by an index, in pages of 100. The first page gathers the 300 entries,
// sorts them by counter and fetches 100 items. Its token says "after counter 5120". The policy drops the index; the
// next page walks the number entries behind 5120 and filters their items.

// Shown says in which order the rows of a query without OrderBy come.
type Shown uint8

// The orders of rows that nobody ordered.
const (
	// AnyOrder is for readers who show no order: aggregates, sorts, groups. The rows come in any stable order.
	AnyOrder Shown = iota
	// CreationByPartition gives the physical partitions one after the other, and the items of each in creation order
	// where that is affordable (see maxCreation); else in the order of storage.
	CreationByPartition
	// Creation is creation order over all partitions where that is affordable.
	Creation
	// Oldest and Newest are creation order and its reverse, at any size and cost.
	Oldest
	Newest
)

// What creation order is given for: a range of so many items, or so many items that an index names.
const (
	maxCreation = 10_000
	maxNamed    = 1_000
)

// exact reports whether the order is given at any size.
func (s Shown) exact() bool { return s >= Oldest }

// stretch is a range of placements whose items come in one creation order.
type stretch struct {
	lo, hi []byte // placements; hi nil: open
	spans  []span
	from   *position // go on behind it; nil: from the start
	size   int64     // about how many items its slots have
}

// groups cuts the spans of the query into groups. The first one after a position is what is left of the position's own.
func (b *builder) groups(shown Shown, from *position) []stretch {
	slots := b.view.Version().Map()
	var out []stretch
	add := func(lo, hi []byte, s span) {
		if n := len(out); n > 0 && bytes.Equal(out[n-1].lo, lo) {
			out[n-1].spans = append(out[n-1].spans, s)
			return
		}
		out = append(out, stretch{lo: lo, hi: hi, spans: []span{s}})
	}
	for _, s := range b.spans {
		var lo, hi []byte
		if shown == CreationByPartition {
			lo, hi = slots.Bounds(slots.Run(slots.Partition(s.slot.Min())))
		}
		if from != nil {
			min := s.slot.Min()
			switch {
			case bytes.Compare(min, from.slotMin) < 0:
				continue // given before
			case len(from.key) == 0 || bytes.Compare(min, from.key) < 0:
				lo, hi = from.slotMin, from.key
			case bytes.Compare(lo, from.key) < 0:
				lo = from.key
			}
		}
		add(lo, hi, s)
	}
	for i := range out {
		g := &out[i]
		if from != nil && bytes.Equal(g.lo, from.slotMin) {
			g.from = &position{kind: posCreation, number: from.number}
		}
		g.size = b.sizeOf(g.spans)
	}
	return out
}

// sizeOf returns about how many items the slots of spans have, or the logical partition.
func (b *builder) sizeOf(spans []span) (n int64) {
	if len(spans) == 1 && spans[0].full {
		s := &spans[0]
		n, err := b.view.LogicalItems(s.slot, s.base[:len(s.base)-len(s.tuple)], s.tuple)
		if err != nil {
			return maxCreation + 1
		}
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

// creation makes the source of a plan whose rows come in creation order; nil when they are to come in the order of the
// plan.
func (b *builder) creation(plan access.Plan) (source, error) {
	shown := b.q.Shown
	goesOn := b.from != nil && b.from.kind == posCreation
	switch {
	case len(b.q.OrderBy) > 0, b.from != nil && !goesOn,
		!goesOn && (shown == AnyOrder || b.q.Whole || b.q.Want != WantAll || plan.Missing):
		return nil, nil
	case plan.Kind == access.Points && !goesOn && !shown.exact() && !b.fewPoints(plan.Keys):
		return nil, nil
	}
	from := b.from
	c := &created{b: b, plan: plan, shown: shown, groups: b.groups(shown, from), limit: noLimit}
	large := slices.ContainsFunc(c.groups, func(g stretch) bool { return g.size > maxCreation })
	if goesOn || shown.exact() || !large || plan.Kind == access.Points {
		return c, nil
	}
	if _, one := b.oneValue(&plan); one {
		return c, nil
	}
	if plan.Kind == access.Scan || plan.Leaf != nil && plan.Leaf.Every() || b.q.Limit == 1 {
		return nil, nil // for one of many items not all slots are looked at
	}
	// Too many items to look at all: the index tells whether it names few.
	c.limit = maxNamed
	for i := range c.groups {
		src, err := c.gather(i)
		if err != nil {
			c.close()
			return nil, err
		}
		c.ready = append(c.ready, src)
		if c.limit -= len(src.list); c.limit < 0 {
			c.close()
			return nil, nil
		}
	}
	return c, nil
}

// fewPoints reports whether so few items are named by keys that they may be read before the first is given.
func (b *builder) fewPoints(ks []access.Key) bool {
	if len(ks) < 2 || len(ks) > maxNamed {
		return false
	}
	n := int64(0)
	for _, k := range ks {
		if k.ID.IsDefined() {
			n++
			continue
		}
		slot, place, tuple, _, err := b.view.Locate(store.PartitionKey(k.PK))
		if err != nil {
			return false
		}
		in, err := b.view.LogicalItems(slot, place, tuple)
		if n += in; err != nil || n > maxCreation {
			return false
		}
	}
	return true
}

// oneKey cuts the spans to the logical partition that a plan names as its only key; false when it is none.
func (b *builder) oneKey(plan *access.Plan) (bool, error) {
	if plan.Kind != access.Points || len(plan.Keys) != 1 || plan.Keys[0].ID.IsDefined() || b.q.Shown == AnyOrder ||
		b.from != nil && b.from.kind != posCreation || len(b.q.OrderBy) > 0 {
		return false, nil
	}
	slot, place, tuple, _, err := b.view.Locate(store.PartitionKey(plan.Keys[0].PK))
	if err != nil {
		return false, err
	}
	in := b.inSpans(slot, place, tuple)
	if b.spans = nil; in {
		b.spans = []span{spanOfKey(slot, place, tuple)}
	}
	return true, nil
}

const noLimit = int(^uint(0) >> 1)

// created gives the rows of groups one after the other, each in creation order.
type created struct {
	b      *builder
	plan   access.Plan
	shown  Shown
	groups []stretch
	i      int
	src    source      // of group i; nil: not begun
	ready  []*gathered // sources of the first groups, made to count
	limit  int         // of the entries that may be gathered
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
			r.pos = position{kind: posCreation, number: store.Counter(r.item.Number), slotMin: g.lo, key: g.hi}
			return true, nil
		}
		c.leave()
	}
	return false, nil
}

func (c *created) empty() bool {
	for c.i < len(c.groups) {
		if c.open() != nil || !c.src.empty() {
			return false
		}
		c.leave()
	}
	return true
}

// leave ends the present group.
func (c *created) leave() {
	c.src.close()
	if s, ok := c.src.(*sorter); ok {
		s.clear()
	}
	c.src = nil
	c.i++
}

func (c *created) close() {
	if c.src != nil {
		c.src.close()
	}
	for _, g := range c.ready {
		g.close()
	}
}

// open makes the source of the present group.
func (c *created) open() (err error) {
	if c.src != nil {
		return nil
	}
	if c.i < len(c.ready) {
		c.src = c.ready[c.i]
		return nil
	}
	g := &c.groups[c.i]
	switch {
	case c.plan.Kind == access.Index || c.plan.Kind == access.Ordered:
		c.src, err = c.named(g)
	case c.plan.Kind == access.Points:
		c.src, err = c.sorted(g)
	default:
		c.src, err = c.scan(g)
	}
	return err
}

// builder makes a builder for the spans of a group alone.
func (c *created) builder(g *stretch) *builder {
	own := *c.b
	own.spans, own.from = g.spans, g.from
	return &own
}

// sorted reads all items of a group and sorts them.
func (c *created) sorted(g *stretch) (*sorter, error) {
	b := c.builder(g)
	s := newSorter(b, c.plan)
	if g.size > maxCreation && (s.window == 0 || s.window > maxCreation) {
		s.window = maxCreation
	}
	var err error
	s.src, err = s.candidates()
	return s, err
}
