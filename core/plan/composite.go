package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
)

// maxIntervals bounds the number of combinations of values, for equalities on several columns.
const maxIntervals = 64

// on returns the condition on a column that the index can answer: an equality with at most most values, or else a range
// or prefix.
func (x *chooser) on(col *index.Column, cs []*access.Pred, most int) (eq, rng *access.Pred) {
	for _, c := range cs {
		if !answers(x, col, c) {
			continue
		}
		switch {
		case c.Op == access.OpIn && len(c.Vals) <= most:
			if eq == nil || len(c.Vals) < len(eq.Vals) {
				eq = c
			}
		case c.Op == access.OpRange && oneClass(c), c.Op == access.OpPrefix:
			rng = narrower(rng, c)
		}
	}
	return eq, rng
}

// answers reports whether a column answers a condition.
func answers(st Stats, col *index.Column, c *access.Pred) bool {
	return col.Holds(c.Path.Segs, plain(c)) && !(c.Path.Elements && st.MayHoldInColumn(col.Array)) &&
		!(c.Foreign && st.MayHoldInColumn(col.Foreign)) && !c.Any
}

// plain reports whether a condition concerns no strings, so that it means the same under every collation.
func plain(c *access.Pred) bool {
	for _, b := range [...]*access.Bound{c.Lo, c.Hi} {
		if b != nil && collate.Affects(b.Value) {
			return false
		}
	}
	return (c.Op == access.OpIn || c.Op == access.OpRange && !c.Any) && !slices.ContainsFunc(c.Vals, collate.Affects)
}

// narrower returns that one of two conditions on a column which restricts it more, or the range between a lower and an
// upper bound. Array elements need no care here: on accepts no condition that an element could satisfy alone.
func narrower(a, b *access.Pred) *access.Pred {
	switch {
	case a == nil || a.Op != access.OpPrefix && b.Op == access.OpPrefix:
		return b
	case a.Op == access.OpRange && b.Op == access.OpRange && (a.Lo == nil) != (b.Lo == nil) &&
		(a.Hi == nil) != (b.Hi == nil):
		both := *a
		if a.Lo == nil {
			both.Lo = b.Lo
		} else {
			both.Hi = b.Hi
		}
		if oneClass(&both) {
			return &both
		}
	case a.Op == access.OpRange && b.Op == access.OpRange && (a.Lo == nil || a.Hi == nil) && b.Lo != nil && b.Hi != nil:
		return b
	}
	return a
}

// composites returns the scans of the composite indexes of which the filter restricts at least least columns, and the
// scans of tuple paths. They are made once, so that their counts are kept. One column is enough if no other index
// answers its condition: one on strings under a collation, or one that missing values satisfy.
func (x *chooser) composites(least int) (out []*access.Pred) {
	if !x.composed {
		x.composed, x.comps = true, x.scansOf(x.cs)
	}
	for _, l := range x.comps {
		enough := l.Comp.Used() >= least || slices.ContainsFunc(l.Comp.Front, func(p *access.Pred) bool {
			return access.Missing(p.Vals)
		})
		if l.Comp.Index.Coll != nil {
			enough = l.Comp.Collated()
		}
		if l.Comp.Index.Array != nil || enough {
			out = append(out, l)
		}
	}
	return out
}

// scansOf returns the scans of tuple paths and of composite indexes that the conditions restrict.
func (x *chooser) scansOf(cs []*access.Pred) []*access.Pred {
	out := x.tuples(cs)
	for _, ix := range x.Policy().Composites() {
		out = append(out, x.restricted(ix, cs, maxIntervals).Leaf())
	}
	return out
}

// orderedComposite returns the scan of a composite index that gives the wanted order. Its first columns have equalities
// in the filter. The columns behind them are the keys of the order in the same sequence, with all directions equal or
// all reversed. An order key whose column is one of the first has the same value for all items and is skipped. A first
// column that may have one of several values can't be an order key; the scans of its values are merged. If several
// indexes qualify, the one that the filter restricts most is taken.
//
// Example: WHERE x = 1 AND y IN (3, 4) ORDER BY z, with an index on (x, y, z): two streams, each in the order of z.
func (x *chooser) orderedComposite(cs []*access.Pred) *access.Composite {
	var best *access.Composite
	r := &x.r
	if r.Collation == access.AnyOrder || len(r.OrderBy) == 0 {
		return nil
	}
	for _, ix := range x.Policy().Composites() {
		for _, most := range [...]int{1, maxMerged} {
			c := x.restricted(ix, cs, most)
			if !x.gives(c) {
				continue
			}
			c.Split(cs, maxMerged, func(col *index.Column, p *access.Pred) bool {
				return answers(x, col, p) && !(p.Path.Elements && access.Missing(p.Vals))
			})
			if best == nil || c.Used() > best.Used() {
				best = c
			}
		}
	}
	return best
}

// maxMerged is the largest number of combinations of values of the first columns that are merged into one order.
const maxMerged = 32

// restricted returns the scan of a composite index that the conditions restrict. The first columns have at most most
// combinations of values.
func (x *chooser) restricted(ix *index.Composite, cs []*access.Pred, most int) *access.Composite {
	c := &access.Composite{Index: ix}
	for i := range ix.Columns {
		eq, rng := x.on(&ix.Columns[i], cs, most)
		if eq == nil {
			c.Range = rng
			break
		}
		c.Front = append(c.Front, eq)
		most /= len(eq.Vals)
	}
	return c
}

