package mongoapi

import (
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/wire"
)

// sendTo sends a command to a connection and returns its reply, which may be an error.
func sendTo(t *testing.T, c *conn, d bson.D) bson.Raw {
	t.Helper()
	return answerRaw(t, c, wire.OpMsg, opMsg(t, d)[wire.HeaderSize:])
}

// must is sendTo for a command that succeeds.
func must(t *testing.T, c *conn, d bson.D) bson.Raw {
	t.Helper()
	r := sendTo(t, c, d)
	if ok, _ := r.Lookup("ok").AsInt64OK(); ok != 1 || r.Lookup("writeErrors").Type != 0 {
		t.Fatalf("%v: %v", d, r)
	}
	return r
}

// numbersOf runs a command that returns a cursor, reads it to its end, and returns the documents' field n.
func numbersOf(t *testing.T, c *conn, cmd bson.D) (out []int64) {
	t.Helper()
	take := func(r bson.Raw, batch string) int64 {
		vs, err := r.Lookup("cursor", batch).Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			out = append(out, v.Document().Lookup("n").AsInt64())
		}
		return r.Lookup("cursor", "id").AsInt64()
	}
	for id := take(must(t, c, cmd), "firstBatch"); id != 0; {
		id =
			take(
				must(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"},
					{Key: "batchSize", Value: 7}}), "nextBatch")
	}
	return out
}

// find and aggregate without a sort return documents in the order of insertion. $natural returns them exactly in this
// order or its reverse.
func TestNaturalOrder(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	var made []int64
	for n := range 100 {
		i := int64(n * 37 % 100)
		must(
			t, c, bson.D{{Key: "insert", Value: "c"},
				{Key: "documents", Value: bson.A{
					bson.D{{Key: "_id", Value: fmt.Sprint(i)}, {Key: "n", Value: i}, {Key: "g", Value: i % 4}}}}})
		made = append(made, i)
	}
	for i := int64(0); i < 100; i += 10 {
		must(
			t, c, bson.D{{Key: "delete", Value: "c"},
				{
					Key: "deletes", Value: bson.A{
						bson.D{{Key: "q", Value: bson.D{{Key: "n", Value: i}}}, {Key: "limit", Value: 0}}}}})
		must(
			t, c, bson.D{{Key: "update", Value: "c"},
				{
					Key: "updates", Value: bson.A{
						bson.D{{Key: "q", Value: bson.D{{Key: "n", Value: i + 3}}},
							{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}}}}})
	}
	made = slices.DeleteFunc(made, func(n int64) bool { return n%10 == 0 })
	wants := func(takes func(n int64) bool) []int64 {
		return slices.DeleteFunc(slices.Clone(made), func(n int64) bool { return !takes(n) })
	}
	reversed := func(in []int64) []int64 {
		in = slices.Clone(in)
		slices.Reverse(in)
		return in
	}
	g2 := wants(func(n int64) bool { return n%4 == 2 })
	natural := func(n int) bson.D { return bson.D{{Key: "$natural", Value: n}} }
	find := func(more ...bson.E) bson.D { return append(bson.D{{Key: "find", Value: "c"}}, more...) }
	filter := bson.E{Key: "filter", Value: bson.D{{Key: "g", Value: 2}}}
	pipeline := func(stages ...any) bson.D {
		return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A(stages)},
			{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 7}}}}
	}
	for name, x := range map[string]struct {
		cmd  bson.D
		want []int64
	}{
		"find":   {find(), made},
		"pages":  {find(bson.E{Key: "batchSize", Value: 7}), made},
		"filter": {find(filter, bson.E{Key: "batchSize", Value: 7}), g2},
		"scan": {
			find(bson.E{Key: "filter", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$mod", Value: bson.A{2, 0}}}}}}),
			wants(func(n int64) bool { return n%2 == 0 })},
		"limit":    {find(bson.E{Key: "skip", Value: 5}, bson.E{Key: "limit", Value: 9}), made[5:14]},
		"forwards": {find(bson.E{Key: "sort", Value: natural(1)}, bson.E{Key: "batchSize", Value: 7}), made},
		"backwards": {find(bson.E{Key: "sort", Value: natural(-1)}, bson.E{Key: "batchSize", Value: 7}),
			reversed(made)},
		"newest": {find(bson.E{Key: "sort", Value: natural(-1)}, bson.E{Key: "limit", Value: 1}),
			reversed(made)[:1]},
		"backwards, some": {find(filter, bson.E{Key: "sort", Value: natural(-1)}, bson.E{Key: "batchSize", Value: 7}),
			reversed(g2)},
		"hint": {find(bson.E{Key: "hint", Value: natural(-1)}), reversed(made)},
		"aggregate": {
			pipeline(bson.D{{Key: "$match", Value: bson.D{{Key: "g", Value: 2}}}},
				bson.D{{Key: "$project", Value: bson.D{{Key: "n", Value: 1}}}}), g2},
		"equal in a sort": {
			pipeline(bson.D{{Key: "$set", Value: bson.D{{Key: "same", Value: 1}}}},
				bson.D{{Key: "$sort", Value: bson.D{{Key: "same", Value: 1}}}}), made},
		"equal in a sort with a limit": {
			pipeline(bson.D{{Key: "$set", Value: bson.D{{Key: "same", Value: 1}}}},
				bson.D{{Key: "$sort", Value: bson.D{{Key: "same", Value: -1}}}}, bson.D{{Key: "$limit", Value: 11}}),
			made[:11]},
		"aggregate, limit": {pipeline(bson.D{{Key: "$limit", Value: 11}}), made[:11]},
		"aggregate, hint": {
			append(pipeline(bson.D{{Key: "$match", Value: bson.D{}}}), bson.E{Key: "hint", Value: natural(-1)}),
			reversed(made)},
		"first of all": {
			pipeline(
				bson.D{
					{
						Key: "$group", Value: bson.D{
							{Key: "_id", Value: nil},
							{Key: "n", Value: bson.D{{Key: "$first", Value: "$n"}}}}}}), made[:1]},
	} {
		if got := numbersOf(t, c, x.cmd); !slices.Equal(got, x.want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, x.want)
		}
	}
	last := must(t, c, bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}},
		{Key: "sort", Value: natural(-1)}, {Key: "remove", Value: true}})
	if n := last.Lookup("value", "n").AsInt64(); n != made[len(made)-1] {
		t.Errorf("findAndModify took %d, not the newest", n)
	}
	if r := sendTo(t, c, find(bson.E{Key: "sort", Value: append(natural(1), bson.E{Key: "n", Value: 1})})); r.Lookup(
		"code").AsInt64() != 2 {
		t.Errorf("a compound sort with $natural: %v", r)
	}
}

