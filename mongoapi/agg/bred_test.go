package agg

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// FuzzBredPipeline: no pipeline that is bred from those of testdata panics, and each gives what its stages give one by
// one: that the lead is pushed down, and stages are joined, changes nothing. The order of evaluation may differ, so
// errors are not compared.
func FuzzBredPipeline(f *testing.F) {
	p := mtest.NewPool(f, isPipeline, "testdata/*")
	docs := map[string][]value.Value{}
	for name, texts := range map[string][]string{
		"c": {`{"_id":1,"v":[1,2],"w":[0,1],"a":[1,{"b":2},"x"],"n":5,"d":{"$date":"2026-01-02T00:00:00Z"},"g":"x"}`,
			`{"_id":2}`, `{"_id":3,"n":1.5,"a":{"b":[1,null]},"g":"y","k":1}`,
			`{"_id":4,"n":{"$numberDecimal":"7"},"a":[]}`,
			`{"_id":"5","n":null,"g":"x","d":{"$date":"2025-12-31T23:59:59Z"},"v":[0,1]}`},
		"d": {`{"_id":10,"k":1,"v":"one"}`, `{"_id":11,"k":2,"v":"two"}`, `{"_id":12}`}} {
		for _, text := range texts {
			docs[name] = append(docs[name], mtest.Value(f, text))
		}
	}
	host := func() *memHost {
		h := &memHost{colls: map[string][]value.Value{}}
		for name, list := range docs {
			h.colls[name] = list
		}
		return h
	}
	for i := range 400 {
		f.Add([]byte{byte(i >> 8), byte(i), 1, byte(i), byte(7 * i), byte(11 * i), byte(13 * i)})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		pipeline, ok := p.Breed(b)
		if !ok {
			return
		}
		got, err := run(host(), "c", pipeline)
		if err != nil || !dividable(pipeline) {
			return
		}
		h := host()
		h.colls["now"] = h.colls["c"]
		for _, s := range value.Elements(pipeline) {
			one, err := run(h, "now", value.MakeArray([]value.Value{s}))
			if err != nil {
				return
			}
			h.colls["now"] = slices.Clone(one)
		}
		if want := h.colls["now"]; lines(got) != lines(want) {
			t.Fatalf("%s\ngives %s\nwant  %s", mtest.Text(pipeline), lines(got), lines(want))
		}
	})
}

func isPipeline(v any) bool {
	a, ok := v.(bson.A)
	if !ok || len(a) == 0 {
		return false
	}
	d, ok := a[0].(bson.D)
	return ok && len(d) == 1 && strings.HasPrefix(d[0].Key, "$")
}

// dividable reports whether the stages of a pipeline can run one by one: not those that keep something beside the
// documents, that write, or that read a collection by its name.
func dividable(pipeline value.Value) bool {
	text := mtest.Text(pipeline)
	for _, word := range []string{`"$meta"`, `"$out"`, `"$merge"`, `"$sample"`, `"$search"`, `"$vectorSearch"`,
		`"$geoNear"`, `"$text"`, `"now"`} {
		if strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func lines(docs []value.Value) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString(mtest.Text(d) + "\n")
	}
	return b.String()
}
