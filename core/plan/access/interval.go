package access

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Interval is a half-open range of encoded index values (class byte and payload).
type Interval struct {
	Lo, Hi []byte
	One    bool // it holds one encoded value, Lo
}

// classBits returns the classes that an interval touches: a bit for each class byte c at c>>3.
func (iv Interval) classBits() uint32 {
	lo, hi := iv.Lo[0]>>3, iv.Hi[0]>>3
	if len(iv.Hi) == 1 && iv.Hi[0]&7 == 0 && hi > lo {
		hi--
	}
	var bits uint32
	for c := lo; c <= hi && c < 32; c++ {
		bits |= 1 << c
	}
	return bits
}

func classInterval(class byte) Interval {
	lo, hi := keys.ClassRange(class)
	return Interval{Lo: lo, Hi: hi}
}

// Touches reports whether the interval has values of one of the classes, a bit for each class byte c at c>>3.
func (iv Interval) Touches(classes uint32) bool { return iv.classBits()&classes != 0 }

// Within reports whether an encoded value lies in one of the intervals.
func Within(ivs []Interval, val []byte) bool {
	for i := range ivs {
		if bytes.Compare(ivs[i].Lo, val) <= 0 && bytes.Compare(val, ivs[i].Hi) < 0 {
			return true
		}
	}
	return false
}

// Intervals returns the index intervals of a leaf (In, Range, Prefix, Exists), sorted and without overlap. Together
// they hold at least every entry of an item that satisfies the leaf. exact says that each interval holds one value. ok
// is false when the index can't answer: an equality with Undefined.
func (p *Pred) Intervals() (ivs []Interval, exact, ok bool) {
	more := fewClasses
	if p.Foreign {
		more = moreClasses
	}
	switch p.Op {
	case OpIn:
		ivs = make([]Interval, 0, len(p.Vals)+more)
		for _, v := range p.Vals {
			if !v.IsDefined() {
				return nil, false, false
			}
			e, _ := keys.AppendIndex(nil, v)
			ivs = append(ivs, Interval{e, keys.After(e), true})
		}
		exact = true
	case OpRange:
		ivs = append(make([]Interval, 0, 1+more), p.rangeInterval())
	case OpPrefix:
		e := keys.AppendStringPrefix(nil, []byte(p.Str))
		ivs = append(ivs, Interval{Lo: e, Hi: keys.After(e)})
	case OpSpatial:
		ivs, ok = p.placeIntervals()
		return ivs, false, ok
	case opRanges:
		return p.ivs, false, true
	case opEvery:
		return []Interval{{Lo: []byte{value.ClassAny}, Hi: []byte{value.ClassMaxKey + 1}}}, false, true
	case opComposite:
		ivs = p.Comp.intervals()
		return ivs, p.Comp.either == nil && len(p.Comp.Front) == len(p.Comp.Index.Columns), true
	case OpExists:
		ivs = append(ivs, Interval{Lo: []byte{value.ClassAny}, Hi: []byte{value.ClassUndefined}},
			Interval{Lo: []byte{value.ClassUndefined + 1}, Hi: []byte{value.ClassMaxKey + 1}})
		return ivs, false, true
	default:
		return nil, false, false
	}
	if p.Foreign {
		n := len(ivs)
		if ivs = appendForeign(ivs); len(ivs) > n {
			exact = false
		}
	}
	if p.Path.Elements && slices.ContainsFunc(ivs, func(iv Interval) bool {
		return iv.Touches(1 << (value.ClassObject >> 3))
	}) {
		// objects in arrays have no entries of their own
		ivs, exact = append(ivs, classInterval(value.ClassArray)), false
	}
	ivs = append(ivs, classInterval(value.ClassAny))
	return normalise(ivs), exact, true
}

