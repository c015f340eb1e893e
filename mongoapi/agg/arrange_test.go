package agg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

func TestArrange(t *testing.T) {
	const same = ""
	for _, tc := range []struct{ written, want string }{
		{`[{"$match":{"a":1}},{"$sort":{"b":1}},{"$limit":3}]`, same},
		{`[{"$sort":{"b":1}},{"$match":{"a":1}}]`, `[{"$match":{"a":1}},{"$sort":{"b":1}}]`},
		{`[{"$match":{"a":1}},{"$match":{"b":{"$gt":2}}},{"$count":"n"}]`,
			`[{"$match":{"$and":[{"a":1},{"b":{"$gt":2}}]}},{"$count":"n"}]`},
		// Each condition goes as far as it can.
		{`[{"$lookup":{"from":"d","localField":"a","foreignField":"k","as":"d"}},{"$unwind":"$d"},` +
			`{"$match":{"d.v":1,"a":2,"b.c":3}}]`,
			`[{"$match":{"$and":[{"a":2},{"b.c":3}]}},{"$lookup":{"from":"d","localField":"a","foreignField":"k","as":"d"}},` +
				`{"$unwind":"$d"},{"$match":{"d.v":1}}]`},
		{`[{"$unwind":{"path":"$t","includeArrayIndex":"i"}},{"$match":{"i":0}}]`, same},
		{`[{"$unwind":{"path":"$t","includeArrayIndex":"i"}},{"$match":{"t.x":0}}]`, same},
		{`[{"$unwind":{"path":"$t.x","includeArrayIndex":"i"}},{"$match":{"t":0}}]`, same},
		{`[{"$unwind":"$t"},{"$match":{"$and":[{"t":1},{"$or":[{"a":1},{"b":2}]}]}}]`,
			`[{"$match":{"$or":[{"a":1},{"b":2}]}},{"$unwind":"$t"},{"$match":{"t":1}}]`},
		{`[{"$unwind":"$t"},{"$match":{"$or":[{"a":1},{"t":2}]}}]`, same},
		{`[{"$addFields":{"a.b":1}},{"$match":{"a":1}}]`, same},
		{`[{"$addFields":{"a.b":1}},{"$match":{"a.b.c":1}}]`, same},
		{`[{"$set":{"a.b":1}},{"$match":{"a.c":1}}]`, same}, // a may become an object
		{`[{"$set":{"a.b":1}},{"$match":{"b":1}}]`, `[{"$match":{"b":1}},{"$set":{"a.b":1}}]`},
		{`[{"$unset":["a","b"]},{"$match":{"b.c":1}}]`, same},
		{`[{"$unset":"a"},{"$match":{"b":1}}]`, `[{"$match":{"b":1}},{"$unset":"a"}]`},
		{`[{"$project":{"a":1,"n":{"$size":"$t"}}},{"$match":{"a.b":1,"n":2,"c":3}}]`,
			`[{"$match":{"a.b":1}},{"$project":{"a":1,"n":{"$size":"$t"}}},{"$match":{"$and":[{"n":2},{"c":3}]}}]`},
		{`[{"$project":{"a.b":1}},{"$match":{"a.b":1}}]`, same}, // arrays lose their other elements
		{`[{"$project":{"a":0}},{"$match":{"b":1}}]`, `[{"$match":{"b":1}},{"$project":{"a":0}}]`},
		{`[{"$project":{"a":0}},{"$match":{"a":1}}]`, same},
		{`[{"$project":{"a":1}},{"$match":{"_id":1}}]`, `[{"$match":{"_id":1}},{"$project":{"a":1}}]`},
		{`[{"$project":{"_id":0,"a":1}},{"$match":{"_id":1}}]`, same},
		{`[{"$project":{"_id":0}},{"$match":{"a":1}}]`, `[{"$match":{"a":1}},{"$project":{"_id":0}}]`},
		{`[{"$project":{"_id":1}},{"$match":{"a":1}}]`, same},
		// Values that come from other paths.
		{`[{"$project":{"_id":"$x","a":1}},{"$match":{"_id":1}}]`,
			`[{"$match":{"x":1}},{"$project":{"_id":"$x","a":1}}]`},
		{`[{"$project":{"a":"$b"}},{"$match":{"$or":[{"a.c":null},{"$and":[{"a":{"$size":2}}]}]}}]`,
			`[{"$match":{"$or":[{"b.c":null},{"$and":[{"b":{"$size":2}}]}]}},{"$project":{"a":"$b"}}]`},
		{`[{"$set":{"a":"$b","b":"$a"}},{"$match":{"a":1,"b":2,"c":3}}]`,
			`[{"$match":{"$and":[{"b":1},{"a":2},{"c":3}]}},{"$set":{"a":"$b","b":"$a"}}]`},
		{`[{"$set":{"b":"$a"}},{"$unset":"a"},{"$match":{"b":1}}]`,
			`[{"$match":{"a":1}},{"$set":{"b":"$a"}},{"$unset":"a"}]`},
		{`[{"$set":{"b":"$a.c"}},{"$match":{"b":1}}]`, same}, // an array of the elements' values
		{`[{"$set":{"b":"$$ROOT"}},{"$match":{"b":1}}]`, same},
		{`[{"$set":{"b":"$0"}},{"$match":{"b":1}}]`, same},
		{`[{"$set":{"b.c":"$a"}},{"$match":{"b.c":1}}]`, same},
		{`[{"$group":{"_id":"$a","n":{"$sum":1}}},{"$match":{"_id":1,"n":2}}]`,
			`[{"$match":{"a":1}},{"$group":{"_id":"$a","n":{"$sum":1}}},{"$match":{"n":2}}]`},
		{`[{"$group":{"_id":{"x":"$a","y":{"$add":["$b",1]}}}},{"$match":{"_id.x":{"$gte":1,"$in":[3,"x"]},"_id.y":2}}]`,
			`[{"$match":{"a":{"$gte":1,"$in":[3,"x"]}}},{"$group":{"_id":{"x":"$a","y":{"$add":["$b",1]}}}},` +
				`{"$match":{"_id.y":2}}]`},
		{`[{"$sortByCount":"$a"},{"$match":{"_id":"x"}}]`, `[{"$match":{"a":"x"}},{"$sortByCount":"$a"}]`},
		{`[{"$group":{"_id":"$a"}},{"$match":{"_id":null}}]`, same}, // the group of those without a, too
		{`[{"$group":{"_id":"$a"}},{"$match":{"_id":{"$type":"int"}}}]`, same},
		{`[{"$group":{"_id":{"$add":["$a",1]}}},{"$match":{"_id.x":1}}]`, same},
		{`[{"$group":{"_id":{"x":"$a"}}},{"$match":{"_id":1}}]`, same},
		// What reads more than its path stays.
		{`[{"$sort":{"b":1}},{"$match":{"$expr":{"$eq":["$a",1]}}}]`, same},
		{`[{"$sort":{"b":1}},{"$match":{"a":1,"$expr":{"$eq":["$a",1]}}}]`,
			`[{"$match":{"a":1}},{"$sort":{"b":1}},{"$match":{"$expr":{"$eq":["$a",1]}}}]`},
		{`[{"$sort":{"b":1}},{"$match":{"a.0":1}}]`, same}, // 0 may be a name or an index
		{`[{"$match":{"$text":{"$search":"x"}}},{"$sort":{"b":1}},{"$match":{"a":1}},{"$project":{"a":1}},{"$limit":2}]`,
			same},
		// Stages that other documents leave or enter by.
		{`[{"$limit":3},{"$match":{"a":1}}]`, same},
		{`[{"$replaceRoot":{"newRoot":"$a"}},{"$match":{"b":1}}]`, same},
		{`[{"$unionWith":"d"},{"$match":{"b":1}}]`, same},
		// $skip and $limit.
		{`[{"$sort":{"b":1}},{"$project":{"a":1}},{"$skip":2},{"$limit":3}]`,
			`[{"$sort":{"b":1}},{"$skip":2},{"$limit":3},{"$project":{"a":1}}]`},
		{`[{"$lookup":{"from":"d","localField":"a","foreignField":"k","as":"d"}},{"$limit":3}]`,
			`[{"$limit":3},{"$lookup":{"from":"d","localField":"a","foreignField":"k","as":"d"}}]`},
		{`[{"$unwind":"$t"},{"$limit":3}]`, same},
		{`[{"$match":{"a":1}},{"$limit":3}]`, same},
		{`[{"$limit":3},{"$skip":1}]`, same},
		{`[{"$sort":{"b":1}},{"$nothing":{}},{"$match":{"a":1}}]`, same},
		{`[{"$sort":{"b":1}},5,{"$match":{"a":1}}]`, same},
		{`[{"$sort":{"b":1}},{"$match":5}]`, same},
	} {
		want := tc.want
		if want == same {
			want = tc.written
		}
		got := mtest.Text(value.MakeArray(arrange(value.Elements(mtest.Value(t, tc.written)))))
		if got != mtest.Text(mtest.Value(t, want)) {
			t.Errorf("%s\nis arranged as %s", tc.written, got)
		}
	}
}

