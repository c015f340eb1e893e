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

// TestCollatedFilters: random filters, sorts and counts under a collation give what a naive evaluation gives, in a
// collection without any index, in one with the automatic index, in one with declared indexes under the collation, and
// in one that has it as its default. Half of the documents have only strings, numbers and missing fields, for which an
// index gives the order; the others have all values.
func TestCollatedFilters(t *testing.T) {
	for _, depth := range []int{0, 2} {
		t.Run(fmt.Sprint("depth ", depth), func(t *testing.T) { testCollatedFilters(t, depth) })
	}
}

// english is {locale: "en", strength: 2}: case doesn't count, accents do.
var english = bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}

// letters are the strings of the test, in the order of the collation; those of one word are equal.
var letters = strings.Fields("éÉ ǒǑ pP qQ rR")

func letterRank(s string) int {
	return slices.IndexFunc(letters, func(same string) bool { return strings.Contains(same, s) })
}

func testCollatedFilters(t *testing.T, depth int) {
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
	rnd := rand.New(rand.NewPCG(9, uint64(depth)))
	// word replaces the strings of a value or a filter by letters.
	var word func(v any) any
	word = func(v any) any {
		switch v := v.(type) {
		case string:
			all := []rune(strings.Join(letters, ""))
			return string(all[rnd.IntN(len(all))])
		case bson.A:
			for i := range v {
				v[i] = word(v[i])
			}
		case bson.D:
			for i := range v {
				v[i].Value = word(v[i].Value)
			}
		case nil:
			if depth == 0 {
				return "p"
			}
		}
		return v
	}
	docs := map[int]bson.D{}
	var list bson.A
	for i := range 300 {
		d := bson.D{{Key: "_id", Value: i}}
		array := false // the name before has one: the compound indexes below refuse another one beside it
		for _, name := range []string{"a", "b", "c"} {
			if rnd.IntN(6) > 0 {
				v := word(randomValue(rnd, depth))
				if _, ok := v.(bson.D); ok && depth == 0 {
					v = int32(7)
				}
				_, isArray := v.(bson.A)
				if array && isArray {
					v, isArray = int32(7), false
				}
				array = isArray
				d = append(d, bson.E{Key: name, Value: v})
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
	index := func(coll bson.D, keys ...string) bson.D {
		d := bson.D{}
		for _, k := range keys {
			d = append(d, bson.E{Key: k, Value: 1})
		}
		ix := bson.D{{Key: "key", Value: d}, {Key: "name", Value: strings.Join(keys, "_") + fmt.Sprint(len(coll))}}
		if coll != nil {
			ix = append(ix, bson.E{Key: "collation", Value: coll})
		}
		return ix
	}
	french := bson.D{{Key: "locale", Value: "fr"}}
	must(bson.D{{Key: "createIndexes", Value: "declared"}, {Key: "indexes", Value: bson.A{index(english, "a"),
		index(english, "b", "c"), index(nil, "a", "b"), index(french, "c")}}})
	must(bson.D{{Key: "create", Value: "default"}, {Key: "collation", Value: english}})
	must(bson.D{{Key: "createIndexes", Value: "default"}, {Key: "indexes", Value: bson.A{index(nil, "a"),
		index(nil, "c", "b")}}})
	colls := []string{"none", "auto", "declared", "default"}
	for _, coll := range colls {
		must(bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: list}})
	}
	read := func(coll string, cmd bson.D) (ids []int) {
		if coll != "default" {
			cmd = append(cmd, bson.E{Key: "collation", Value: english})
		}
		r, batch := must(cmd), "firstBatch"
		for {
			vs, err := r.Lookup("cursor", batch).Array().Values()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range vs {
				ids = append(ids, int(v.Document().Lookup("_id").Int32()))
			}
			id := r.Lookup("cursor", "id").Int64()
			if id == 0 {
				return ids
			}
			r, batch = must(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: coll},
				{Key: "batchSize", Value: 9}}), "nextBatch"
		}
	}
	defer func(f func(a, b string) int) { naiveStrings = f }(naiveStrings)
	naiveStrings = func(a, b string) int { return letterRank(a) - letterRank(b) }
	found := 0
	for n := range 120 {
		q := word(randomFilter(rnd, 2)).(bson.D)
		var want []int
		for i := range len(docs) {
			if naive(docs[i], q) {
				want = append(want, i)
			}
		}
		found += len(want)
		sort := bson.D{}
		paths := [][]string{{"a"}, {"c"}, nil, {"b", "c"}, {"a", "b"}, {"c", "b"}}
		if depth > 0 { // no order has two arrays
			paths = paths[:3]
		}
		for _, p := range paths[rnd.IntN(len(paths))] {
			sort = append(sort, bson.E{Key: p, Value: 1 - 2*rnd.IntN(2)})
		}
		var first []int
		for _, coll := range colls {
			got := read(coll, bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: q}, {Key: "sort", Value: sort},
				{Key: "batchSize", Value: 1 + rnd.IntN(50)}})
			if first == nil {
				first = got
			}
			if len(sort) > 0 && !slices.Equal(got, first) {
				t.Fatalf("%d, %s: %v by %v\ngives %v\nwithout an index %v", n, coll, q, sort, got, first)
			}
			if got = slices.Sorted(slices.Values(got)); !slices.Equal(got, want) {
				t.Fatalf("%d, %s: %v\ngives %v\nwant  %v", n, coll, q, got, want)
			}
			count := bson.D{{Key: "count", Value: coll}, {Key: "query", Value: q}}
			if coll != "default" {
				count = append(count, bson.E{Key: "collation", Value: english})
			}
			if n := must(count).Lookup("n").Int32(); int(n) != len(want) {
				t.Fatalf("%s: count of %v is %d, not %d", coll, q, n, len(want))
			}
			stages := bson.A{bson.D{{Key: "$match", Value: q}},
				bson.D{{Key: "$sort", Value: append(slices.Clone(sort), bson.E{Key: "_id", Value: 1})}}}
			got = read(coll, bson.D{{Key: "aggregate", Value: coll}, {Key: "pipeline", Value: stages},
				{Key: "cursor", Value: bson.D{}}})
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("%d, %s: the pipeline for %v\ngives %v\nwant  %v", n, coll, q, got, want)
			}
		}
	}
	if found < 4_000 {
		t.Errorf("only %d documents were found in all", found)
	}
}
