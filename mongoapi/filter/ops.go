package filter

import (
	"cmp"
	"math"
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// operator compiles `path: {$op: arg}`. all is the complete operator object.
type operator func(c *compiler, path string, arg, all value.Value, depth int) (node, error)

// ops is the registry of operators on a path. nil: the operator is an option of another one.
var ops map[string]operator

func init() {
	ops = map[string]operator{
		"$all":           (*compiler).all,
		"$bitsAllClear":  bits("$bitsAllClear", func(ones, _ int) bool { return ones == 0 }),
		"$bitsAllSet":    bits("$bitsAllSet", func(ones, all int) bool { return ones == all }),
		"$bitsAnyClear":  bits("$bitsAnyClear", func(ones, all int) bool { return ones < all }),
		"$bitsAnySet":    bits("$bitsAnySet", func(ones, _ int) bool { return ones > 0 }),
		"$comment":       nil,
		"$elemMatch":     (*compiler).elemMatch,
		"$eq":            (*compiler).eq,
		"$exists":        (*compiler).exists,
		"$geoIntersects": (*compiler).geoIntersects,
		"$geoNear":       near("$geoNear"),
		"$geoWithin":     (*compiler).geoWithin,
		"$gt":            compare(sargGt),
		"$gte":           compare(sargGte),
		"$in":            (*compiler).in,
		"$lt":            compare(sargLt),
		"$lte":           compare(sargLte),
		"$maxDistance":   nil,
		"$minDistance":   nil,
		"$mod":           (*compiler).mod,
		"$ne":            (*compiler).ne,
		"$near":          near("$near"),
		"$nearSphere":    near("$nearSphere"),
		"$nin":           (*compiler).nin,
		"$not":           (*compiler).not,
		"$options":       nil,
		"$regex":         (*compiler).regexOp,
		"$size":          (*compiler).size,
		"$type":          (*compiler).typeOp,
		"$uniqueDocs":    nil,
		"$within":        (*compiler).geoWithin,
	}
	for name := range ops {
		if Unsupported[name] {
			panic("filter: " + name + " is both supported and not")
		}
	}
}

// Unsupported lists query operators of MongoDB that aren't supported.
var Unsupported = map[string]bool{}

// bracket returns the class within which MongoDB compares. Values of different classes are never less or greater.
func bracket(v value.Value) int {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return 1
	case value.Int32, value.Int64, value.Double, value.Decimal:
		return 2
	case value.String, value.Symbol:
		return 3
	case value.Binary, value.UUID:
		return 4
	}
	return 16 + int(v.Kind())
}

// coll returns the collation of comparisons with v, nil if they are the same with and without it.
func (c *compiler) coll(v value.Value) *collate.Collation {
	if collate.Affects(v) {
		return c.opts.Run.Collation()
	}
	return nil
}

func (c *compiler) eqTest(v value.Value) func(value.Value) bool {
	if coll := c.coll(v); coll != nil {
		class := bracket(v)
		return func(x value.Value) bool { return bracket(x) == class && coll.Compare(x, v) == 0 }
	}
	switch v.Kind() {
	case value.Null, value.Undefined:
		return func(x value.Value) bool { return x.Kind() == value.Null || x.Kind() == value.Undefined }
	case value.String:
		b := string(v.Bytes())
		return func(x value.Value) bool { return x.Kind() == value.String && string(x.Bytes()) == b }
	}
	class := bracket(v)
	return func(x value.Value) bool { return bracket(x) == class && value.CompareBSON(x, v) == 0 }
}

func (c *compiler) eq(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() == value.Regex { // $eq means the regex value itself
		return newLeaf(path, true, c.eqTest(arg)), nil
	}
	return c.newEq(path, arg), nil
}

func (c *compiler) ne(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() == value.Regex {
		return nil, merr.New(merr.BadValue, "Can't have regex as arg to $ne.")
	}
	n := newLeaf(path, true, c.eqTest(arg))
	if n.not = true; arg.Kind() == value.Null {
		n.sarg.kind = sargNotNull
	}
	return n, nil
}

func isNaN(v value.Value) bool {
	return v.IsNumber() && math.IsNaN(num.ToFloat(v))
}

