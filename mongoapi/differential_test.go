package mongoapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestFiltersAgainstNaive: random filters give the documents that a naive evaluation gives, in a collection without any
// index, in one with the automatic index, and in one with declared indexes too.
//
// The naive evaluation knows numbers, strings, null, arrays and objects, and follows the rules of the manual's pages
// "Query for Null or Missing Fields" and "Query an Array": a condition holds if it holds for the value at a path, or
// for an element of an array there. $expr has rules of its own (naiveExpr).
func TestFiltersAgainstNaive(t *testing.T) {
	t.Run("arrays", func(t *testing.T) { filtersAgainstNaive(t, func(v any) any { return v }) })
	t.Run("no arrays", func(t *testing.T) { filtersAgainstNaive(t, withoutArrays) }) // compound indexes answer more
}

// withoutArrays replaces arrays by numbers.
func withoutArrays(v any) any {
	switch v := v.(type) {
	case bson.A:
		return int32(len(v))
	case bson.D:
		for i := range v {
			v[i].Value = withoutArrays(v[i].Value)
		}
	}
	return v
}

func filtersAgainstNaive(t *testing.T, made func(v any) any) {
	s, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	must := func(d bson.D) bson.Raw {
		t.Helper()
		raw, e := c.ask(d)
		if e.OK != 1 {
			t.Fatalf("%v: %v", d, e)
		}
		return raw
	}
	rnd := rand.New(rand.NewPCG(8, 15))
	docs := map[int]bson.D{}
	var list bson.A
	for i := range 250 {
		d := bson.D{{Key: "_id", Value: i}}
		for _, name := range []string{"a", "b", "c"} {
			if rnd.IntN(5) > 0 {
				d = append(d, bson.E{Key: name, Value: made(randomValue(rnd, 2))})
			}
		}
		docs[i], list = d, append(list, d)
	}
	must(bson.D{{Key: "create", Value: "auto"}})
	spec := newSpec("none", idPath)
	spec.IndexingPolicy = []byte(`{"indexingMode":"none","automatic":false}`)
	if _, err := s.eng.CreateContainer(context.Background(), "db", spec); err != nil {
		t.Fatal(err)
	}
	index := func(name string, keys ...string) bson.D {
		d := bson.D{}
		for _, k := range keys {
			d = append(d, bson.E{Key: k, Value: 1})
		}
		return bson.D{{Key: "key", Value: d}, {Key: "name", Value: name}}
	}
	must(bson.D{{Key: "createIndexes", Value: "declared"}, {Key: "indexes", Value: bson.A{index("a", "a"),
		index("b_c", "b", "c"), index("ax", "a.x")}}})
	colls := []string{"none", "auto", "declared"}
	for _, coll := range colls {
		must(bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: list}})
	}
	found := 0
	for n := range 500 {
		q := randomFilter(rnd, 2)
		var want []int
		for i := range len(docs) {
			if naive(docs[i], q) {
				want = append(want, i)
			}
		}
		found += len(want)
		for _, coll := range colls {
			vs, err := must(bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: q},
				{Key: "batchSize", Value: 1000}}).Lookup("cursor", "firstBatch").Array().Values()
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, v := range vs {
				got = append(got, int(v.Document().Lookup("_id").Int32()))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("%d, %s: %v\ngives %v\nwant  %v", n, coll, q, got, want)
			}
		}
	}
	if found < 10_000 {
		t.Errorf("only %d documents were found in all", found)
	}
}

func randomValue(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(10); {
	case n == 0:
		return nil
	case n < 5:
		return int32(rnd.IntN(4))
	case n == 5:
		return float64(rnd.IntN(4)) + 0.5
	case n < 8 || depth == 0:
		return string(rune('p' + rnd.IntN(3)))
	case n == 8:
		a := bson.A{}
		for range rnd.IntN(3) {
			a = append(a, randomValue(rnd, depth-1))
		}
		return a
	}
	d := bson.D{}
	for _, name := range []string{"x", "y"} {
		if rnd.IntN(3) > 0 {
			d = append(d, bson.E{Key: name, Value: randomValue(rnd, depth-1)})
		}
	}
	return d
}

