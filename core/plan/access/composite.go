package access

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Collation says what is known about a language's order of values. If it is known, an index whose columns hold several
// classes can give that order.
type Collation uint8

// Collations.
const (
	// AnyOrder says that nothing is known.
	AnyOrder Collation = iota
	// JSONOrder is the order of value.CompareCosmos on the JSON view of the values.
	JSONOrder
	// BSONOrder is the order of value.CompareBSON on the value at the path, where a missing value is null. The order of
	// arrays depends on the language.
	BSONOrder
)

// Composite is a scan of a part of a composite index.
//
// Example: an index on (a, b DESC, c) and the filter a IN (1, 2) AND b > 5. Front has the equality on a, Range the
// condition on b. The scan has two intervals, one for each value of a.
type Composite struct {
	Index *index.Composite
	Front []*Pred // equalities on the first columns, one each
	Range *Pred   // a condition on the column behind them; nil = none
	// Reverse says that the order is the reverse of the index's order.
	Reverse bool
	either  *Pred      // a disjunction that leaves only parts of the scan (Split)
	parts   []Interval // with either
}

// Leaf returns the composite scan as a predicate, which is used like one on a single path.
func (c *Composite) Leaf() *Pred { return &Pred{Op: opComposite, Comp: c} }

// Used returns how many columns the filter restricts.
func (c *Composite) Used() int {
	if c.Range != nil || c.either != nil {
		return len(c.Front) + 1
	}
	return len(c.Front)
}

// Collated reports whether one of the conditions is on strings under the collation of the index.
func (c *Composite) Collated() bool {
	of := func(i int, p *Pred) bool { return len(p.Path.Segs) == len(c.Index.Columns[i].Segs) }
	if c.Index.Coll == nil {
		return false
	}
	for i, p := range c.Front {
		if of(i, p) {
			return true
		}
	}
	return c.Range != nil && of(len(c.Front), c.Range)
}

// String shows the index as EXPLAIN does: its paths, with a minus before descending ones, and the language of its
// collation.
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
	if c.Index.Coll != nil {
		b.WriteString(" collated " + c.Index.Coll.Options().Locale)
	}
	return b.String()
}

// Merged reports whether a column of Front may have one of several values, or the scan is cut into parts. Then the
// scans of these values or parts are merged if an order is wanted.
func (c *Composite) Merged() bool {
	return len(c.parts) > 1 || slices.ContainsFunc(c.Front, func(p *Pred) bool { return len(p.Vals) > 1 })
}

// Streams returns how many scans are merged if an order is wanted.
func (c *Composite) Streams() int {
	if c.parts != nil {
		return len(c.parts)
	}
	n := 1
	for _, p := range c.Front {
		n *= len(p.Vals)
	}
	return n
}

// Lead returns the number of bytes that the columns of Front take at the beginning of an entry's value, or of an
// interval's bound.
func (c *Composite) Lead(val []byte) int {
	rest := val
	for i := range c.Front {
		rest, _ = keys.SkipColumn(rest, c.Index.Cut, c.Index.Columns[i].Desc)
	}
	return len(val) - len(rest)
}

// intervals returns the intervals of the scan, sorted and without overlap.
func (c *Composite) intervals() []Interval {
	if c.either != nil {
		return c.parts
	}
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

// columnInterval returns the interval of a range or prefix on the column behind base. The bounds of an ascending column
// are those of a single path. For a descending column they are inverted: "at least L" becomes "not above what begins
// with L".
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

// columnBounds returns the bounds of a range or prefix, ascending. They are half open and enclose at least all values
// that satisfy p. See Pred.rangeInterval for the cases.
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

// Fixed reports whether a path is a column of Front.
func (c *Composite) Fixed(p Path) bool {
	for i := range c.Front {
		if slices.Equal(c.Index.Columns[i].Segs, p.Segs) {
			return true
		}
	}
	return false
}

// Column returns the number of the column with a path, -1 when there is none.
func (c *Composite) Column(segs []string) int {
	for i := range c.Index.Columns {
		if slices.Equal(c.Index.Columns[i].Segs, segs) {
			return i
		}
	}
	return -1
}
