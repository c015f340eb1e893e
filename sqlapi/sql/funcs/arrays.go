package funcs

import (
	"math"
	"sort"

	"github.com/orrerydb/orrery/core/value"
)

// init registers the functions on arrays and sets. Elements are compared by deep equality.
func init() {
	register(
		&Func{Name: "ARRAY_CONCAT", Types: "aa+", Eval: func(c *Context, a []value.Value) value.Value {
			var b Builder
			for _, arr := range a {
				for it := arr.Iter(); it.Next() && !b.over; {
					b.Elem(it.Value())
				}
			}
			return c.Array(&b)
		}},
		&Func{Name: "ARRAY_CONTAINS", Types: "ad?b", Eval: func(_ *Context, a []value.Value) value.Value {
			return boolean(contains(a[0], a[1], optBool(a, 2)))
		}},
		&Func{Name: "ARRAY_CONTAINS_ANY", Types: "ad+", Eval: func(_ *Context, a []value.Value) value.Value {
			return boolean(found(a[0], a[1:], 1))
		}},
		&Func{Name: "ARRAY_CONTAINS_ALL", Types: "ad+", Eval: func(_ *Context, a []value.Value) value.Value {
			return boolean(found(a[0], a[1:], len(a)-1))
		}},
		&Func{Name: "ARRAY_LENGTH", Types: "a", Eval: func(_ *Context, a []value.Value) value.Value {
			return value.IntOf(int64(a[0].Len()))
		}},
		&Func{Name: "ARRAY_SLICE", Types: "an?n", Eval: slice},
		&Func{Name: "CHOOSE", Types: "nd+", Eval: func(_ *Context, a []value.Value) value.Value {
			if i, ok := ToInt(a[0]); ok && i >= 1 && i < len(a) {
				return a[i]
			}
			return value.Value{}
		}},
		&Func{Name: "ObjectToArray", Types: "o?ss", Eval: objectToArray},
		&Func{Name: "_ObjectToArray", Types: "o?ss", Eval: objectToArray},
	)
	sets()
	arrayAggregates()
}

// sets registers the functions that read arrays as sets: equal values count once. Results are in the order of first
// appearance.
func sets() {
	register(
		&Func{Name: "SetIntersect", Types: "aa", Eval: setOp(func(x, y *set) []value.Value {
			var out []value.Value
			for _, v := range x.list {
				if y.has(v) {
					out = append(out, v)
				}
			}
			return out
		})},
		&Func{Name: "SetUnion", Types: "aa", Eval: setOp(func(x, y *set) []value.Value {
			for _, v := range y.list {
				x.add(v)
			}
			return x.list
		})},
		&Func{Name: "SetDifference", Types: "aa", Eval: setOp(func(x, y *set) []value.Value {
			var out []value.Value
			for _, v := range x.list {
				if !y.has(v) {
					out = append(out, v)
				}
			}
			return out
		})},
		&Func{Name: "SetEqual", Types: "aa", Eval: func(_ *Context, a []value.Value) value.Value {
			x, y := newSet(a[0]), newSet(a[1])
			if len(x.list) != len(y.list) {
				return boolean(false)
			}
			for _, v := range x.list {
				if !y.has(v) {
					return boolean(false)
				}
			}
			return boolean(true)
		}},
	)
}

// contains reports whether arr has an element that equals v. With partial, an object that has all fields of v also
// counts.
func contains(arr, v value.Value, partial bool) bool {
	for it := arr.Iter(); it.Next(); {
		e := View(it.Value())
		if Equal(e, v) || partial && matches(e, v) {
			return true
		}
	}
	return false
}

// found reports whether arr has at least n of the values, where n is 1 or the number of values.
func found(arr value.Value, vs []value.Value, n int) bool {
	if len(vs) <= fewWanted {
		for i, v := range vs {
			if n <= 0 || n > len(vs)-i {
				break
			}
			if contains(arr, v, false) {
				n--
			}
		}
		return n <= 0
	}
	wanted := &set{by: map[uint64][]value.Value{}}
	for _, v := range vs {
		wanted.add(DeepView(v))
	}
	n = min(n, len(wanted.list)) // equal values count once
	got := &set{by: map[uint64][]value.Value{}}
	for it := arr.Iter(); it.Next() && len(got.list) < n; {
		if v := DeepView(it.Value()); wanted.has(v) {
			got.add(v)
		}
	}
	return len(got.list) >= n
}

// fewWanted is the number of values up to which each is looked for on its own. More are looked for together, so that
// the cost doesn't grow with the lengths of both lists multiplied.
const fewWanted = 8