func randomFilter(rnd *rand.Rand, depth int) bson.D {
	if depth > 0 && rnd.IntN(4) == 0 {
		op := []string{"$and", "$or", "$nor"}[rnd.IntN(3)]
		return bson.D{{Key: op, Value: bson.A{randomFilter(rnd, depth-1), randomFilter(rnd, depth-1)}}}
	}
	if rnd.IntN(4) == 0 {
		return bson.D{{Key: "$expr", Value: randomExpr(rnd, 2)}}
	}
	var q bson.D
	for _, path := range []string{"a", "b", "c", "a.x", "b.y"} {
		if rnd.IntN(4) > 0 && (len(q) > 0 || path != "b.y") {
			continue
		}
		q = append(q, bson.E{Key: path, Value: randomCondition(rnd, true)})
	}
	return q
}

// randomExpr returns comparisons of a path with a value.
func randomExpr(rnd *rand.Rand, depth int) bson.D {
	if depth > 0 && rnd.IntN(2) == 0 {
		op := []string{"$and", "$and", "$or"}[rnd.IntN(3)]
		return bson.D{{Key: op, Value: bson.A{randomExpr(rnd, depth-1), randomExpr(rnd, depth-1)}}}
	}
	path, v := "$"+[]string{"a", "b", "c", "a.x", "b.y"}[rnd.IntN(5)], randomValue(rnd, 0)
	switch op := []string{"$eq", "$gt", "$gte", "$lt", "$lte", "$in"}[rnd.IntN(6)]; {
	case op == "$in":
		return bson.D{{Key: op, Value: bson.A{path, bson.A{v, randomValue(rnd, 0)}}}}
	case rnd.IntN(3) == 0:
		return bson.D{{Key: op, Value: bson.A{v, path}}}
	default:
		return bson.D{{Key: op, Value: bson.A{path, v}}}
	}
}

// naiveExpr evaluates what randomExpr returns: all types are in one order, a missing value is below null, and the value
// of a path through an array is an array.
func naiveExpr(d, x bson.D) bool {
	args := x[0].Value.(bson.A)
	switch op := x[0].Key; op {
	case "$and":
		return naiveExpr(d, args[0].(bson.D)) && naiveExpr(d, args[1].(bson.D))
	case "$or":
		return naiveExpr(d, args[0].(bson.D)) || naiveExpr(d, args[1].(bson.D))
	case "$in":
		v := operand(d, args[0])
		return slices.ContainsFunc(args[1].(bson.A), func(w any) bool { return naiveOrder("$eq", v, w) })
	default:
		return naiveOrder(op, operand(d, args[0]), operand(d, args[1]))
	}
}

// operand returns the value of a path, or another value as it is.
func operand(d bson.D, x any) any {
	text, _ := x.(string)
	path, ok := strings.CutPrefix(text, "$")
	if !ok {
		return x
	}
	var v any = d
	for _, name := range strings.Split(path, ".") {
		switch of := v.(type) {
		case bson.D:
			v = noValue{}
			for _, e := range of {
				if e.Key == name {
					v = e.Value
				}
			}
		case bson.A:
			return of
		default:
			return noValue{}
		}
	}
	return v
}

// naiveOrder compares two values of which one is a scalar.
func naiveOrder(op string, v, w any) bool {
	rank := func(x any) int {
		switch x.(type) {
		case noValue:
			return 0
		case nil:
			return 1
		case int32, float64:
			return 2
		case string:
			return 3
		case bson.D:
			return 4
		}
		return 5
	}
	if a, b := rank(v), rank(w); a != b {
		return naiveCompare(op, int32(a), int32(b))
	}
	return naiveCompare(op, v, w)
}

func randomCondition(rnd *rand.Rand, outer bool) any {
	scalar := func() any { return randomValue(rnd, 0) }
	number := func() any { return int32(rnd.IntN(4)) }
	switch rnd.IntN(10) {
	case 0:
		if outer {
			return bson.D{{Key: "$not", Value: randomCondition(rnd, false)}}
		}
	case 1:
		return bson.D{{Key: "$exists", Value: rnd.IntN(2) == 0}}
	case 2:
		return bson.D{{Key: "$in", Value: bson.A{scalar(), scalar()}}}
	case 3:
		return bson.D{{Key: "$nin", Value: bson.A{scalar(), scalar()}}}
	case 4:
		return bson.D{{Key: "$size", Value: int32(rnd.IntN(3))}}
	case 5:
		return bson.D{{Key: "$gte", Value: number()}, {Key: "$lt", Value: number()}}
	case 6:
		return bson.D{{Key: "$ne", Value: scalar()}}
	case 7:
		inner := bson.D{{Key: "$gte", Value: number()}, {Key: "$lte", Value: number()}}
		return bson.D{{Key: "$elemMatch", Value: inner}}
	}
	return bson.D{{Key: []string{"$eq", "$gt", "$lte"}[rnd.IntN(3)], Value: scalar()}}
}

