package exec

import (
	"slices"

	"github.com/orrerydb/orrery/core/access"
)

// Where the partition key is the id, an entry holds its item's counter right behind the value. So the items that have
// one value stand in creation order in each slot, and the slots are merged: nothing is gathered, however many they are.
//
// Example: a job queue asks for the first document with state "waiting". One entry of each slot is read, and one
// document.

// oneValue returns the leaf of a plan that tells the creation order of what it names: its slots have entries of one
// value.
func (b *builder) oneValue(plan *access.Plan) (l leaf, ok bool) {
	if !b.layout.ByID || plan.Kind != access.Index && plan.Kind != access.Ordered || plan.Leaf == nil ||
		plan.Leaf.Comp != nil ||
		plan.Leaf.Op == access.OpSpatial || plan.Both != nil {
		return l, false
	}
	if l, ok = newLeaf(b, plan.Leaf); !ok {
		return l, false
	}
	classes := uint32(0)
	for i := range b.spans {
		classes |= b.spans[i].slot.Classes()
	}
	l.ivs = slices.DeleteFunc(slices.Clone(l.ivs), func(iv access.Interval) bool { return !iv.Touches(classes) })
	return l, len(l.ivs) == 1 && l.ivs[0].One
}

// fewEntries are gathered slot by slot with one iterator, which costs less than an iterator for each slot.
const fewEntries = 256

// named makes the source of a group that an index answers.
func (c *created) named(g *stretch) (source, error) {
	l, one := c.b.oneValue(&c.plan)
	if !one {
		return c.gather(c.i)
	}
	if c.b.q.Limit == 0 && g.from == nil {
		before := c.limit
		c.limit = fewEntries
		few, err := c.gather(c.i)
		if c.limit = before; err != nil || len(few.list) <= fewEntries && !few.more {
			return few, err
		}
		few.close()
	}
	return c.merged(g, &l)
}

// merged makes the source for a group whose items have one value.
func (c *created) merged(g *stretch, l *leaf) (source, error) {
	b := c.builder(g)
	newest := c.shown == Newest
	o := &ordered{b: b, h: mergeHeap{desc: newest, down: newest}}
	if c.plan.Covered {
		o.cover = newCover(b, c.plan.Leaf)
	}
	var after *position
	if g.from != nil {
		after = &position{value: l.ivs[0].Lo, number: g.from.number}
	}
	o.all = make([]entries, 0, len(b.spans))
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		o.all = append(o.all, entries{b: b, leaf: l, desc: newest, sps: sps, after: after})
	}
	if err := o.h.beginAll(b, o.all); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}