// matches reports whether object e has every field of object want.
func matches(e, want value.Value) bool {
	if e.Kind() != value.Object || want.Kind() != value.Object {
		return false
	}
	for it := want.Iter(); it.Next(); {
		got, w := View(e.Get(string(it.Key()))), it.Value()
		if !got.IsDefined() || !Equal(got, w) && !matches(got, w) {
			return false
		}
	}
	return true
}

// slice is ARRAY_SLICE(array, start[, length]); a negative start counts from the end.
func slice(_ *Context, a []value.Value) value.Value {
	n := a[0].Len()
	start, length := math.Trunc(a[1].Float()), math.Inf(1)
	if len(a) == 3 {
		length = math.Trunc(a[2].Float())
	}
	if start < 0 {
		start = math.Max(0, float64(n)+start)
	}
	var b Builder
	i := 0.0
	for it := a[0].Iter(); it.Next(); i++ {
		if i >= start && i-start < length {
			b.Elem(it.Value())
		}
	}
	return b.Array()
}

// objectToArray returns [{"k": name, "v": value}, ..]. The caller can choose the names of the two fields.
func objectToArray(c *Context, a []value.Value) value.Value {
	k, v := "k", "v"
	if len(a) > 1 {
		k = a[1].Str()
	}
	if len(a) > 2 {
		v = a[2].Str()
	}
	var out, pair Builder
	for it := a[0].Iter(); it.Next(); {
		pair.Field(k, value.StringBytes(it.Key()))
		pair.Field(v, it.Value())
		out.Elem(pair.Object())
	}
	return c.Array(&out)
}

// set holds distinct values in the order of their first appearance.
type set struct {
	list []value.Value
	by   map[uint64][]value.Value
}

func newSet(arr value.Value) *set {
	s := &set{by: map[uint64][]value.Value{}}
	for it := arr.Iter(); it.Next(); {
		s.add(DeepView(it.Value()))
	}
	return s
}

func (s *set) has(v value.Value) bool {
	for _, x := range s.by[value.HashCosmos(v)] {
		if value.EqualCosmos(x, v) {
			return true
		}
	}
	return false
}

func (s *set) add(v value.Value) {
	if !s.has(v) {
		h := value.HashCosmos(v)
		s.by[h] = append(s.by[h], v)
		s.list = append(s.list, v)
	}
}

func setOp(op func(x, y *set) []value.Value) func(*Context, []value.Value) value.Value {
	return func(c *Context, a []value.Value) value.Value {
		var b Builder
		for _, v := range op(newSet(a[0]), newSet(a[1])) {
			b.Elem(v)
		}
		return c.Array(&b)
	}
}

// arrayAggregates registers ARRAY_SUM and the other aggregates over one array. They give undefined when an element has
// the wrong type.
func arrayAggregates() {
	numbers := func(name string, fn func(xs []float64) value.Value) *Func {
		return &Func{Name: name, Types: "a", Eval: func(_ *Context, a []value.Value) value.Value {
			var xs []float64
			for it := a[0].Iter(); it.Next(); {
				v := it.Value()
				if !v.IsNumber() || v.Kind() == value.Decimal {
					return value.Value{}
				}
				xs = append(xs, v.Float())
			}
			return fn(xs)
		}}
	}
	extreme := func(name string, keep func(c int) bool) *Func {
		return &Func{Name: name, Types: "a", Eval: func(_ *Context, a []value.Value) value.Value {
			var best value.Value
			for _, v := range elems(a[0]) {
				if v.Kind() == value.Array || v.Kind() == value.Object {
					return value.Value{}
				}
				if !best.IsDefined() || keep(value.CompareCosmos(v, best)) {
					best = v
				}
			}
			return best
		}}
	}
	sum := func(xs []float64) float64 {
		t := 0.0
		for _, x := range xs {
			t += x
		}
		return t
	}
	register(
		numbers("ARRAY_SUM", func(xs []float64) value.Value { return Num(sum(xs)) }),
		numbers("ARRAY_AVG", func(xs []float64) value.Value {
			if len(xs) == 0 {
				return value.Value{}
			}
			return Num(sum(xs) / float64(len(xs)))
		}),
		numbers("ARRAY_MEDIAN", func(xs []float64) value.Value {
			if len(xs) == 0 {
				return value.Value{}
			}
			sort.Float64s(xs)
			return Num((xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2)
		}),
		extreme("ARRAY_MIN", func(c int) bool { return c < 0 }),
		extreme("ARRAY_MAX", func(c int) bool { return c > 0 }),
	)
}