// naive evaluates a filter.
func naive(d bson.D, q bson.D) bool {
	for _, e := range q {
		switch e.Key {
		case "$expr":
			if !naiveExpr(d, e.Value.(bson.D)) {
				return false
			}
		case "$and", "$or", "$nor":
			n := 0
			for _, part := range e.Value.(bson.A) {
				if naive(d, part.(bson.D)) {
					n++
				}
			}
			if e.Key == "$and" && n < len(e.Value.(bson.A)) || e.Key == "$or" && n == 0 || e.Key == "$nor" && n > 0 {
				return false
			}
		default:
			if !naiveField(d, strings.Split(e.Key, "."), e.Value.(bson.D)) {
				return false
			}
		}
	}
	return true
}

type noValue struct{}

// valuesAt returns the values at a path: one for each way through the arrays on it.
func valuesAt(v any, path []string) []any {
	if len(path) == 0 {
		return []any{v}
	}
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if e.Key == path[0] {
				return valuesAt(e.Value, path[1:])
			}
		}
	case bson.A:
		var out []any
		for _, x := range v {
			if _, ok := x.(bson.D); ok { // only objects have the next name
				out = append(out, valuesAt(x, path)...)
			}
		}
		return out
	}
	return []any{noValue{}}
}

func naiveField(d bson.D, path []string, cond bson.D) bool {
	ends := valuesAt(d, path)
	var all []any // also the elements of arrays at the end
	for _, v := range ends {
		all = append(all, v)
		if a, ok := v.(bson.A); ok {
			all = append(all, a...)
		}
	}
	for _, c := range cond {
		if !naiveOperator(d, path, ends, all, c) {
			return false
		}
	}
	return true
}

func naiveOperator(d bson.D, path []string, ends, all []any, c bson.E) bool {
	some := func(vs []any, f func(any) bool) bool { return slices.ContainsFunc(vs, f) }
	switch c.Key {
	case "$not":
		return !naiveField(d, path, c.Value.(bson.D))
	case "$exists":
		return some(ends, func(v any) bool { return v != any(noValue{}) }) == c.Value.(bool)
	case "$ne", "$nin", "$in":
		list := bson.A{c.Value}
		if c.Key != "$ne" {
			list = c.Value.(bson.A)
		}
		has := some(all, func(v any) bool { return some(list, func(x any) bool { return naiveCompare("$eq", v, x) }) })
		return has == (c.Key == "$in")
	case "$size":
		return some(ends, func(v any) bool {
			a, ok := v.(bson.A)
			return ok && len(a) == int(c.Value.(int32))
		})
	case "$elemMatch":
		return some(ends, func(v any) bool {
			a, ok := v.(bson.A)
			return ok && some(a, func(x any) bool {
				for _, inner := range c.Value.(bson.D) {
					if !naiveCompare(inner.Key, x, inner.Value) { // also an array in the array is one value
						return false
					}
				}
				return true
			})
		})
	}
	return some(all, func(v any) bool { return naiveCompare(c.Key, v, c.Value) })
}

// naiveStrings compares strings; a test of collations replaces it.
var naiveStrings = strings.Compare

// naiveCompare compares a value with a scalar. Values of other kinds are never equal, less or greater.
func naiveCompare(op string, v, with any) bool {
	number := func(x any) (float64, bool) {
		switch x := x.(type) {
		case int32:
			return float64(x), true
		case float64:
			return x, true
		}
		return 0, false
	}
	r := 0
	switch w := with.(type) {
	case nil:
		if v != nil && v != any(noValue{}) {
			return false
		}
	case string:
		s, ok := v.(string)
		if !ok {
			return false
		}
		r = naiveStrings(s, w)
	default:
		x, ok := number(v)
		y, _ := number(w)
		switch {
		case !ok:
			return false
		case x < y:
			r = -1
		case x > y:
			r = 1
		}
	}
	switch op {
	case "$eq":
		return r == 0
	case "$gt":
		return r > 0
	case "$gte":
		return r >= 0
	case "$lt":
		return r < 0
	case "$lte":
		return r <= 0
	}
	panic(fmt.Sprint("no such operator: ", op))
}