// compare makes $gt, $gte, $lt and $lte.
//
//go:noinline // each caller would get its own copy of the closure
func compare(kind sargKind) operator {
	return func(c *compiler, path string, arg, _ value.Value, _ int) (node, error) {
		if arg.Kind() == value.Regex {
			return nil, merr.New(merr.BadValue, "Can't have RegEx as arg to predicate over field '%s'.", path)
		}
		coll := c.coll(arg)
		n := newLeaf(path, true, compareTest(coll, kind, arg))
		n.sarg = sarg{kind: kind, v: arg, coll: coll}
		return n, nil
	}
}

func holds(kind sargKind, cmp int) bool {
	switch kind {
	case sargGt:
		return cmp > 0
	case sargGte:
		return cmp >= 0
	case sargLt:
		return cmp < 0
	}
	return cmp <= 0
}

func compareTest(coll *collate.Collation, kind sargKind, arg value.Value) func(value.Value) bool {
	class, k := bracket(arg), arg.Kind()
	if k == value.MinKey || k == value.MaxKey { // they compare with all kinds, also with what is missing
		return func(x value.Value) bool {
			if !x.IsDefined() {
				x = value.NullValue()
			}
			return holds(kind, value.CompareBSON(x, arg))
		}
	}
	if isNaN(arg) {
		return func(x value.Value) bool { return isNaN(x) && (kind == sargGte || kind == sargLte) }
	}
	ints, whole := k == value.Int32 || k == value.Int64, arg.Int()
	return func(x value.Value) bool {
		if kx := x.Kind(); ints && (kx == value.Int32 || kx == value.Int64) { // the most frequent case
			return holds(kind, cmp.Compare(x.Int(), whole))
		}
		if bracket(x) != class {
			return false
		}
		if class == 1 {
			return kind == sargGte || kind == sargLte
		}
		return !isNaNDouble(x) && holds(kind, coll.Compare(x, arg))
	}
}

func isNaNDouble(v value.Value) bool {
	return v.Kind() == value.Double && math.IsNaN(v.Float()) || v.Kind() == value.Decimal && isNaN(v)
}

func (c *compiler) in(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "$in needs an array")
	}
	test, vs, plain, err := c.inTest(arg)
	if err != nil {
		return nil, err
	}
	n := newLeaf(path, true, test)
	if plain {
		n.sarg = sarg{kind: sargIn, vs: vs}
		if slices.ContainsFunc(vs, collate.Affects) {
			n.sarg.coll = c.opts.Run.Collation()
		}
	}
	if len(vs) == 1 && arg.Len() == 1 {
		n.eq = vs[0]
	}
	return n, nil
}

func (c *compiler) inTest(arg value.Value) (test func(value.Value) bool, vs []value.Value, plain bool, err error) {
	plain = true
	var regexes []func(value.Value) bool
	null := false
	set, coll := map[uint64][]value.Value{}, c.opts.Run.Collation()
	for it := arg.Iter(); it.Next(); {
		v := it.Value()
		switch {
		case undefined(&it):
			return nil, nil, false, merr.New(merr.BadValue, "InMatchExpression equality cannot be undefined")
		case isOperatorObject(v):
			return nil, nil, false, merr.New(merr.BadValue, "cannot nest $ under $in")
		case v.Kind() == value.Regex:
			re, err := c.compileRegex(v, value.Undef())
			if err != nil {
				return nil, nil, false, err
			}
			regexes, plain = append(regexes, re.test), false
			continue
		case v.Kind() == value.Null:
			null = true
		}
		h := coll.Hash(v)
		set[h] = append(set[h], v)
		vs = append(vs, v)
	}
	test = func(x value.Value) bool {
		if x.Kind() == value.Undefined {
			return null
		}
		for _, v := range set[coll.Hash(x)] {
			if bracket(v) == bracket(x) && coll.Compare(v, x) == 0 {
				return true
			}
		}
		for _, re := range regexes {
			if re(x) {
				return true
			}
		}
		return false
	}
	return test, vs, plain, nil
}

func (c *compiler) nin(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "$nin needs an array")
	}
	test, _, _, err := c.inTest(arg)
	if err != nil {
		return nil, err
	}
	n := newLeaf(path, true, test)
	n.not = true
	return n, nil
}

