package filter

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestFilter runs testdata: the first line is a query, each further line a document. The output is the documents that
// match.
func TestFilter(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := mtest.Lines(d.Input)
			f, err := Compile(mtest.Value(t, lines[0]), Options{})
			if err != nil {
				return mtest.Error(err) + "\n"
			}
			var b strings.Builder
			for _, l := range lines[1:] {
				v := mtest.Value(t, l)
				ok, err := f.Match(mtest.Env(), v)
				switch {
				case err != nil:
					b.WriteString(mtest.Error(err) + "\n")
				case ok:
					b.WriteString(l)
					if i, found := f.Position(v, ""); d.HasArg("position") && found {
						b.WriteString(" at " + string(rune('0'+i)))
					}
					b.WriteByte('\n')
				}
			}
			if b.Len() == 0 {
				return "none\n"
			}
			return b.String()
		})
	})
}

// FuzzCompile: no query makes the compiler or the matcher panic.
func FuzzCompile(f *testing.F) {
	doc := mtest.Value(f, `{"_id":1,"a":[1,{"b":2},"x"],"b":{"c":null}}`)
	for _, q := range []string{`{"a":1}`, `{"a":{"$elemMatch":{"b":{"$gt":1}}}}`, `{"$or":[{"a":{"$in":[1,null]}},` +
		`{"b.c":{"$exists":false}}]}`,
		`{"a":{"$regex":"^x","$options":"i"}}`, `{"$expr":{"$gt":["$a","$b"]}}`, `{"a":{"$not":{"$size":2}}}`} {
		f.Add([]byte(mtest.Value(f, q).Bytes()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !mtest.Valid(b) {
			return
		}
		flt, err := Compile(value.ObjectOf(b), Options{})
		if err != nil {
			return
		}
		_, _ = flt.Match(mtest.Env(), doc)
		_, _ = flt.Match(mtest.Env(), value.ObjectOf(b))
		flt.Pred(mtest.Env())
		flt.Equalities()
	})
}

// FuzzBredFilter: no query that is bred from those of testdata panics, and each is the opposite of its $nor.
func FuzzBredFilter(f *testing.F) {
	p := mtest.NewPool(f, func(v any) bool { _, ok := v.(driver.D); return ok }, "testdata/*")
	var docs []value.Value
	for _, text := range []string{`{"_id":1,"a":[1,{"b":2},"x"],"b":{"c":null}}`, `{"_id":2}`,
		`{"_id":3,"a":{"b":[{"c":1},{"c":[2,3]}]},"n":5,"s":"xyz"}`, `{"_id":4,"a":null,"n":1.5}`} {
		docs = append(docs, mtest.Value(f, text))
	}
	for i := range 300 {
		f.Add([]byte{byte(i >> 8), byte(i), 1, byte(i), byte(7 * i), byte(11 * i), byte(13 * i)})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := p.Breed(b)
		if !ok || q.Kind() != value.Object {
			return
		}
		flt, err := Compile(q, Options{})
		if err != nil {
			return
		}
		flt.Pred(mtest.Env())
		flt.Equalities()
		list := value.MakeArray([]value.Value{q})
		at, nor := bson.Begin(nil)
		not, err := Compile(value.ObjectOf(bson.End(value.AppendElement(nor, "$nor", list), at)), Options{})
		if err != nil {
			return // $text and nearness can't be there
		}
		for _, doc := range docs {
			is, err := flt.Match(mtest.Env(), doc)
			if err != nil {
				continue
			}
			isnt, err := not.Match(mtest.Env(), doc)
			if err == nil && is == isnt {
				t.Fatalf("%s and its $nor: %v for %s", mtest.Text(q), is, mtest.Text(doc))
			}
		}
	})
}
