package exec

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// Where the partition key is the id, an entry has its item's counter right behind the value. So in each slot the items
// of one value are in creation order, and the slots are merged. Nothing is gathered, however many items there are.
//
// Example: a job queue asks for the first document with state "waiting". One entry of each slot is read, and one
// document.

// named makes the source of a stretch that an index answers.
func (c *created) named(g *stretch) (source, error) {
	if !c.node.OneValue {
		return c.b.gather(g, c.plan, noLimit)
	}
	if most := c.node.Count; most > 0 && g.from == nil {
		few, err := c.b.gather(g, c.plan, most)
		if err != nil || len(few.list) <= most && !few.more {
			return few, err
		}
		few.close()
	}
	return c.merged(g)
}

// merged makes the source for a stretch whose items have one value.
func (c *created) merged(g *stretch) (source, error) {
	b := c.b.of(g)
	l, _ := newLeaf(b, c.plan.Leaf)
	classes := c.b.Classes()
	l.ivs = slices.DeleteFunc(slices.Clone(l.ivs), func(iv access.Interval) bool { return !iv.Touches(classes) })
	newest := b.q.Shown == Newest
	o := &ordered{b: b, h: mergeHeap{desc: newest, down: newest}}
	if c.plan.Covered {
		o.cover = newCover(b, c.plan.Leaf)
	}
	var after *position
	if g.from != nil {
		after = &position{value: l.ivs[0].Lo, number: g.from.number}
	}
	o.all = o.h.begin(len(b.spans))
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		o.all = append(o.all, entries{b: b, leaf: &l, desc: newest, sps: sps, after: after})
	}
	if err := o.h.beginAll(b, o.all); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}