func (c *compiler) not(path string, arg, _ value.Value, depth int) (node, error) {
	if arg.Kind() == value.Regex {
		n, err := c.regex(path, arg, value.Undef())
		if err != nil {
			return nil, err
		}
		return notNode{n}, nil
	}
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.BadValue, "$not needs a regex or a document")
	}
	if arg.Len() == 0 {
		return nil, merr.New(merr.BadValue, "$not cannot be empty")
	}
	if !isOperatorObject(arg) {
		it := arg.Iter()
		it.Next()
		return nil, merr.New(merr.BadValue, "unknown operator: %s", it.Key())
	}
	c.inside++
	c.within++
	defer func() { c.inside, c.within = c.inside-1, c.within-1 }()
	n, err := c.operators(path, arg, depth+1)
	if err != nil {
		return nil, err
	}
	return notNode{n}, nil
}

func (c *compiler) exists(path string, arg, _ value.Value, _ int) (node, error) {
	n := newLeaf(path, false, func(v value.Value) bool { return v.IsDefined() })
	n.not = !expr.Truthy(arg)
	n.sarg.kind = sargExists
	return n, nil
}

func (c *compiler) size(path string, arg, _ value.Value, _ int) (node, error) {
	if !arg.IsNumber() {
		return nil, merr.New(merr.BadValue, "Failed to parse $size. Expected a number in: $size: %s", merr.Show(arg))
	}
	want, ok := num.ToInt64(arg, false)
	if !ok {
		return nil, merr.New(merr.BadValue, "Failed to parse $size. Expected an integer: $size: %s", merr.Show(arg))
	}
	if want < 0 {
		return nil, merr.New(merr.BadValue,
			"Failed to parse $size. Expected a non-negative number in: $size: %s", merr.Show(arg))
	}
	return newLeaf(path, false, func(v value.Value) bool { return v.Kind() == value.Array && int64(v.Len()) == want }),
		nil
}

func (c *compiler) mod(path string, arg, _ value.Value, _ int) (node, error) {
	if arg.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "malformed mod, needs to be an array")
	}
	e := value.Elements(arg)
	if len(e) < 2 {
		return nil, merr.New(merr.BadValue, "malformed mod, not enough elements")
	}
	if len(e) > 2 {
		return nil, merr.New(merr.BadValue, "malformed mod, too many elements")
	}
	div, ok := num.ToInt64(e[0], true)
	if !ok {
		return nil, merr.New(merr.BadValue, "malformed mod, divisor not a number")
	}
	rem, ok := num.ToInt64(e[1], true)
	if !ok {
		return nil, merr.New(merr.BadValue, "malformed mod, remainder not a number")
	}
	if div == 0 {
		return nil, merr.New(merr.BadValue, "divisor cannot be 0")
	}
	return newLeaf(path, true, func(v value.Value) bool {
		n, ok := num.ToInt64(v, true)
		if !ok {
			return false
		}
		if div == -1 {
			return rem == 0
		}
		return n%div == rem
	}), nil
}

func (c *compiler) all(path string, arg, _ value.Value, depth int) (node, error) {
	if arg.Kind() != value.Array {
		return nil, merr.New(merr.BadValue, "$all needs an array")
	}
	var all andNode
	matching := false // its elements are $elemMatch, as the first one is
	for it := arg.Iter(); it.Next(); {
		v := it.Value()
		var n node
		var err error
		isMatch := isOperatorObject(v) && v.Get("$elemMatch").IsDefined()
		if len(all) == 0 {
			matching = isMatch
		}
		switch {
		case undefined(&it):
			err = errUndefined
		case matching != isMatch && matching:
			err = merr.New(merr.BadValue, "$all/$elemMatch has to be consistent")
		case matching:
			n, err = c.elemMatch(path, v.Get("$elemMatch"), v, depth+1)
		case isOperatorObject(v):
			err = merr.New(merr.BadValue, "no $ expressions in $all")
		case v.Kind() == value.Regex:
			n, err = c.regex(path, v, value.Undef())
		default:
			n = c.newEq(path, v)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	switch len(all) {
	case 0:
		return constNode(false), nil
	case 1:
		return all[0], nil
	}
	for _, n := range all { // each is true of some element, none is the value of the field
		if l, ok := n.(*pathNode); ok {
			l.eq = value.Undef()
		}
	}
	return all, nil
}

func (c *compiler) elemMatch(path string, arg, _ value.Value, depth int) (node, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.BadValue, "$elemMatch needs an Object")
	}
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	elem, inner, err := c.element(arg, depth)
	if err != nil {
		return nil, err
	}
	if elem == nil {
		elem = func(v value.Value) bool {
			if v.Kind() == value.Array { // the names in an array are its indexes
				v = value.ObjectOf(v.Bytes())
			}
			return matchesObject(inner, v)
		}
	}
	n := newLeaf(path, false, func(v value.Value) bool {
		if v.Kind() != value.Array {
			return false
		}
		for it := v.Iter(); it.Next(); {
			if elem(it.Value()) {
				return true
			}
		}
		return false
	})
	n.sarg.elem, n.sarg.inner = elem, inner
	return n, nil
}

