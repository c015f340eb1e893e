package access

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Collation says what is known of a language's order of values, so that an index whose columns hold several classes can
// give it.
type Collation uint8

// The collations.
const (
	// AnyOrder: nothing is known.
	AnyOrder Collation = iota
	// JSONOrder is value.CompareCosmos of the JSON view of the values.
	JSONOrder
	// BSONOrder is value.CompareBSON of what stands at the path, missing as null; arrays in a way of the language's
	// own.
	BSONOrder
)

// Composite is a scan of a part of a composite index.
type Composite struct {
	Index *index.Composite
	Front []*Pred // equalities on the first columns, one each
	Range *Pred   // a condition on the column behind them; nil = none
	// Reverse says that the order is the index's own backwards.
	Reverse bool
}

// maxIntervals bounds the combinations of values of equalities on several columns.
const maxIntervals = 64

// leaf makes a predicate of a composite scan, which is used like that of a single path.
func (c *Composite) leaf() *Pred { return &Pred{Op: opComposite, Comp: c} }

// Used returns how many columns the filter restricts.
func (c *Composite) Used() int {
	if c.Range != nil {
		return len(c.Front) + 1
	}
	return len(c.Front)
}

// String shows the index as EXPLAIN does: its paths, descending ones with a minus.
func (c *Composite) String() string {
	var b strings.Builder
	for i := range c.Index.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if c.Index.Columns[i].Desc {
			b.WriteByte('-')
		}
		b.WriteString(c.Index.Columns[i].Path)
	}
	return b.String()
}

// Merged reports whether columns of Front may have one of several values: then the scans of these are merged where an
// order is wanted.
func (c *Composite) Merged() bool {
	return slices.ContainsFunc(c.Front, func(p *Pred) bool { return len(p.Vals) > 1 })
}

// Lead returns how many bytes of an entry's value, or of the begin of an interval, the columns of Front take.
func (c *Composite) Lead(val []byte) int {
	rest := val
	for i := range c.Front {
		rest, _ = keys.SkipColumn(rest, c.Index.Cut, c.Index.Columns[i].Desc)
	}
	return len(val) - len(rest)
}

// intervals returns the intervals of the scan, sorted and without overlap.
func (c *Composite) intervals() []Interval {
	bases := [][]byte{nil}
	for i, p := range c.Front {
		var next [][]byte
		for _, b := range bases {
			for _, v := range p.Vals {
				e, _ := keys.AppendColumn(b[:len(b):len(b)], v, c.Index.Cut, c.Index.Columns[i].Desc)
				next = append(next, e)
			}
		}
		bases = next
	}
	ivs := make([]Interval, len(bases))
	for i, b := range bases {
		switch {
		case c.Range != nil:
			col := &c.Index.Columns[len(c.Front)]
			ivs[i] = columnInterval(b, c.Range, c.Index.Cut, col.Desc)
		case len(b) == 0:
			ivs[i] = Interval{Lo: []byte{0}, Hi: []byte{0xFF}}
		default:
			ivs[i] = Interval{Lo: b, Hi: keys.After(b), One: len(c.Front) == len(c.Index.Columns)}
		}
	}
	if c.Index.Array != nil {
		rest := c.Index.Rest()
		ivs = append(ivs, Interval{Lo: rest, Hi: keys.After(rest), One: true})
	}
	return normalise(ivs)
}

// columnInterval is the interval of a range or prefix on the column behind base. The bounds of an ascending column are
// those of a single path; inverted, "at least L" becomes "not above what begins with L".
func columnInterval(base []byte, p *Pred, cut int, desc bool) Interval {
	lo, hi := columnBounds(p, cut)
	join := func(b []byte) []byte { return append(base[:len(base):len(base)], b...) }
	if !desc {
		return Interval{Lo: join(lo), Hi: join(hi)}
	}
	keys.Invert(lo)
	keys.Invert(hi)
	return Interval{Lo: keys.After(join(hi)), Hi: keys.After(join(lo))}
}

