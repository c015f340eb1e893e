package expr

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// maxRange is the largest number of elements of $range. It bounds the memory of one expression.
const maxRange = 1 << 20

var arrayOps = map[string]operator{
	"$arrayElemAt":   fixed(2, arrayElemAt),
	"$arrayToObject": unary(arrayToObject),
	"$concatArrays":  variadic(concatArrays),
	"$filter":        {special: filterOp},
	"$first":         endOp("$first", func(vs []value.Value) value.Value { return vs[0] }),
	"$last":          endOp("$last", func(vs []value.Value) value.Value { return vs[len(vs)-1] }),
	"$firstN": nOp("$firstN", func(_ *collate.Collation, vs []value.Value, n int) []value.Value {
		return vs[:min(n, len(vs))]
	}),
	"$lastN": nOp("$lastN", func(_ *collate.Collation, vs []value.Value, n int) []value.Value {
		return vs[len(vs)-min(n, len(vs)):]
	}),
	"$maxN": nOp("$maxN", func(c *collate.Collation, vs []value.Value, n int) []value.Value {
		return extremes(c, vs, n, -1)
	}),
	"$minN": nOp("$minN", func(c *collate.Collation, vs []value.Value, n int) []value.Value {
		return extremes(c, vs, n, 1)
	}),
	"$in":           fixed(2, inArray),
	"$indexOfArray": ranged(2, 4, indexOfArray),
	"$isArray": unary(func(v value.Value) (value.Value, error) {
		return value.BoolOf(v.Kind() == value.Array), nil
	}),
	"$map":    {special: mapOp},
	"$range":  ranged(2, 3, rangeOp),
	"$reduce": {special: reduce},
	"$reverseArray": unary(func(v value.Value) (value.Value, error) {
		vs, ok, err := wantArray("$reverseArray", 34435, v)
		if !ok || err != nil {
			return value.NullValue(), err
		}
		for i, j := 0, len(vs)-1; i < j; i, j = i+1, j-1 {
			vs[i], vs[j] = vs[j], vs[i]
		}
		return value.MakeArray(vs), nil
	}),
	"$size": unary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.Array {
			return v, merr.New(17124, "The argument to $size must be an array, but was of type: %s", TypeName(v))
		}
		return value.Int32Of(int32(v.Len())), nil
	}),
	"$slice":     ranged(2, 3, slice),
	"$sortArray": {special: sortArray},
	"$zip":       {special: zip},
}

