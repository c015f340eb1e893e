package update

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestUpdate runs testdata. "update": an update, then documents. "filtered": a query, an update, then documents.
// "arrays": array filters, an update, then documents. "upsert": a query and an update; the output is the inserted
// document.
func TestUpdate(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := mtest.Lines(d.Input)
			var f *filter.Filter
			var o Options
			var err error
			if d.Cmd == "filtered" || d.Cmd == "upsert" {
				f, err = filter.Compile(mtest.Value(t, lines[0]), filter.Options{})
				lines = lines[1:]
			} else if d.Cmd == "arrays" {
				o.ArrayFilters = mtest.Value(t, lines[0])
				lines = lines[1:]
			}
			if err != nil {
				return mtest.Error(err) + "\n"
			}
			u, err := Compile(mtest.Value(t, lines[0]), o)
			if err != nil {
				return mtest.Error(err) + "\n"
			}
			c := Context{Env: mtest.Env(), Stamp: stamp, Filter: f}
			docs := lines[1:]
			if d.Cmd == "upsert" {
				base, err := Base(f.Equalities())
				if err != nil {
					return mtest.Error(err) + "\n"
				}
				docs, c.Insert = []string{mtest.Text(value.ObjectOf(base))}, true
			}
			var b strings.Builder
			for _, l := range docs {
				out, err := u.Apply(mtest.Value(t, l), c)
				if err != nil {
					b.WriteString(mtest.Error(err) + "\n")
					continue
				}
				b.WriteString(mtest.Text(value.ObjectOf(out)) + "\n")
			}
			return b.String()
		})
	})
}

// FuzzUpdate: neither compiling nor applying an update panics, and the result is a valid document.
func FuzzUpdate(f *testing.F) {
	doc := mtest.Value(f, `{"_id":1,"a":[1,{"b":2},"x"],"b":{"c":null},"n":5}`)
	for _, q := range []string{`{"$set":{"a.1.b":1,"x.y":2}}`, `{"$push":{"a":{"$each":[1],"$sort":1,"$slice":-2}}}`,
		`{"$inc":{"n":1},"$unset":{"b":1}}`,
		`{"$pull":{"a":{"$gt":1}}}`, `{"$rename":{"n":"m"}}`, `{"a":1}`, `{"$set":{"a.$[].b":1}}`,
		`{"$addToSet":{"a":{"$each":[1,2]}}}`} {
		f.Add([]byte(mtest.Value(f, q).Bytes()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !mtest.Valid(b) {
			return
		}
		u, err := Compile(value.ObjectOf(b), Options{})
		if err != nil {
			return
		}
		out, err := u.Apply(doc, Context{Env: mtest.Env(), Stamp: stamp})
		if err == nil && !mtest.Valid(out) {
			t.Fatalf("made %x", out)
		}
	})
}

// FuzzBredUpdate: no update that is bred from those of testdata panics, and what it makes is a valid document.
func FuzzBredUpdate(f *testing.F) {
	p := mtest.NewPool(f, isUpdate, "testdata/*", "../filter/testdata/*")
	var docs []value.Value
	for _, text := range []string{`{"_id":1,"a":[1,{"b":2},"x"],"b":{"c":null},"n":5}`, `{"_id":2}`,
		`{"_id":3,"a":[[1,2],[3]],"l":[{"k":1},{"k":2}],"s":"x"}`} {
		docs = append(docs, mtest.Value(f, text))
	}
	for i := range 300 {
		f.Add([]byte{byte(i >> 8), byte(i), 1, byte(i), byte(7 * i), byte(11 * i), byte(13 * i)})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		spec, ok := p.Breed(b)
		if !ok {
			return
		}
		u, err := Compile(spec, Options{})
		if err != nil {
			return
		}
		for _, doc := range docs {
			out, err := u.Apply(doc, Context{Env: mtest.Env(), Stamp: stamp})
			if err != nil {
				continue
			}
			if !mtest.Valid(out) {
				t.Fatalf("%s made %x of %s", mtest.Text(spec), out, mtest.Text(doc))
			}
		}
	})
}

func isUpdate(v any) bool {
	d, ok := v.(bson.D)
	return ok && len(d) > 0 && strings.HasPrefix(d[0].Key, "$")
}

// stamp is the time of the cluster in tests.
func stamp() uint64 { return uint64(mtest.Env().NowMS/1000)<<32 | 1 }
