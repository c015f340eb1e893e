package access

import "slices"

// tuples returns the scans of tuple paths that conditions on one element of an array restrict.
func tuples(src Source, cs []*Pred) (out []*Pred) {
	for _, ix := range src.Policy().Tuples() {
		var seen []*Element
		for _, first := range cs {
			of := first.Path.Of
			if of == nil || slices.Contains(seen, of) || of.Array > len(first.Path.Segs) ||
				!slices.Equal(first.Path.Segs[:of.Array], ix.Array) {
				continue
			}
			seen = append(seen, of)
			c := &Composite{Index: ix}
			most := maxIntervals
			for i := range ix.Columns {
				eq, rng := onElement(src, of, ix.Columns[i].Segs, cs, most)
				if eq == nil {
					c.Range = rng
					break
				}
				c.Front = append(c.Front, eq)
				most /= len(eq.Vals)
			}
			if c.Used() > 0 {
				l := c.leaf()
				l.Path.Elements = true
				out = append(out, l)
			}
		}
	}
	return out
}

// onElement is on for the member of an element.
func onElement(src Source, of *Element, segs []string, cs []*Pred, most int) (eq, rng *Pred) {
	for _, c := range cs {
		if c.Path.Of != of || !slices.Equal(c.Path.Segs[of.Array:], segs) || c.Foreign && src.MayHoldForeign() {
			continue
		}
		switch {
		case c.Op == OpIn && len(c.Vals) <= most && Scalars(c.Vals):
			if eq == nil || len(c.Vals) < len(eq.Vals) {
				eq = c
			}
		case c.Op == OpRange && !c.Any && oneClass(c), c.Op == OpPrefix:
			rng = c
		}
	}
	return eq, rng
}