// element compiles the condition on one element of an array: operators on its value, with the test of a value, or a
// query on its fields, with test nil. An array in the array is one value.
func (c *compiler) element(arg value.Value, depth int) (test func(v value.Value) bool, inner node, err error) {
	c.inside++
	c.within++
	c.elements++
	defer func() { c.inside, c.within, c.elements = c.inside-1, c.within-1, c.elements-1 }()
	if isOperatorObject(arg) && !isLogical(arg) {
		if inner, err = c.operators("", arg, depth+1); err != nil {
			return nil, nil, err
		}
		return valueTest(inner, false), inner, nil
	}
	inner, err = c.document(arg, depth+1)
	return nil, inner, err
}

// matchesObject reports whether v is an object that satisfies a query without $expr.
func matchesObject(n node, v value.Value) bool {
	if v.Kind() != value.Object {
		return false
	}
	ok, err := n.match(nil, v)
	return ok && err == nil
}

// Element compiles the condition of $pull on one element: operators, a query on the element's fields, a regular
// expression, or a value. Other than in $elemMatch, an array in the array also represents its elements, and its indexes
// are no names.
func Element(arg value.Value, o Options) (func(v value.Value) bool, error) {
	c := &compiler{opts: o}
	switch arg.Kind() {
	case value.Object:
		test, inner, err := c.element(arg, 0)
		if err != nil {
			return nil, err
		}
		if test == nil {
			return func(v value.Value) bool { return matchesObject(inner, v) }, nil
		}
		return valueTest(inner, true), nil
	case value.Regex:
		re, err := c.compileRegex(arg, value.Undef())
		return re.test, err
	}
	return c.eqTest(arg), nil
}

// Equal reports whether two values are equal in a query: numbers by value, documents including the order of fields.
func Equal(a, b value.Value) bool { return bracket(a) == bracket(b) && value.CompareBSON(a, b) == 0 }

// isLogical reports whether v begins with an operator that has no path.
func isLogical(v value.Value) bool {
	it := v.Iter()
	it.Next()
	switch string(it.Key()) {
	case "$and", "$or", "$nor", "$expr", "$jsonSchema", "$where", "$comment", "$alwaysTrue", "$alwaysFalse",
		"$sampleRate", "$text":
		return true
	}
	return false
}

// valueTest turns conditions on the path "" into a test of one value. With leaf an array also represents its elements.
func valueTest(n node, leaf bool) func(v value.Value) bool {
	switch n := n.(type) {
	case *pathNode:
		return func(v value.Value) bool {
			if leaf && n.leaf && v.Kind() == value.Array {
				for it := v.Iter(); it.Next(); {
					if n.test(it.Value()) {
						return !n.not
					}
				}
			}
			return n.test(v) != n.not
		}
	case notNode:
		t := valueTest(n.node, leaf)
		return func(v value.Value) bool { return !t(v) }
	case andNode:
		var ts []func(value.Value) bool
		for _, k := range n {
			ts = append(ts, valueTest(k, leaf))
		}
		return func(v value.Value) bool {
			for _, t := range ts {
				if !t(v) {
					return false
				}
			}
			return true
		}
	case constNode:
		return func(value.Value) bool { return bool(n) }
	}
	return func(value.Value) bool { return false }
}