func (p *Pred) rangeInterval() Interval {
	var iv Interval
	if b := p.Lo; b != nil {
		e, lossy := keys.AppendIndex(nil, b.Value)
		switch {
		case lossy:
			iv.Lo, _ = keys.AppendIndexFloor(nil, b.Value)
		case b.Inclusive, b.Value.IsNumber() && !value.KeyOfNumber(b.Value).Exact:
			iv.Lo = e // a decimal between two doubles may have the same entry as the bound and be above it
		default:
			iv.Lo = keys.After(e)
		}
	}
	if b := p.Hi; b != nil {
		e, lossy := keys.AppendIndex(nil, b.Value)
		switch {
		case lossy:
			floor, _ := keys.AppendIndexFloor(nil, b.Value)
			iv.Hi = keys.After(floor)
		case b.Inclusive:
			iv.Hi = keys.After(e)
		default:
			iv.Hi = e
		}
	}
	switch {
	case iv.Lo == nil && p.Any:
		iv.Lo = []byte{value.ClassMinKey}
	case iv.Lo == nil:
		iv.Lo, _ = keys.ClassRange(keys.Class(p.Hi.Value))
	case iv.Hi == nil && p.Any:
		iv.Hi = []byte{value.ClassMaxKey + 1}
	case iv.Hi == nil:
		_, iv.Hi = keys.ClassRange(keys.Class(p.Lo.Value))
	}
	return iv
}

// The numbers of intervals of whole classes that most conditions need beside their values: fewClasses, and moreClasses
// for those with Foreign.
const (
	fewClasses  = 1
	moreClasses = 8
)

// appendForeign adds the classes whose values a language reads as strings or objects, if ivs touches strings or
// objects. A JSON view shows a date as a string and an ObjectId as an object. A Gremlin traversal reads an ObjectId as
// a string. A stored regex matches itself.
func appendForeign(ivs []Interval) []Interval {
	var bits uint32
	for _, iv := range ivs {
		bits |= iv.classBits()
	}
	if bits&(1<<(value.ClassString>>3)) != 0 {
		for _, c := range [...]byte{value.ClassUUID, value.ClassBinary, value.ClassObjectID, value.ClassDate,
			value.ClassTimestamp, value.ClassRegex, value.ClassOther} {
			ivs = append(ivs, classInterval(c))
		}
	}
	if bits&(1<<(value.ClassObject>>3)) != 0 {
		for _, c := range [...]byte{value.ClassMinKey, value.ClassNumber, value.ClassUUID, value.ClassBinary,
			value.ClassObjectID, value.ClassDate, value.ClassTimestamp, value.ClassRegex, value.ClassOther,
			value.ClassMaxKey} {
			ivs = append(ivs, classInterval(c))
		}
	}
	return ivs
}

// ForeignKinds are the class bits of the kinds that JSON lacks and that a JSON view shows as strings or objects.
const ForeignKinds = 1<<(value.ClassUUID>>3) | 1<<(value.ClassBinary>>3) | 1<<(value.ClassObjectID>>3) |
	1<<(value.ClassDate>>3) | 1<<(value.ClassTimestamp>>3) | 1<<(value.ClassRegex>>3) | 1<<(value.ClassOther>>3)

// normalise sorts intervals and joins those that overlap or touch.
func normalise(ivs []Interval) []Interval {
	slices.SortFunc(ivs, func(a, b Interval) int { return bytes.Compare(a.Lo, b.Lo) })
	out := ivs[:0]
	for _, iv := range ivs {
		if bytes.Compare(iv.Lo, iv.Hi) >= 0 {
			continue
		}
		if n := len(out); n > 0 && bytes.Compare(iv.Lo, out[n-1].Hi) < 0 {
			same := iv.One && out[n-1].One && bytes.Equal(iv.Lo, out[n-1].Lo)
			if out[n-1].One = same; bytes.Compare(iv.Hi, out[n-1].Hi) > 0 {
				out[n-1].Hi = iv.Hi
			}
			continue
		}
		out = append(out, iv)
	}
	return out
}

// Conjuncts returns the parts of a conjunction.
func (p *Pred) Conjuncts() []*Pred {
	if p == nil || p.Op == OpAll {
		return nil
	}
	if p.Op == OpAnd {
		return p.Kids
	}
	return []*Pred{p}
}
