package agg

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// files is a space for files. At the end of the test it must be empty.
func files(t *testing.T, o spill.Options) *spill.Space {
	t.Helper()
	s, err := spill.Open(filepath.Join(t.TempDir(), "spill"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.Files() != 0 || s.Used() != 0 {
			t.Errorf("%d files with %d bytes are left", s.Files(), s.Used())
		}
	})
	return s
}

// runWith runs a pipeline with a budget and a space for files, which may be nil.
func runWith(h *memHost, coll string, pipeline value.Value, b *budget.Budget, s *spill.Space) ([]value.Value, error) {
	p, err := Compile(pipeline, Options{})
	if err != nil {
		return nil, err
	}
	e := mtest.Env()
	e.Run = expr.NewRun(context.Background(), b)
	e.Run.Spill(s)
	defer e.Run.Close()
	it, err := p.RunAll(&Exec{Env: e, Host: h}, NewSlice(h.colls[coll]))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out []value.Value
	for {
		d, ok, err := it.Next()
		if !ok || err != nil {
			return out, err
		}
		out = append(out, d.Clone())
	}
}

// texts returns the documents as text. After a $group, which promises no order, they are sorted.
func texts(docs []value.Value, grouped bool) (out []string) {
	for _, d := range docs {
		out = append(out, mtest.Text(d))
	}
	if grouped {
		slices.Sort(out)
	}
	return out
}

// Every pipeline of the corpus has the same result when its sorts and groups write each document to its own run.
func TestPipelinesSpilled(t *testing.T) {
	s := files(t, spill.Options{})
	h := &memHost{colls: map[string][]value.Value{}}
	spilled := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := mtest.Lines(d.Input)
			switch d.Cmd {
			case "docs":
				h.colls[d.CmdArgs[0].Key] = nil
				for _, l := range lines {
					h.colls[d.CmdArgs[0].Key] = append(h.colls[d.CmdArgs[0].Key], mtest.Value(t, l))
				}
			case "run":
				text := strings.Join(lines, "")
				p, coll := mtest.Value(t, text), d.CmdArgs[0].Key
				want, wantErr := runWith(h, coll, p, nil, nil)
				b := budget.New(1, 1)
				before := s.Written()
				got, err := runWith(h, coll, p, b, s)
				if status.Is(err, status.MemoryLimit) { // of a stage that must keep its documents
					break
				}
				if s.Written() > before {
					spilled++
				}
				if b.Used() != 0 {
					t.Errorf("%s: %d bytes are still charged", text, b.Used())
				}
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%s: the error is %v, want %v", text, err, wantErr)
				}
				grouped := strings.Contains(text, "$group") || strings.Contains(text, "$sortByCount") ||
					strings.Contains(text, "$bucket")
				if a, b := texts(got, grouped), texts(want, grouped); !slices.Equal(a, b) {
					t.Errorf("%s:\n got %v\nwant %v", text, a, b)
				}
			}
			return d.Expected
		})
	})
	if spilled < 8 {
		t.Errorf("%d pipelines have spilled", spilled)
	}
}

// many is a collection of n documents, in which k has three quarters as many values.
func many(t *testing.T, n int) *memHost {
	h := &memHost{colls: map[string][]value.Value{}}
	for i := range n {
		h.colls["c"] = append(h.colls["c"], mtest.Value(t, fmt.Sprintf(`{"_id":%d,"k":"key %d","n":%d}`,
			i, i*7919%(n*3/4), i)))
	}
	return h
}

