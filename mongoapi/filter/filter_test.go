package filter

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

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
		flt.Pred()
		flt.Equalities()
	})
}