// columnBounds returns the bounds of a range or prefix, ascending; what they enclose is half open and a superset of
// what satisfies p. See Pred.rangeInterval for the cases.
func columnBounds(p *Pred, cut int) (lo, hi []byte) {
	if p.Op == OpPrefix {
		lo = keys.AppendColumnPrefix(nil, []byte(p.Str), cut)
		return lo, keys.After(lo)
	}
	if b := p.Lo; b != nil {
		e, lossy := keys.AppendColumn(nil, b.Value, cut, false)
		switch {
		case lossy:
			lo, _ = keys.AppendColumnFloor(nil, b.Value, cut)
		case b.Inclusive, b.Value.IsNumber() && !value.KeyOfNumber(b.Value).Exact:
			lo = e
		default:
			lo = keys.After(e)
		}
	}
	if b := p.Hi; b != nil {
		e, lossy := keys.AppendColumn(nil, b.Value, cut, false)
		switch {
		case lossy:
			floor, _ := keys.AppendColumnFloor(nil, b.Value, cut)
			hi = keys.After(floor)
		case b.Inclusive:
			hi = keys.After(e)
		default:
			hi = e
		}
	}
	if lo == nil {
		lo, _ = keys.ClassRange(keys.Class(p.Hi.Value))
	}
	if hi == nil {
		_, hi = keys.ClassRange(keys.Class(p.Lo.Value))
	}
	return slices.Clone(lo), slices.Clone(hi)
}

// on returns the condition on a column that the index can answer: an equality with at most most values, else a range or
// prefix.
func on(src Source, col *index.Column, cs []*Pred, most int) (eq, rng *Pred) {
	for _, c := range cs {
		if !slices.Equal(c.Path.Segs, col.Segs) || c.Path.Elements && src.MayHoldInColumn(col.Array) || c.Foreign &&
			src.MayHoldInColumn(col.Foreign) {
			continue
		}
		switch {
		case c.Op == OpIn && len(c.Vals) <= most &&
			(c.ofKey || !slices.ContainsFunc(c.Vals, func(v value.Value) bool { return !v.IsDefined() })):
			if eq == nil || len(c.Vals) < len(eq.Vals) {
				eq = c
			}
		case c.Op == OpRange && !c.Any && oneClass(c), c.Op == OpPrefix:
			rng = narrower(rng, c)
		}
	}
	return eq, rng
}

// narrower returns the condition of two on one column that restricts it more; of a lower and an upper bound both. No
// element of an array can satisfy one of them alone there, see on.
func narrower(a, b *Pred) *Pred {
	switch {
	case a == nil || a.Op != OpPrefix && b.Op == OpPrefix:
		return b
	case a.Op == OpRange && b.Op == OpRange && (a.Lo == nil) != (b.Lo == nil) && (a.Hi == nil) != (b.Hi == nil):
		both := *a
		if a.Lo == nil {
			both.Lo = b.Lo
		} else {
			both.Hi = b.Hi
		}
		if oneClass(&both) {
			return &both
		}
	case a.Op == OpRange && b.Op == OpRange && (a.Lo == nil || a.Hi == nil) && b.Lo != nil && b.Hi != nil:
		return b
	}
	return a
}

// composites returns the scans of composite indexes of which conditions restrict least columns, and those of tuple
// paths.
func composites(src Source, cs []*Pred, least int) (out []*Pred) {
	out = tuples(src, cs)
	if len(cs) < least {
		return out
	}
	for _, ix := range src.Policy().Composites() {
		c := restricted(src, ix, cs, maxIntervals)
		if c.Used() >= least {
			out = append(out, c.leaf())
		}
	}
	return out
}

// orderedComposite returns the scan of a composite index that gives the wanted order: its first columns are demanded to
// be equal to something, the others are the keys of the order in their sequence, all in their own direction or all in
// the other. Keys whose columns are in front are the same for all items; a column in front that may have one of several
// values is none of the keys, and the scans of its values are merged. The one that the filter restricts most is taken.
func orderedComposite(src Source, r *Request, cs []*Pred) *Composite {
	var best *Composite
	if r.Collation == AnyOrder || len(r.OrderBy) == 0 {
		return nil
	}
	for _, ix := range src.Policy().Composites() {
		for _, most := range [...]int{1, maxMerged} {
			c := restricted(src, ix, cs, most)
			if c.gives(src, r) && (best == nil || c.Used() > best.Used()) {
				best = c
			}
		}
	}
	return best
}

// maxMerged is how many combinations of values of columns in front are merged into one order.
const maxMerged = 32

// restricted returns the scan of a composite index that conditions restrict; at most most combinations of values stand
// in front.
func restricted(src Source, ix *index.Composite, cs []*Pred, most int) *Composite {
	c := &Composite{Index: ix}
	for i := range ix.Columns {
		eq, rng := on(src, &ix.Columns[i], cs, most)
		if eq == nil {
			c.Range = rng
			break
		}
		c.Front = append(c.Front, eq)
		most /= len(eq.Vals)
	}
	return c
}