// Accumulators have the same result over groups in several runs, in which most groups occur more than once.
func TestAccumulatorsSpilled(t *testing.T) {
	h := many(t, 3000)
	p := mtest.Value(t, `[{"$group":{"_id":{"$mod":["$n",500]},"sum":{"$sum":"$n"},"avg":{"$avg":"$n"},
		"first":{"$first":"$k"},"last":{"$last":"$k"},"max":{"$max":"$k"},"min":{"$min":"$n"},"push":{"$push":"$k"},
		"set":{"$addToSet":{"$mod":["$n",2]}},"merged":{"$mergeObjects":"$$ROOT"},"count":{"$count":{}},
		"dev":{"$stdDevPop":"$n"},"samp":{"$stdDevSamp":"$n"},
		"firstN":{"$firstN":{"n":2,"input":"$n"}},"lastN":{"$lastN":{"n":2,"input":"$n"}},
		"maxN":{"$maxN":{"n":2,"input":"$n"}},"minN":{"$minN":{"n":2,"input":"$n"}},
		"top":{"$top":{"sortBy":{"n":-1},"output":"$k"}},"bottomN":{"$bottomN":{"n":2,"sortBy":{"n":1},"output":"$n"}}
		}},{"$sort":{"_id":1}}]`)
	want, err := runWith(h, "c", p, nil, nil)
	if err != nil || len(want) != 500 {
		t.Fatalf("%d groups, %v", len(want), err)
	}
	s := files(t, spill.Options{})
	got, err := runWith(h, "c", p, budget.New(512<<10, 0), s)
	if err != nil || !slices.Equal(texts(got, false), texts(want, false)) {
		t.Errorf("%d groups, %v:\n got %.2000v\nwant %.2000v", len(got), err, texts(got, false), texts(want, false))
	}
	if s.Written() == 0 {
		t.Error("nothing was written")
	}
}

// Without files, a stage that needs too much memory is refused. If the disk is full, it fails with the disk's error.
func TestSpillingIsRefused(t *testing.T) {
	h := many(t, 3000)
	for name, text := range map[string]string{
		"group": `[{"$group":{"_id":"$k","n":{"$sum":1}}}]`,
		"sort":  `[{"$unwind":"$n"},{"$sort":{"k":1}}]`,
	} {
		p := mtest.Value(t, text)
		for _, tc := range []struct {
			s    *spill.Space
			want status.Code
		}{{nil, status.MemoryLimit}, {files(t, spill.Options{Limit: 50 << 10}), status.StoreFull}} {
			b := budget.New(300<<10, 0)
			_, err := runWith(h, "c", p, b, tc.s)
			if !status.Is(err, tc.want) {
				t.Errorf("%s: the error is %v", name, err)
			}
			if b.Used() != 0 {
				t.Errorf("%s: %d bytes are still charged", name, b.Used())
			}
			code := int32(merr.MemoryLimit)
			if tc.s != nil {
				code = merr.OutOfDiskSpace
			}
			if e := merr.From(err); e.Code != code {
				t.Errorf("%s: the code is %d", name, e.Code)
			}
		}
	}
}

