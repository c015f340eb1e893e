package access

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/value"
)

// AnyEntry is a leaf that takes every index entry of a path.
func AnyEntry(p Path) *Pred { return &Pred{Op: opEvery, Path: Path{Segs: p.Segs}} }

// Every reports whether a leaf takes every entry of its path, also those of items without a value.
func (p *Pred) Every() bool { return p.Op == opEvery }

// OneLeaf returns a disjunction as one leaf if all alternatives are on the same path, else nil. A continuation can't
// identify such a leaf.
func OneLeaf(p *Pred) *Pred {
	if p == nil || p.Op != OpOr {
		return nil
	}
	leaf := &Pred{Op: opRanges, Kids: p.Kids, Path: p.Kids[0].Path}
	for _, k := range p.Kids {
		if k.Op < OpIn || k.Op > OpExists || !SamePath(k.Path, leaf.Path) {
			return nil
		}
		leaf.Foreign = leaf.Foreign || k.Foreign
		leaf.Vals = append(leaf.Vals, k.Vals...)
	}
	return leaf
}

// Scalar is satisfied by null, a boolean, a number or a string at a path. It is a leaf with an interval for each of
// these classes, whose entries are in the order of JSONOrder.
func Scalar(path Path) *Pred {
	from := func(v value.Value) *Bound { return &Bound{Value: v, Inclusive: true} }
	return OneLeaf(Or(In(path, value.NullValue()),
		Range(path, from(value.BoolOf(false)), nil),
		Range(path, nil, from(value.DoubleOf(math.Inf(1)))),
		Range(path, from(value.StringOf("")), nil)))
}

// Scalars reports whether a leaf takes only scalars, of several classes.
func (p *Pred) Scalars() bool {
	return p.Op == opRanges && !slices.ContainsFunc(p.Kids, func(k *Pred) bool {
		ivs, _, _ := k.Intervals()
		return len(ivs[len(ivs)-1].Hi) == 0 || ivs[len(ivs)-1].Hi[0] > value.ClassString+1
	})
}

// ranges returns the intervals of all kids.
func (p *Pred) ranges() (ivs []Interval, exact, ok bool) {
	for _, k := range p.Kids {
		of, _, ok := k.Intervals()
		if !ok {
			return nil, false, false
		}
		ivs = append(ivs, of...)
	}
	return normalise(ivs), false, true
}

// Demands reports whether p shows that only items with a value at the path satisfy it. It may miss some cases.
func (p *Pred) Demands(path Path) bool {
	of := func(k *Pred) bool { return k.Demands(path) }
	switch {
	case p == nil:
		return false
	case p.Op == OpNone:
		return true
	case p.Op == OpAnd:
		return slices.ContainsFunc(p.Kids, of)
	case p.Op == OpOr:
		return !slices.ContainsFunc(p.Kids, func(k *Pred) bool { return !of(k) })
	}
	return p.Op >= OpIn && slices.Equal(p.Path.Segs, path.Segs)
}

// ByClass cuts the intervals of a leaf into parts of one class each.
func (p *Pred) ByClass() (parts []ClassInterval) {
	ivs, _, _ := p.Intervals()
	for _, iv := range ivs {
		for _, c := range classList {
			lo, hi := []byte{c}, []byte{c + 1}
			if string(iv.Lo) > string(lo) {
				lo = iv.Lo
			}
			if string(iv.Hi) < string(hi) {
				hi = iv.Hi
			}
			if string(lo) < string(hi) {
				parts = append(parts, ClassInterval{c, Interval{Lo: lo, Hi: hi, One: iv.One}})
			}
		}
	}
	return parts
}

// ClassInterval is a part of an interval whose values are all of one class.
type ClassInterval struct {
	Class byte
	Interval
}

var classList = [...]byte{value.ClassAny, value.ClassMinKey, value.ClassUndefined, value.ClassNull, value.ClassBool,
	value.ClassNumber,
	value.ClassString, value.ClassArray, value.ClassObject, value.ClassUUID, value.ClassBinary, value.ClassObjectID,
	value.ClassDate,
	value.ClassTimestamp, value.ClassRegex, value.ClassOther, value.ClassMaxKey}
