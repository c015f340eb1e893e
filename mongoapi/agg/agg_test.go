package agg

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// memHost keeps collections in memory.
type memHost struct {
	Host
	colls map[string][]value.Value
}

func (h *memHost) Find(coll string, q Lead, e *expr.Env) (Iter, error) {
	return q.apply(&Exec{Env: e, Host: h}, NewSlice(h.colls[coll])), nil
}

// What a server tells about itself is nothing.
func (h *memHost) SearchIndexes(value.Value) ([]value.Value, error)       { return nil, nil }
func (h *memHost) CollStats(value.Value) ([]value.Value, error)           { return nil, nil }
func (h *memHost) IndexStats() ([]value.Value, error)                     { return nil, nil }
func (h *memHost) ListCatalog() ([]value.Value, error)                    { return nil, nil }
func (h *memHost) CurrentOp(Ops) ([]value.Value, error)                   { return nil, nil }
func (h *memHost) Sessions(_ bool, _ SessionUsers) ([]value.Value, error) { return nil, nil }

func (h *memHost) Write(w WriteSpec, docs Iter) error {
	for {
		d, ok, err := docs.Next()
		if !ok || err != nil {
			return err
		}
		h.colls[w.Coll] = append(h.colls[w.Coll], d.Clone())
	}
}

// testVectors returns the index "near" on v, with two dimensions and filters on _id and n, and the one on w, of the
// service's form.
func testVectors(_, index, path string) (*VectorIndex, error) {
	switch {
	case index == "near":
		return &VectorIndex{Fields: []VectorField{{Path: "v", Dims: 2}}, Filters: []string{"_id", "n"}}, nil
	case path == "w":
		return &VectorIndex{Fields: []VectorField{{Path: "w", Dims: 2, Metric: vector.Squared}}, Cosmos: true}, nil
	}
	return nil, nil
}

func run(h *memHost, coll string, pipeline value.Value) ([]value.Value, error) {
	p, err := Compile(pipeline, Options{Vectors: testVectors})
	if err != nil {
		return nil, err
	}
	x := &Exec{Env: mtest.Env(), Host: h}
	it, err := p.RunAll(x, NewSlice(h.colls[coll]))
	if err != nil {
		return nil, err
	}
	return all(it, x.hold("test"))
}

// TestPipelines runs testdata. "docs <name>" fills a collection; "run <name>" runs a pipeline on it; "eval": a
// document, then expressions on it.
func TestPipelines(t *testing.T) {
	h := &memHost{colls: map[string][]value.Value{}}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := mtest.Lines(d.Input)
			var b strings.Builder
			switch d.Cmd {
			case "docs":
				h.colls[d.CmdArgs[0].Key] = nil
				for _, l := range lines {
					h.colls[d.CmdArgs[0].Key] = append(h.colls[d.CmdArgs[0].Key], mtest.Value(t, l))
				}
			case "run":
				docs, err := run(h, d.CmdArgs[0].Key, mtest.Value(t, strings.Join(lines, "")))
				for _, v := range docs {
					b.WriteString(mtest.Text(v) + "\n")
				}
				if err != nil {
					b.WriteString(mtest.Error(err) + "\n")
				}
			case "eval":
				doc := mtest.Value(t, lines[0])
				for _, l := range lines[1:] {
					b.WriteString(eval(t, doc, l) + "\n")
				}
			}
			return b.String()
		})
	})
}

func eval(t *testing.T, doc value.Value, text string) string {
	x, err := expr.Compile(mtest.Value(t, text), nil)
	if err != nil {
		return mtest.Error(err)
	}
	v, err := x(mtest.Env().With(doc))
	if err != nil {
		return mtest.Error(err)
	}
	return mtest.Text(v)
}

// FuzzPipeline: no pipeline makes the compiler or its run panic.
func FuzzPipeline(f *testing.F) {
	docs := []value.Value{mtest.Value(f, `{"_id":1,"v":[1,2],"w":[0,1],"a":[1,{"b":2},"x"],`+
		`"n":5,"d":{"$date":"2026-01-02T00:00:00Z"}}`),
		mtest.Value(f, `{"_id":2}`)}
	for _, p := range []string{`[{"$group":{"_id":"$a","n":{"$sum":"$n"}}},{"$sort":{"n":-1}}]`,
		`[{"$project":{"x":{"$map":{"input":"$a","in":"$$this"}}}}]`,
		`[{"$unwind":"$a"},{"$match":{"a":1}},{"$count":"n"}]`, `[{"$addFields":{"y":{"$year":"$d"},"a.b":1}}]`,
		`[{"$facet":{"a":[{"$limit":1}],"b":[{"$skip":1}]}}]`,
		`[{"$setWindowFields":{"partitionBy":"$k","sortBy":{"d":1},"output":{"x":{"$sum":"$n","window":{"range":[-1,2],` +
			`"unit":"day"}},"r":{"$rank":{}},"s":{"$shift":{"output":"$n","by":1}}}}}]`,
		`[{"$fill":{"sortBy":{"n":1},"output":{"n":{"method":"linear"},"a":{"value":1}}}}]`,
		`[{"$bucketAuto":{"groupBy":"$n","buckets":2}},{"$redact":"$$DESCEND"}]`,
		`[{"$vectorSearch":{"index":"near","path":"v","queryVector":[1,0],"exact":true,"limit":2,"filter":{"$or":` +
			`[{"n":{"$not":{"$in":[1]}}},{"_id":1}]}}},{"$sort":{"s":{"$meta":"vectorSearchScore"}}}]`,
		`[{"$search":{"cosmosSearch":{"path":"w","vector":[1,0],"k":2,"filter":{"n":5}}}},` +
			`{"$project":{"s":{"$meta":"searchScore"}}}]`,
		`[{"$graphLookup":{"from":"c","startWith":"$a","connectFromField":"a","connectToField":"n","as":"x"}}]`} {
		f.Add([]byte(mtest.Value(f, `{"p":`+p+`}`).Bytes()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !mtest.Valid(b) {
			return
		}
		_, _ = run(&memHost{colls: map[string][]value.Value{"c": docs}}, "c", value.ObjectOf(b).Get("p"))
	})
}
