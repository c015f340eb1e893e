package agg

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// counted counts the documents that are read. Document fails has an error.
type counted struct {
	docs  []value.Value
	n     int
	fails int // 0: none
}

var errCounted = errors.New("a document can't be read")

func (c *counted) Next() (value.Value, bool, error) {
	if c.n++; c.n == c.fails {
		return value.Undef(), false, errCounted
	}
	if c.n > len(c.docs) {
		return value.Undef(), false, nil
	}
	return c.docs[c.n-1], true, nil
}

func (c *counted) Close() {}

// A $facet gives what its pipelines give alone. It reads each document once, and none when no pipeline asks.
func TestFacet(t *testing.T) {
	h := &memHost{colls: map[string][]value.Value{}}
	for i := range 500 {
		d := fmt.Sprintf(`{"_id":%d,"a":%d,"t":[%d,%d]}`, i, i%7, i%3, i%5)
		h.colls["c"] = append(h.colls["c"], mtest.Value(t, d))
	}
	for _, tc := range []struct {
		parts []string
		reads int
	}{
		{[]string{`[{"$limit":2}]`, `[{"$skip":1},{"$limit":1}]`}, 2},
		{[]string{`[]`, `[{"$limit":3},{"$project":{"a":1}}]`}, 501},
		{[]string{`[{"$sort":{"a":-1}},{"$skip":2},{"$limit":5}]`, `[{"$count":"n"}]`,
			`[{"$unwind":"$t"},{"$sortByCount":"$t"}]`, `[{"$match":{"a":3}},{"$sort":{"_id":-1}},{"$limit":2}]`,
			`[{"$group":{"_id":"$a","n":{"$sum":1},"most":{"$max":"$t"}}},{"$sort":{"n":-1,"_id":1}},{"$limit":4}]`,
			`[{"$match":{"a":90}},{"$count":"n"}]`, `[{"$bucketAuto":{"groupBy":"$a","buckets":2}}]`,
			`[{"$set":{"b":{"$map":{"input":"$t","in":{"$add":["$$this","$a"]}}}}},{"$match":{"b":9}}]`,
			`[{"$lookup":{"from":"c","localField":"a","foreignField":"_id","as":"x"}},{"$skip":498}]`}, 501},
	} {
		var fields, want []string
		for i, part := range tc.parts {
			fields = append(fields, fmt.Sprintf(`"p%d":%s`, i, part))
			docs, err := run(h, "c", mtest.Value(t, part))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf(`"p%d":%s`, i, mtest.Text(value.MakeArray(docs))))
		}
		p, err := Compile(mtest.Value(t, `[{"$facet":{`+strings.Join(fields, ",")+`}}]`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		src := &counted{docs: h.colls["c"]}
		x := &Exec{Env: mtest.Env(), Host: h}
		it, err := p.RunAll(x, src)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := all(it, x.hold("test"))
		if err != nil || len(docs) != 1 || mtest.Text(docs[0]) != "{"+strings.Join(want, ",")+"}" {
			t.Errorf("%s\ngive %v (%v)\nnot  %s", tc.parts, docs, err, want)
		}
		if src.n != tc.reads {
			t.Errorf("%s: %d reads, want %d", tc.parts, src.n, tc.reads)
		}
	}
}

// An error of a document, or of one of the pipelines, ends a $facet.
func TestFacetFails(t *testing.T) {
	docs := value.Elements(mtest.Value(t, `[{"_id":1,"a":1},{"_id":2,"a":0},{"_id":3}]`))
	for _, fails := range []int{0, 1, 3} {
		p, err := Compile(mtest.Value(t, `[{"$facet":{"n":[{"$count":"n"}],"b":[{"$set":{"x":{"$divide":[1,"$a"]}}}],`+
			`"s":[{"$sort":{"a":1}}]}}]`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		src := &counted{docs: docs, fails: fails}
		it, err := p.RunAll(&Exec{Env: mtest.Env(), Host: &memHost{}}, src)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := it.Next()
		if ok || err == nil || (fails == 1) != errors.Is(err, errCounted) || src.n > 2 {
			t.Errorf("document %d fails: %v after %d reads", fails, err, src.n)
		}
		it.Close()
	}
}
