// Package access has the types through which four languages talk to the planner: sargable predicates (Pred), and the
// access path that is chosen for one (Plan).
//
// A Pred may be weaker than the filter that it was made from, never stronger: every item that the filter accepts must
// satisfy it. The language evaluates its exact filter on the items that are found. So any condition that can't be
// expressed here becomes All().
//
// Example: WHERE c.n = 5 AND LENGTH(c.name) > 3 becomes Eq(/n, 5): the second condition can't be expressed. The index
// finds the items with n = 5, and the language checks the lengths of their names.
package access

import (
	"strings"

	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Path is a path of stored names (the identity is "_id"). The zero Path is the document itself.
type Path struct {
	Segs []string
	// Elements says that values inside arrays along the path count too, as MongoDB and Gremlin read a path. Without it
	// only the value at the path itself counts.
	Elements bool
	// Of says that the path begins in an element of this array. Conditions with the same Of must hold for the same
	// element.
	Of *Element
}

// Element stands for one element of the array that the first Array names of a path lead to.
type Element struct{ Array int }

// NewPath returns a path that array elements can't satisfy.
func NewPath(segs ...string) Path { return Path{Segs: segs} }

// Element returns the path with array elements counted.
func (p Path) Element() Path {
	p.Elements = true
	return p
}

// String returns the path as /a/b, with /[] at its end when elements count.
func (p Path) String() string {
	s := "/" + strings.Join(p.Segs, "/")
	if p.Elements {
		s += "/[]"
	}
	return s
}

// ID is the path of the identity.
var ID = NewPath("_id")

// TS is the path of the time of the last write in seconds, which lives beside the document.
var TS = NewPath("\x00_ts")

// Op is the operation of a Pred.
type Op uint8

// Operations.
const (
	OpAll       Op = iota // every item
	OpNone                // no item
	OpAnd                 // all of Kids
	OpOr                  // any of Kids
	OpIn                  // the value at Path equals one of Vals
	OpRange               // the value at Path lies between Lo and Hi, within the type class of the bounds
	OpPrefix              // the value at Path is a string that begins with Str
	OpExists              // there is a value at Path (null counts)
	opEvery               // any index entry of Path, also "undefined": complete only if every item has an entry
	OpSpatial             // the value at Path is a geometry that meets Region
	opRanges              // ivs, the ranges at Path that Kids leave: only in plans
	opComposite           // Comp: only in plans
)

// Bound is an end of a range. A range with one open end covers the rest of its bound's type class: numbers for a
// number, strings for a string and so on.
type Bound struct {
	Value     value.Value
	Inclusive bool
}

// Pred is a sargable predicate. A nil *Pred means All.
type Pred struct {
	Op     Op
	Kids   []*Pred
	Path   Path
	Vals   []value.Value
	Lo, Hi *Bound
	Str    string
	// Any, with OpRange, says that values of every class above Lo or below Hi count, not only values of the bound's
	// class.
	Any bool
	// Foreign says that values of kinds that JSON lacks may satisfy the predicate too, because the language reads them
	// as strings or objects (a date as its ISO text). The index scan adds the classes of these kinds if a slot has ever
	// held them.
	Foreign bool
	// Region is the region of a spatial predicate. places, pathID and ivs tell where an index has it (Resolve).
	Region *geo.Region
	places *index.SpatialRule
	pathID uint64
	ivs    []Interval

	Comp *Composite // of a plan's leaf: the scan of a composite index; then Path is empty
}

// All is satisfied by every item.
func All() *Pred { return &Pred{} }

// None is satisfied by no item.
func None() *Pred { return &Pred{Op: OpNone} }

// And is satisfied when all of ps are.
func And(ps ...*Pred) *Pred {
	kids := make([]*Pred, 0, len(ps))
	for _, p := range ps {
		switch {
		case p == nil || p.Op == OpAll:
		case p.Op == OpNone:
			return p
		case p.Op == OpAnd:
			kids = append(kids, p.Kids...)
		default:
			kids = append(kids, p)
		}
	}
	kids = joinRanges(kids)
	switch len(kids) {
	case 0:
		return All()
	case 1:
		return kids[0]
	}
	return &Pred{Op: OpAnd, Kids: kids}
}

// joinRanges joins a lower and an upper bound on the same value into one range. If array elements count, two different
// elements may satisfy the two bounds. Then the bounds stay separate.
func joinRanges(kids []*Pred) []*Pred {
	out := kids[:0]
next:
	for _, k := range kids {
		for i, o := range out {
			if k.halfRange() && o.halfRange() && k.Foreign == o.Foreign && (k.Lo == nil) != (o.Lo == nil) &&
				SamePath(k.Path, o.Path) {
				both := *o
				if k.Lo != nil {
					both.Lo = k.Lo
				} else {
					both.Hi = k.Hi
				}
				if keys.Class(both.Lo.Value) == keys.Class(both.Hi.Value) {
					out[i] = &both
					continue next
				}
			}
		}
		out = append(out, k)
	}
	return out
}

func (p *Pred) halfRange() bool {
	return p.Op == OpRange && !p.Path.Elements && !p.Any && (p.Lo == nil) != (p.Hi == nil)
}

// Or is satisfied when any of ps is. Equalities on one path become one In.
func Or(ps ...*Pred) *Pred {
	kids := make([]*Pred, 0, len(ps))
	for _, p := range ps {
		switch {
		case p == nil || p.Op == OpAll:
			return All()
		case p.Op == OpNone:
		case p.Op == OpOr:
			kids = append(kids, p.Kids...)
		default:
			kids = append(kids, p)
		}
	}
	switch len(kids) {
	case 0:
		return None()
	case 1:
		return kids[0]
	}
	if in := mergeIn(kids); in != nil {
		return in
	}
	return &Pred{Op: OpOr, Kids: kids}
}

func mergeIn(kids []*Pred) *Pred {
	first := kids[0]
	for _, k := range kids {
		if k.Op != OpIn || k.Foreign != first.Foreign || !SamePath(k.Path, first.Path) {
			return nil
		}
	}
	in := &Pred{Op: OpIn, Path: first.Path, Foreign: first.Foreign}
	for _, k := range kids {
		in.Vals = append(in.Vals, k.Vals...)
	}
	return in
}

func SamePath(a, b Path) bool {
	if a.Elements != b.Elements || a.Of != b.Of || len(a.Segs) != len(b.Segs) {
		return false
	}
	for i := range a.Segs {
		if a.Segs[i] != b.Segs[i] {
			return false
		}
	}
	return true
}

// The functions that make leaves are called in many places, and a Pred is large. So the compiler doesn't copy them into
// their callers.

// Eq is satisfied when the value at path equals v. An Undefined v is satisfied by items without the path. If array
// elements count, it may also be satisfied by an element without the rest of the path: an index answers it only where
// no array is on the way.
//
//go:noinline
func Eq(path Path, v value.Value) *Pred { return In(path, v) }

// In is satisfied when the value at path equals one of vs.
//
//go:noinline
func In(path Path, vs ...value.Value) *Pred {
	if len(vs) == 0 {
		return None()
	}
	return &Pred{Op: OpIn, Path: path, Vals: vs}
}

// Range is satisfied when the value at path lies between lo and hi, either of which may be nil, within the type class
// of the bounds.
//
//go:noinline
func Range(path Path, lo, hi *Bound) *Pred {
	if lo == nil && hi == nil {
		return Exists(path)
	}
	return &Pred{Op: OpRange, Path: path, Lo: lo, Hi: hi}
}

// Prefix is satisfied when the value at path is a string that begins with s.
//
//go:noinline
func Prefix(path Path, s string) *Pred { return &Pred{Op: OpPrefix, Path: path, Str: s} }

// Exists is satisfied when there is a value at path.
//
//go:noinline
func Exists(path Path) *Pred { return &Pred{Op: OpExists, Path: path} }

// WithForeign returns p with Foreign set in it and everything below it.
func WithForeign(p *Pred) *Pred {
	if p == nil {
		return nil
	}
	p.Foreign = true
	for _, k := range p.Kids {
		WithForeign(k)
	}
	return p
}
