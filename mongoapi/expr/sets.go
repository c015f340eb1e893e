package expr

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

var setOps = map[string]operator{
	"$allElementsTrue": fixed(1, elementsTrue("$allElementsTrue", false)),
	"$anyElementTrue":  fixed(1, elementsTrue("$anyElementTrue", true)),
	"$setDifference": fixed(2, func(e *Env, a []value.Value) (value.Value, error) {
		x, y, err := twoSets(e, "$setDifference", 17048, a)
		if x == nil || y == nil || err != nil {
			return value.NullValue(), err
		}
		var out []value.Value
		for _, v := range x.vals {
			if !y.Has(v) {
				out = append(out, v)
			}
		}
		return value.MakeArray(out), nil
	}),
	"$setEquals": {min: 2, max: -1, fn: func(e *Env, a []value.Value) (value.Value, error) {
		var first *Set
		for _, v := range a {
			if v.Kind() != value.Array {
				return v, merr.New(17044, "All operands of $setEquals must be arrays. One argument is of type: %s",
					TypeName(v))
			}
			s := setOf(e, v)
			if first == nil {
				first = s
			} else if !first.equal(s) {
				return value.BoolOf(false), nil
			}
		}
		return value.BoolOf(true), nil
	}},
	"$setIntersection": variadic(func(e *Env, a []value.Value) (value.Value, error) {
		acc := NewSet(e.Run.Collation())
		for i, v := range a {
			if nullish(v) {
				return value.NullValue(), nil
			}
			if v.Kind() != value.Array {
				return v, merr.New(17047,
					"All operands of $setIntersection must be arrays. One argument is of type: %s", TypeName(v))
			}
			s := setOf(e, v)
			if i > 0 {
				acc.vals = slices.DeleteFunc(acc.vals, func(x value.Value) bool { return !s.Has(x) })
			} else {
				acc = s
			}
			if len(acc.vals) == 0 { // whatever the other operands are
				break
			}
		}
		return acc.inOrder(), nil
	}),
	"$setIsSubset": fixed(2, func(e *Env, a []value.Value) (value.Value, error) {
		for i, v := range a {
			if v.Kind() != value.Array {
				return v, merr.New([]int32{17046, 17042}[i], "both operands of $setIsSubset must be arrays. "+
					"Argument %d is of type: %s", i+1, TypeName(v))
			}
		}
		y := setOf(e, a[1])
		for it := a[0].Iter(); it.Next(); {
			if !y.Has(it.Value()) {
				return value.BoolOf(false), nil
			}
		}
		return value.BoolOf(true), nil
	}),
	"$setUnion": variadic(func(e *Env, a []value.Value) (value.Value, error) {
		s := NewSet(e.Run.Collation())
		for _, v := range a {
			if nullish(v) {
				return value.NullValue(), nil
			}
			if v.Kind() != value.Array {
				return v, merr.New(17043, "All operands of $setUnion must be arrays. One argument is of type: %s",
					TypeName(v))
			}
			for it := v.Iter(); it.Next(); {
				s.Add(it.Value())
			}
		}
		return s.inOrder(), nil
	}),
}

// inOrder returns the values in their order, in which MongoDB returns unions and intersections. The set can't be used
// any more.
func (s *Set) inOrder() value.Value {
	slices.SortFunc(s.vals, func(a, b value.Value) int { return Compare(s.coll, a, b) })
	return value.MakeArray(s.vals)
}

//go:noinline // see named
func elementsTrue(name string, any bool) func(*Env, []value.Value) (value.Value, error) {
	return func(_ *Env, a []value.Value) (value.Value, error) {
		if a[0].Kind() != value.Array {
			code := int32(17040)
			if any {
				code = 17041
			}
			return a[0], merr.New(code, "%s's argument must be an array, but is %s", name, TypeName(a[0]))
		}
		for it := a[0].Iter(); it.Next(); {
			if Truthy(it.Value()) == any {
				return value.BoolOf(any), nil
			}
		}
		return value.BoolOf(!any), nil
	}
}

// Set is a set of values with BSON equality. It keeps them in the order in which they were added.
type Set struct {
	coll *collate.Collation
	at   map[uint64][]int
	vals []value.Value
}

// NewSet returns an empty Set, which equates strings by c.
func NewSet(c *collate.Collation) *Set { return &Set{coll: c, at: map[uint64][]int{}} }

// Has reports whether v is in the set.
func (s *Set) Has(v value.Value) bool {
	for _, i := range s.at[s.coll.Hash(v)] {
		if Compare(s.coll, s.vals[i], v) == 0 {
			return true
		}
	}
	return false
}

// Add adds v and reports whether it is new. The bytes of v must not change while the set is in use.
func (s *Set) Add(v value.Value) bool {
	if s.Has(v) {
		return false
	}
	h := s.coll.Hash(v)
	s.at[h] = append(s.at[h], len(s.vals))
	s.vals = append(s.vals, v)
	return true
}

// Len returns the number of values.
func (s *Set) Len() int { return len(s.vals) }

// Values returns the values of the set.
func (s *Set) Values() []value.Value { return s.vals }

func setOf(e *Env, v value.Value) *Set {
	s := NewSet(e.Run.Collation())
	for it := v.Iter(); it.Next(); {
		s.Add(it.Value())
	}
	return s
}

func (s *Set) equal(o *Set) bool {
	if len(s.vals) != len(o.vals) {
		return false
	}
	for _, v := range s.vals {
		if !o.Has(v) {
			return false
		}
	}
	return true
}

func twoSets(e *Env, name string, code int32, a []value.Value) (x, y *Set, err error) {
	for i, v := range a {
		if nullish(v) {
			return nil, nil, nil
		}
		if v.Kind() != value.Array {
			return nil, nil, merr.New(code+int32(i), "both operands of %s must be arrays. Argument %d is of type: %s",
				name, i+1, TypeName(v))
		}
	}
	return setOf(e, a[0]), setOf(e, a[1]), nil
}