func arrayElemAt(_ *Env, a []value.Value) (value.Value, error) {
	if nullish(a[0]) || nullish(a[1]) {
		return value.NullValue(), nil
	}
	if a[0].Kind() != value.Array {
		return a[0], merr.New(28689, "$arrayElemAt's first argument must be an array, but is %s", TypeName(a[0]))
	}
	i, ok := num.ToInt64(a[1], false)
	if !a[1].IsNumber() {
		return a[1], merr.New(28690, "$arrayElemAt's second argument must be a numeric value, but is %s",
			TypeName(a[1]))
	}
	if !ok {
		return a[1], merr.New(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer")
	}
	if i < 0 {
		i += int64(a[0].Len())
	}
	if i < 0 || i > 1<<31 {
		return value.Undef(), nil
	}
	return a[0].At(int(i)), nil
}

func arrayToObject(v value.Value) (value.Value, error) {
	if nullish(v) {
		return value.NullValue(), nil
	}
	if v.Kind() != value.Array {
		return v, merr.New(40386, "$arrayToObject requires an array input, found: %s", TypeName(v))
	}
	var names []string
	vals := map[string]value.Value{}
	first := v.At(0).Kind()
	for it := v.Iter(); it.Next(); {
		var k, x value.Value
		e := it.Value()
		if e.Kind() != first {
			if first == value.Array {
				return e, mixedInput(40396, "Array", e)
			}
			return e, mixedInput(40391, "Object", e)
		}
		switch e.Kind() {
		case value.Array:
			if e.Len() != 2 {
				return e, merr.New(40397,
					"$arrayToObject requires an array of size 2 arrays,found array of size: %d", e.Len())
			}
			k, x = e.At(0), e.At(1)
		case value.Object:
			if k, x = e.Get("k"), e.Get("v"); e.Len() != 2 {
				return e, merr.New(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect "+
					"number of keys:%d", e.Len())
			} else if !k.IsDefined() || !x.IsDefined() {
				return e, merr.New(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or "+
					"both keys from: %s", merr.Show(e))
			}
		default:
			return e, merr.New(40398, "Unrecognised input type format for $arrayToObject: %s", TypeName(e))
		}
		if k.Kind() != value.String {
			code := int32(40395)
			if e.Kind() == value.Object {
				code = 40394
			}
			return k, merr.New(code, "$arrayToObject requires an array of key-value pairs, where the key must be "+
				"of type string. Found key type: %s", TypeName(k))
		}
		if err := nameError(4940400, k.Str()); err != nil {
			return k, err
		}
		if _, twice := vals[k.Str()]; !twice {
			names = append(names, k.Str())
		}
		vals[k.Str()] = x
	}
	at, b := bson.Begin(nil)
	for _, n := range names {
		b = value.AppendElement(b, n, vals[n])
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

func mixedInput(code int32, first string, v value.Value) error {
	return merr.New(code, "$arrayToObject requires a consistent input format. Elements must all be arrays or all be "+
		"objects. %s was detected, now found: %s", first, TypeName(v))
}

func concatArrays(e *Env, a []value.Value) (value.Value, error) {
	out := newArray(e)
	defer out.drop()
	for _, v := range a {
		if nullish(v) {
			return value.NullValue(), nil
		}
		if v.Kind() != value.Array {
			return v, merr.New(28664, "$concatArrays only supports arrays, not %s", TypeName(v))
		}
		for it := v.Iter(); it.Next(); {
			if err := out.add(it.Value()); err != nil {
				return v, err
			}
		}
	}
	return out.done(), nil
}

func endOp(name string, pick func([]value.Value) value.Value) operator {
	return unary(func(v value.Value) (value.Value, error) {
		vs, ok, err := wantArray(name, 28689, v)
		if !ok || err != nil {
			return value.NullValue(), err
		}
		if len(vs) == 0 {
			return value.Undef(), nil
		}
		return pick(vs), nil
	})
}

//go:noinline // see named
func nOp(name string, pick func(c *collate.Collation, vs []value.Value, n int) []value.Value) operator {
	return named([]string{"input", "n"}, nil, func(e *Env, a map[string]value.Value) (value.Value, error) {
		if a["input"].Kind() != value.Array {
			return a["input"], merr.New(5788200, "Input must be an array, but was of type: %s", TypeName(a["input"]))
		}
		n, err := PositiveN(a["n"])
		if err != nil {
			return a["n"], err
		}
		return value.MakeArray(pick(e.Run.Collation(), value.Elements(a["input"]), n)), nil
	})
}

// PositiveN returns the n of the N operators. It fails when v isn't a positive whole number.
func PositiveN(v value.Value) (int, error) {
	n, ok := num.ToInt64(v, false)
	if !ok {
		return 0, merr.New(5787902, "Value for 'n' must be of integral type, but found %s", TypeName(v))
	}
	if n <= 0 {
		return 0, merr.New(5787908, "'n' must be greater than 0, found %d", n)
	}
	return int(min(n, 1<<31)), nil
}

// extremes returns the n smallest values in ascending order (dir 1), or the n greatest ones in descending order (dir
// -1). Null and missing values are left out.
func extremes(c *collate.Collation, vs []value.Value, n, dir int) []value.Value {
	var out []value.Value
	for _, v := range vs {
		if !nullish(v) {
			out = append(out, v)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return dir*c.Compare(out[i], out[j]) < 0 })
	return out[:min(n, len(out))]
}

func inArray(e *Env, a []value.Value) (value.Value, error) {
	if a[1].Kind() != value.Array {
		return a[1], merr.New(40081, "$in requires an array as a second argument, found: %s", TypeName(a[1]))
	}
	for it := a[1].Iter(); it.Next(); {
		if Compare(e.Run.Collation(), it.Value(), a[0]) == 0 {
			return value.BoolOf(true), nil
		}
		if err := e.Run.Step(); err != nil {
			return a[0], err
		}
	}
	return value.BoolOf(false), nil
}

func indexOfArray(e *Env, a []value.Value) (value.Value, error) {
	vs, ok, err := wantArray("$indexOfArray", 40090, a[0])
	if !ok || err != nil {
		return value.NullValue(), err
	}
	from, to := 0, len(vs)
	for i, p := range []*int{&from, &to} {
		if len(a) > 2+i {
			if *p, err = position("$indexOfArray", a[2+i], 40096); err != nil {
				return a[2+i], err
			}
			if *p < 0 {
				return a[2+i], merr.New(40097, "$indexOfArray requires a nonnegative start or end index")
			}
		}
	}
	for i := from; i < min(to, len(vs)); i++ {
		if Compare(e.Run.Collation(), vs[i], a[1]) == 0 {
			return value.Int32Of(int32(i)), nil
		}
	}
	return value.Int32Of(-1), nil
}

func rangeOp(e *Env, a []value.Value) (value.Value, error) {
	var n [3]int64
	n[2] = 1
	for i, v := range a {
		what, code := []string{"a starting", "an ending", "a step"}[i], 34443+2*int32(i)
		if !v.IsNumber() {
			return v, merr.New(code, "$range requires a numeric %s value, found value of type: %s",
				what[strings.IndexByte(what, ' ')+1:], TypeName(v))
		}
		x, ok := num.ToInt64(v, false)
		if !ok || x != int64(int32(x)) {
			return v, merr.New(code+1, "$range requires %s value that can be represented as a 32-bit integer, "+
				"found value: %s", what, merr.Show(v))
		}
		n[i] = x
	}
	if n[2] == 0 {
		return a[2], merr.New(34449, "$range requires a non-zero step value")
	}
	if (n[1]-n[0])/n[2] > maxRange {
		return a[0], merr.New(merr.MemoryLimit, "$range would make more than %d values", maxRange)
	}
	out := newArray(e)
	defer out.drop()
	for x := n[0]; n[2] > 0 && x < n[1] || n[2] < 0 && x > n[1]; x += n[2] {
		if err := out.add(value.Int32Of(int32(x))); err != nil {
			return a[0], err
		}
	}
	return out.done(), nil
}

func slice(_ *Env, a []value.Value) (value.Value, error) {
	for _, v := range a {
		if nullish(v) {
			return value.NullValue(), nil
		}
	}
	if a[0].Kind() != value.Array {
		return a[0], merr.New(28724, "First argument to $slice must be an array, but is of type: %s", TypeName(a[0]))
	}
	var n [2]int
	for i, v := range a[1:] {
		x, ok := num.ToInt64(v, false)
		if !ok || x != int64(int32(x)) {
			code, what := 28725+int32(2*i), []string{"Second", "Third"}[i]
			if v.IsNumber() {
				return v, merr.New(code+1, "%s argument to $slice can't be represented as a 32-bit integer: %s", what,
					merr.Show(v))
			}
			return v, merr.New(code, "%s argument to $slice must be a numeric value, but is of type: %s", what,
				TypeName(v))
		}
		n[i] = int(x)
	}
	vs := value.Elements(a[0])
	if len(a) == 3 && n[1] <= 0 {
		return a[2], merr.New(28729, "Third argument to $slice must be positive: %d", n[1])
	}
	return value.MakeArray(Slice(vs, len(a) == 3, n[0], n[1])), nil
}

// Slice implements $slice. Without skip it returns the first |first| elements, or the last ones when first is negative.
// With skip it returns n elements behind the first `first` ones; a negative first counts from the end.
func Slice(vs []value.Value, hasSkip bool, first, n int) []value.Value {
	if !hasSkip {
		if first >= 0 {
			return vs[:min(first, len(vs))]
		}
		return vs[max(0, len(vs)+first):]
	}
	if first < 0 {
		first = max(0, len(vs)+first)
	}
	first = min(first, len(vs))
	return vs[first:min(len(vs), first+n)]
}