// Every stage that holds documents or groups gives the right answer with little memory, or the error of MongoDB for a
// stage that can't use files; without files it gives that error. Nothing is left charged.
func TestStagesWithLittleMemory(t *testing.T) {
	h := many(t, 3000)
	pad := strings.Repeat("x", 100)
	for i, d := range h.colls["c"] {
		h.colls["c"][i] = expr.SetTop(d, "pad", value.StringOf(pad))
	}
	s := files(t, spill.Options{})
	const refused, tooMuch = merr.MemoryLimit, merr.ExceededMemoryLimit
	for _, tc := range []struct {
		pipeline string
		files    int32 // the error with files; 0: the right answer
		none     int32 // the error without files
	}{
		{`{"$group":{"_id":"$k","n":{"$sum":"$n"}}},{"$sort":{"_id":1}}`, 0, refused},
		{`{"$group":{"_id":null,"all":{"$push":"$$ROOT"}}}`, tooMuch, refused},
		{`{"$group":{"_id":null,"all":{"$addToSet":"$$ROOT"}}}`, tooMuch, refused},
		{`{"$set":{"x":1}},{"$sort":{"k":1,"_id":1}}`, 0, refused},
		{`{"$sortByCount":"$k"},{"$sort":{"count":-1,"_id":1}}`, 0, refused},
		{`{"$bucket":{"groupBy":"$n","boundaries":[0,10,5000],"output":{"n":{"$sum":1}}}}`, 0, 0},
		{`{"$bucket":{"groupBy":"$n","boundaries":[0,10,5000],"output":{"n":{"$push":"$$ROOT"}}}}`, tooMuch, refused},
		{`{"$facet":{"n":[{"$count":"n"}],"most":[{"$sort":{"k":-1}},{"$limit":3}],
			"groups":[{"$group":{"_id":"$k","n":{"$sum":1}}},{"$match":{"n":2}},{"$sort":{"_id":1}},{"$limit":5}]}}`,
			0, refused},
		{`{"$facet":{"all":[]}}`, refused, refused},
		{`{"$limit":2},{"$lookup":{"from":"c","as":"x","pipeline":[{"$group":{"_id":"$k","n":{"$sum":1}}},
			{"$sort":{"n":-1,"_id":1}},{"$limit":3}]}}`, 0, refused},
		{`{"$limit":2},{"$lookup":{"from":"c","as":"x","pipeline":[]}}`, refused, refused},
		{`{"$limit":2},{"$unionWith":{"coll":"c","pipeline":[{"$group":{"_id":"$k"}},{"$sort":{"_id":1}}]}}`,
			0, refused},
		{`{"$unionWith":{"coll":"c"}},{"$group":{"_id":"$k","n":{"$sum":1}}},{"$sort":{"_id":1}}`, 0, refused},
		{`{"$sample":{"size":3000}}`, refused, refused},
		{`{"$sample":{"size":3}},{"$count":"n"}`, 0, 0},
		{`{"$unwind":"$n"},{"$count":"n"}`, 0, 0},
		{`{"$merge":"there"}`, 0, refused},
		{`{"$out":"there"}`, 0, refused},
		{`{"$bucketAuto":{"groupBy":"$n","buckets":3}}`, 0, refused},
		{`{"$bucketAuto":{"groupBy":"$n","buckets":1,"output":{"n":{"$push":"$$ROOT"}}}}`, refused, refused},
		{`{"$limit":2},{"$graphLookup":{"from":"c","startWith":null,"connectFromField":"_id","connectToField":"x",
			"as":"x"}}`, refused, refused},
		{`{"$setWindowFields":{"partitionBy":"$_id","sortBy":{"n":1},"output":{"r":{"$sum":"$n"}}}},{"$count":"n"}`,
			0, refused},
		{`{"$setWindowFields":{"sortBy":{"n":1},"output":{}}}`, refused, refused},
		{`{"$fill":{"partitionBy":"$_id","sortBy":{"n":1},"output":{"x":{"method":"locf"},"y":{"value":1}}}},
			{"$count":"n"}`, 0, refused},
		{`{"$fill":{"output":{"x":{"value":1}}}},{"$count":"n"}`, 0, 0},
		{`{"$limit":300},{"$setWindowFields":{"output":{"all":{"$push":"$n"}}}}`, refused, refused},
	} {
		p := mtest.Value(t, "["+tc.pipeline+"]")
		want, wantErr := runWith(h, "c", p, nil, nil)
		for _, run := range []struct {
			s    *spill.Space
			code int32
		}{{s, tc.files}, {nil, tc.none}} {
			b := budget.New(700<<10, 350<<10)
			got, err := runWith(h, "c", p, b, run.s)
			if b.Used() != 0 || s.Files() != 0 {
				t.Errorf("%s: %d bytes and %d files are left", tc.pipeline, b.Used(), s.Files())
			}
			if run.code != 0 {
				if err == nil || merr.From(err).Code != run.code {
					t.Errorf("%s, files %v: the error is %v, want %d", tc.pipeline, run.s != nil, err, run.code)
				}
				continue
			}
			if err != nil || wantErr != nil || !slices.Equal(texts(got, false), texts(want, false)) {
				t.Errorf("%s, files %v: %v\n got %.300v\nwant %.300v", tc.pipeline, run.s != nil, err,
					texts(got, false), texts(want, false))
			}
		}
	}
	if n := len(h.colls["there"]); n != 2*2*3000 {
		t.Errorf("%d documents were written", n)
	}
}