// gives reports whether the columns behind Front are in the wanted order. It sets Reverse.
func (x *chooser) gives(c *access.Composite) bool {
	r := &x.r
	cols := c.Index.Columns[len(c.Front):]
	n := 0
	for i := range r.OrderBy {
		if at := c.Column(r.OrderBy[i].Segs); at >= 0 && at < len(c.Front) {
			if len(c.Front[at].Vals) > 1 {
				return false
			}
			continue
		}
		if n == len(cols) || !slices.Equal(cols[n].Segs, r.OrderBy[i].Segs) ||
			!x.trusted(&cols[n], r.OrderBy[i], r.Collation) {
			return false
		}
		reverse := cols[n].Desc != r.Desc[i]
		if n > 0 && reverse != c.Reverse {
			return false
		}
		c.Reverse = reverse
		n++
	}
	return n == len(cols)
}

// trusted reports whether the byte order of a column is the language's order of its values.
func (x *chooser) trusted(col *index.Column, p access.Path, order access.Collation) bool {
	if x.MayHoldInColumn(col.Lossy) {
		return false
	}
	if order == access.BSONOrder {
		return !x.MayHoldInColumn(col.Array) && !x.MayHoldInColumn(col.Mixed)
	}
	return !p.Elements && !x.MayHoldInColumn(col.Foreign)
}

// byComposite returns the plan of the composite index that gives the wanted order. It returns none if the filter has
// conditions that the index doesn't use and another access path leaves much less to read.
//
// Example: WHERE a = 1 AND c = 2 ORDER BY b, with an index on (a, b). Of 10,000 items 1,000 have a = 1. If 10 of them
// have c = 2, those 10 are fetched and sorted. If 500 have c = 2, the index gives the order.
func (x *chooser) byComposite() (access.Plan, bool) {
	c := x.orderedComposite(x.cs)
	if c == nil || len(x.r.OrderBy) == 1 && len(c.Front) == 0 && c.Used() > 0 &&
		c.Index.Coll == nil { // the path's own index gives that
		return access.Plan{}, false
	}
	p := access.Plan{Kind: access.Ordered, Leaf: c.Leaf(), Why: access.CompositeOrder}
	if c.Used() >= len(x.cs) {
		return p, true
	}
	before, worth := len(x.lost), false
	other := x.byIndex(x.cs, 0)
	x.lost = x.lost[:before] // byIndex is called again if the order isn't worth its cost
	switch {
	case other.Kind != access.Index:
		worth = true
	case other.Leaf == nil:
	case c.Used() == 0:
		worth = x.share(other.Leaf, lastCount) > scanShare // an only equality was not counted
	default:
		least := x.share(other.Leaf, lastCount)
		worth = x.share(p.Leaf, x.entriesOf(worthSorting*least)) <= worthSorting*least
	}
	if worth {
		x.lose(other)
	} else {
		x.lose(p)
	}
	return p, worth
}

// worthSorting is the limit of the ratio between two numbers of entries: those of an access path that gives the wanted
// order, and those of another path whose rows are then sorted. Above it the sort is chosen.
const worthSorting = 8

// compositeInPartition returns the plan of a composite index inside one logical partition. For a prefix of a
// hierarchical key it is inside all partitions that begin with the same values; the paths of these values are the first
// columns. A wanted order comes first, then a filter that restricts more than the key does.
//
// Example: the orders of one customer BY date, with an index on (customer, date): the 20 newest orders are 20 entries.
func (x *chooser) compositeInPartition() (access.Plan, bool) {
	r, cs := &x.r, x.cs
	if len(r.PK) > len(x.KeyPaths()) || len(x.Policy().Composites()) == 0 {
		return access.Plan{}, false
	}
	paths := x.KeyPaths()[:len(r.PK)]
	all := make([]*access.Pred, 0, len(r.PK)+len(cs))
	for i, segs := range paths {
		all = append(all, &access.Pred{Op: access.OpIn, Path: access.Path{Segs: segs}, Vals: r.PK[i : i+1]})
	}
	for _, c := range cs {
		if !slices.ContainsFunc(paths, func(segs []string) bool { return slices.Equal(segs, c.Path.Segs) }) {
			all = append(all, c)
		}
	}
	left := func(c *access.Composite) bool { // an equality that c doesn't use
		return slices.ContainsFunc(all, func(p *access.Pred) bool {
			return p.Op == access.OpIn && !c.Fixed(p.Path) && x.usable(p)
		})
	}
	keyed := func(c *access.Composite) bool {
		return !slices.ContainsFunc(paths, func(segs []string) bool { return !c.Fixed(access.Path{Segs: segs}) })
	}
	if c := x.orderedComposite(all); c != nil && keyed(c) && (r.Limit > 0 || !left(c)) {
		return access.Plan{Kind: access.Ordered, Leaf: c.Leaf(),
			Why: access.CompositeOrderInside}, true
	}
	var best *access.Pred
	for _, l := range x.scansOf(all) {
		if keyed(l.Comp) && l.Comp.Used() > max(1, len(r.PK)) && (best == nil || l.Comp.Used() > best.Comp.Used()) {
			best = l
		}
	}
	if best == nil || left(best.Comp) {
		return access.Plan{}, false
	}
	return access.Plan{Kind: access.Index, Leaf: best, Why: access.CompositeInside}, true
}
