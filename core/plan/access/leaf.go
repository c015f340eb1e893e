package access

import (
	"slices"

	"github.com/orrerydb/orrery/core/value"
)

// AnyEntry is a leaf that takes every index entry of a path.
func AnyEntry(p Path) *Pred { return &Pred{Op: opEvery, Path: Path{Segs: p.Segs}} }

// Every reports whether a leaf takes every entry of its path, also those of items without a value.
func (p *Pred) Every() bool { return p.Op == opEvery }

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
	return p.Op >= OpIn && slices.Equal(p.Path.Segs, path.Segs) &&
		!Missing(p.Vals)
}

// Missing reports whether the missing value is among values.
func Missing(vals []value.Value) bool {
	for i := range vals {
		if !vals[i].IsDefined() {
			return true
		}
	}
	return false
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
