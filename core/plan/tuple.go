package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
)

// tuples returns the scans of tuple paths that conditions on one element of an array restrict.
//
// Example: EXISTS(SELECT 1 FROM e IN c.events WHERE e.name = "x" AND e.kind = 2), with /events/[]/{name, kind}/?.
func (x *chooser) tuples(cs []*access.Pred) (out []*access.Pred) {
	for _, ix := range x.Policy().Tuples() {
		var seen []*access.Element
		for _, first := range cs {
			of := first.Path.Of
			if of == nil || slices.Contains(seen, of) || of.Array > len(first.Path.Segs) ||
				!slices.Equal(first.Path.Segs[:of.Array], ix.Array) {
				continue
			}
			seen = append(seen, of)
			c := &access.Composite{Index: ix}
			most := maxIntervals
			for i := range ix.Columns {
				eq, rng := x.onElement(of, ix.Columns[i].Segs, cs, most)
				if eq == nil {
					c.Range = rng
					break
				}
				c.Front = append(c.Front, eq)
				most /= len(eq.Vals)
			}
			if c.Used() > 0 {
				l := c.Leaf()
				l.Path.Elements = true
				out = append(out, l)
			}
		}
	}
	return out
}

// onElement is like on, for a member of an array element.
func (x *chooser) onElement(of *access.Element, segs []string, cs []*access.Pred, most int) (eq, rng *access.Pred) {
	for _, c := range cs {
		if c.Path.Of != of || !slices.Equal(c.Path.Segs[of.Array:], segs) || c.Foreign && x.MayHoldForeign() {
			continue
		}
		switch {
		case c.Op == access.OpIn && len(c.Vals) <= most && access.Scalars(c.Vals):
			if eq == nil || len(c.Vals) < len(eq.Vals) {
				eq = c
			}
		case c.Op == access.OpRange && !c.Any && oneClass(c), c.Op == access.OpPrefix:
			rng = c
		}
	}
	return eq, rng
}