// A pipeline that is arranged has the results, or the error, of the one that is written.
func TestArrangedIsEqual(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	path := func() string { return pick("a", "b", "c", "a.b", "a.c", "c.b", "_id", "d", "d.k") }
	val := func() string {
		return pick("1", "1.0", "2", `"x"`, "null", "[1,2]", `{"b":1}`, `[{"b":1},{"b":2,"c":[1]}]`, "[]")
	}
	cond := func() string {
		return fmt.Sprintf(`%q:%s`, path(), pick(val(), fmt.Sprintf(`{"$gt":%s}`, val()), `{"$exists":false}`,
			`{"$elemMatch":{"b":1}}`, `{"$ne":1}`, `{"$in":[1,null,"x"]}`, `{"$not":{"$size":2}}`, `{"$type":"array"}`))
	}
	filter := func() string {
		return pick("{"+cond()+"}", "{"+cond()+","+cond()+"}", `{"$or":[{`+cond()+`},{`+cond()+`}]}`,
			`{"$and":[{`+cond()+`},{"$nor":[{`+cond()+`}]}],`+cond()+`}`, `{"$expr":{"$gt":["$a",1]},`+cond()+`}`)
	}
	stage := func() string {
		return pick(`{"$match":`+filter()+`}`, `{"$match":`+filter()+`}`, `{"$match":`+filter()+`}`,
			`{"$sort":{"a":1}}`, `{"$sort":{"c":-1,"_id":1}}`, `{"$limit":5}`, `{"$skip":2}`,
			`{"$unwind":"$`+path()+`"}`, `{"$unwind":{"path":"$a","includeArrayIndex":"`+path()+`"}}`,
			`{"$unwind":{"path":"$b","preserveNullAndEmptyArrays":true}}`,
			`{"$project":{"`+path()+`":1}}`, `{"$project":{"`+path()+`":0}}`, `{"$project":{"_id":0,"a":1,"c":"$b"}}`,
			`{"$project":{"b":{"c":"$a"},"a":true}}`,
			`{"$set":{"`+path()+`":`+pick("1", `"$b"`, `{"$add":["$a",1]}`)+`}}`,
			`{"$unset":["`+path()+`"]}`, `{"$replaceRoot":{"newRoot":{"a":"$b","_id":"$_id"}}}`,
			`{"$lookup":{"from":"d","localField":"`+path()+`","foreignField":"k","as":"`+path()+`"}}`,
			`{"$graphLookup":{"from":"d","startWith":"$a","connectFromField":"k","connectToField":"v","as":"d"}}`,
			`{"$group":{"_id":"$`+path()+`","b":{"$sum":1}}}`, `{"$sortByCount":"$b"}`,
			`{"$group":{"_id":{"b":"$a","c":"$`+path()+`"},"a":{"$first":"$b"}}}`,
			`{"$project":{"a":"$`+path()+`","`+pick("b", "_id", "c.b")+`":"$`+path()+`"}}`,
			`{"$set":{"a":"$`+path()+`","b":"$a"}}`, `{"$unionWith":"d"}`, `{"$redact":"$$KEEP"}`)
	}
	h := &memHost{colls: map[string][]value.Value{}}
	for i := range 40 {
		h.colls["c"] = append(h.colls["c"], mtest.Value(t, fmt.Sprintf(`{"_id":%d,%q:%s,"b":%s,"c":%s}`, i%17,
			pick("a", "d", "e"), val(), val(), val())))
		h.colls["d"] = append(h.colls["d"], mtest.Value(t, fmt.Sprintf(`{"_id":%d,"k":%s,"v":%s}`, i, val(), val())))
	}
	arranged, full := 0, 0
	for range 8_000 {
		var list []string
		for range 2 + rnd.IntN(4) {
			list = append(list, stage())
		}
		text := "[" + strings.Join(list, ",") + "]"
		specs := value.Elements(mtest.Value(t, text))
		better := arrange(specs)
		if &better[0] == &specs[0] {
			continue
		}
		arranged++
		want, wantErr := runSpecs(h, specs)
		got, err := runSpecs(h, better)
		if wantErr != nil { // fewer documents may have no error
			continue
		}
		if full += min(1, len(want)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s\nas %s\nhas %s\nnot %s\n%v", text, mtest.Text(value.MakeArray(better)), got, want, err)
		}
	}
	if t.Logf("%d pipelines were arranged, %d of them had results", arranged, full); full < 500 {
		t.Error("too few to say something")
	}
}

// runSpecs runs a pipeline in the order of its stages.
func runSpecs(h *memHost, specs []value.Value) (texts []string, err error) {
	p, err := compile(specs, Options{})
	if err != nil {
		return nil, err
	}
	x := &Exec{Env: mtest.Env(), Host: h}
	it, err := p.RunAll(x, NewSlice(h.colls["c"]))
	if err != nil {
		return nil, err
	}
	docs, err := all(it, x.hold("test"))
	for _, d := range docs {
		texts = append(texts, mtest.Text(d))
	}
	return texts, err
}