// A command that changes or removes one document without a sort takes the oldest match: a collection used as a queue is
// first in, first out.
func TestOneOfManyIsTheOldest(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	for n := range 60 {
		i := n * 37 % 60
		must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: fmt.Sprint(i)}, {Key: "n", Value: n}, {Key: "s", Value: "new"}}}}})
	}
	isNew := bson.D{{Key: "s", Value: "new"}}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "s", Value: "old"}}}}
	for next := 0; next < 60; {
		for name, take := range map[string]func(){
			"findAndModify": func() {
				must(t, c, bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: isNew},
					{Key: "update", Value: set}})
			},
			"findAndModify that removes": func() {
				must(t, c, bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: isNew},
					{Key: "remove", Value: true}})
			},
			"update": func() {
				must(
					t, c, bson.D{{Key: "update", Value: "c"},
						{Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: isNew}, {Key: "u", Value: set}}}}})
			},
			"delete": func() {
				must(
					t, c, bson.D{{Key: "delete", Value: "c"},
						{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: isNew}, {Key: "limit", Value: 1}}}}})
			},
		} {
			take()
			next++
			got := numbersOf(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: isNew}})
			if len(got) != 60-next || len(got) > 0 && got[0] != int64(next) {
				t.Fatalf("%s: %d are left, want %d; the first are %v, want %d", name, len(got), 60-next,
					got[:min(3, len(got))], next)
			}
		}
	}
}
