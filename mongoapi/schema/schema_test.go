package schema

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// TestSchema runs testdata. "follow" has a schema and documents, and prints for each document the rules that it breaks.
// "refuse" has schemas, and prints why each is refused.
func TestSchema(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			lines := mtest.Lines(d.Input)
			if d.Cmd == "refuse" {
				for _, l := range lines {
					if _, err := Compile(mtest.Value(t, l), nil); err != nil {
						b.WriteString(mtest.Error(err) + "\n")
					} else {
						b.WriteString("ok\n")
					}
				}
				return b.String()
			}
			s, err := Compile(mtest.Value(t, lines[0]), nil)
			if err != nil {
				return mtest.Error(err) + "\n"
			}
			for _, l := range lines[1:] {
				b.WriteString(told(s, mtest.Value(t, l)) + "\n")
			}
			return b.String()
		})
	})
}

// told returns the rules that a document breaks.
func told(s *Schema, doc value.Value) string {
	if s.Matches(doc) {
		return "ok"
	}
	at, b := bson.Begin(nil)
	return mtest.Text(value.ObjectOf(bson.End(s.Explain(b, doc), at)).Get("schemaRulesNotSatisfied"))
}

// FuzzCompile: no schema and no document make the code panic, and a refused document breaks a rule.
func FuzzCompile(f *testing.F) {
	doc := mtest.Value(f, `{"a":[1,2,{"b":"x"}],"b":{"c":null},"d":"text"}`)
	for _, s := range []string{`{"required":["x"],"properties":{"a":{"items":{"bsonType":"int"},"uniqueItems":true}}}`,
		`{"patternProperties":{"^d":{"minLength":9}},"additionalProperties":false,"oneOf":[{},{"minProperties":1}]}`,
		`{"dependencies":{"a":["z"],"b":{"not":{}}},"enum":[{"a":1}],"properties":{"a":{"items":[{"enum":[2]}]}}}`} {
		f.Add([]byte(mtest.Value(f, s).Bytes()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !mtest.Valid(b) {
			return
		}
		s, err := Compile(value.ObjectOf(b), nil)
		if err != nil {
			return
		}
		for _, d := range []value.Value{doc, value.ObjectOf(b)} {
			if told(s, d) == "[]" {
				t.Errorf("%s: no rule is broken by %s", mtest.Text(value.ObjectOf(b)), mtest.Text(d))
			}
		}
	})
}