// gives reports whether the columns behind Front are in the wanted order, and sets Reverse.
func (c *Composite) gives(src Source, r *Request) bool {
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
			!trusted(src, &cols[n], r.OrderBy[i], r.Collation) {
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

// Fixed reports whether a path is a column of Front.
func (c *Composite) Fixed(p Path) bool {
	for i := range c.Front {
		if slices.Equal(c.Index.Columns[i].Segs, p.Segs) {
			return true
		}
	}
	return false
}

// trusted reports whether the bytes of a column are in a language's order of its values.
func trusted(src Source, col *index.Column, p Path, order Collation) bool {
	if src.MayHoldInColumn(col.Lossy) {
		return false
	}
	if order == BSONOrder {
		return !src.MayHoldInColumn(col.Array) && !src.MayHoldInColumn(col.Mixed)
	}
	return !p.Elements && !src.MayHoldInColumn(col.Foreign)
}

// byComposite returns the plan of the composite index that gives the wanted order, unless the filter has conditions
// that it doesn't use and another access path leaves much less to read.
func byComposite(src Source, r *Request, cs []*Pred) (Plan, bool) {
	c := orderedComposite(src, r, cs)
	if c == nil || len(r.OrderBy) == 1 && len(c.Front) == 0 && c.Range != nil { // the path's own index gives that
		return Plan{}, false
	}
	p := Plan{Kind: Ordered, Leaf: c.leaf(), Why: "a composite index gives the order"}
	if c.Used() >= len(cs) {
		return p, true
	}
	other := byIndex(src, cs, 0)
	switch {
	case other.Kind != Index:
		return p, true
	case other.Leaf == nil:
		return Plan{}, false
	case c.Used() == 0:
		return p, src.Share(other.Leaf) > scanShare // an only equality was not counted
	}
	return p, src.Share(p.Leaf) <= worthSorting*src.Share(other.Leaf)
}

// worthSorting is how many times more entries an access path in the wanted order may read than another one that is
// sorted then.
const worthSorting = 8

// compositeInPartition returns the plan of a composite index inside one logical partition, or of a hierarchical key
// inside all that begin with the same values: the paths of those are in front. A wanted order comes first, then a
// filter that restricts more than the key.
func compositeInPartition(src Source, r *Request, cs []*Pred) (Plan, bool) {
	if len(r.PK) > len(src.KeyPaths()) || len(src.Policy().Composites()) == 0 {
		return Plan{}, false
	}
	paths := src.KeyPaths()[:len(r.PK)]
	all := make([]*Pred, 0, len(r.PK)+len(cs))
	for i, segs := range paths {
		all = append(all, &Pred{Op: OpIn, Path: Path{Segs: segs}, Vals: r.PK[i : i+1], ofKey: true})
	}
	for _, c := range cs {
		if !slices.ContainsFunc(paths, func(segs []string) bool { return slices.Equal(segs, c.Path.Segs) }) {
			all = append(all, c)
		}
	}
	left := func(c *Composite) bool { // an equality that c doesn't use
		return slices.ContainsFunc(all, func(p *Pred) bool {
			return p.Op == OpIn && !c.Fixed(p.Path) && usable(src, p)
		})
	}
	keyed := func(c *Composite) bool {
		return !slices.ContainsFunc(paths, func(segs []string) bool { return !c.Fixed(Path{Segs: segs}) })
	}
	if c := orderedComposite(src, r, all); c != nil && keyed(c) && (r.Limit > 0 || !left(c)) {
		return Plan{Kind: Ordered, Leaf: c.leaf(),
			Why: "a composite index gives the order inside one logical partition"}, true
	}
	var best *Pred
	for _, l := range composites(src, all, 2) {
		if keyed(l.Comp) && l.Comp.Used() > len(r.PK) && (best == nil || l.Comp.Used() > best.Comp.Used()) {
			best = l
		}
	}
	if best == nil || left(best.Comp) {
		return Plan{}, false
	}
	return Plan{Kind: Index, Leaf: best, Why: "a composite index inside one logical partition"}, true
}

// AgainComposite is Again for the scan of a composite index.
func AgainComposite(src Source, r *Request, sig uint32) (Plan, bool) {
	if !src.IndexReady() {
		return Plan{}, false
	}
	cs := conjuncts(r.Pred)
	var leaves []*Pred
	if r.HasPK {
		leaves = tuples(src, cs)
		if p, ok := compositeInPartition(src, r, cs); ok {
			leaves = append(leaves, p.Leaf)
		}
	} else {
		leaves = composites(src, cs, 1)
	}
	for _, l := range leaves {
		if signature(l) == sig {
			return Cover(src, *r, Plan{Kind: Index, Leaf: l, Why: "the continuation began with it"}), true
		}
	}
	return Plan{}, false
}
