package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// appendField appends a BSON element with a JSON value, so that a test can write a name twice.
func appendField(t testing.TB, dst []byte, name, json string) []byte {
	v, err := doc.ValueFromJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return doc.AppendElement(dst, name, v)
}

var changeValues = []string{"null", "1", "2", `"x"`, `"` + strings.Repeat("l", 300) + `"`, "[]", "[1,2]",
	`[{"c":1},{"c":2}]`, `{"c":1}`,
	`{"c":[1,{"d":2}]}`, `[{"_value":1,"id":"p"}]`, "true",
	`{"type":"Point","coordinates":[1,2]}`, `{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,5],[0,0]]]}`,
	`[{"type":"Point","coordinates":[1,200]},{"type":"Point","coordinates":[3,4]}]`}

// TestCollectChange: for any two documents, the difference of the terms from CollectChange is the difference of the
// full terms.
func TestCollectChange(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	policies := []string{``, `{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"}],` +
		`"spatialIndexes":[{"path":"/*"},{"path":"/b/?","boundingBox":{"xmin":0,"ymin":0,"xmax":5,"ymax":5}}]}`,
		`{"indexingMode":"none","automatic":false}`,
		`{"includedPaths":[{"path":"/a/?"},{"path":"/b/c/?"}],"excludedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b/c"}]]}`,
		`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/b/*"}]}`,
		`{"textIndexes":[{"path":["a"],"language":"english"},{"path":["b","c"],"language":"none"}]}`}
	names := []string{"a", "b", "d", "e", "_sinkLabel", "_isEdge", "_id"}
	shared, whole := 0, 0
	for i := range 4000 {
		p, err := Compile([]byte(policies[i%len(policies)]), 1)
		if err != nil {
			t.Fatal(err)
		}
		type field struct{ name, json string }
		var fields []field
		for range r.IntN(7) {
			fields = append(fields, field{names[r.IntN(len(names))], changeValues[r.IntN(len(changeValues))]})
		}
		build := func() []byte {
			b := make([]byte, 4)
			for _, f := range fields {
				b = appendField(t, b, f.name, f.json)
			}
			return bson.End(b, 0)
		}
		old := Version{build(), int64(r.IntN(2))}
		for range r.IntN(3) { // change, add, remove, swap
			switch at := r.IntN(len(fields) + 1); {
			case at == len(fields):
				fields = append(fields, field{names[r.IntN(len(names))], changeValues[r.IntN(len(changeValues))]})
			case r.IntN(4) == 0:
				fields = slices.Delete(fields, at, at+1)
			case r.IntN(4) == 0:
				fields[0], fields[at] = fields[at], fields[0]
			default:
				fields[at].json = changeValues[r.IntN(len(changeValues))]
			}
		}
		new := Version{build(), int64(r.IntN(2))}
		var a, b, wa, wb Terms
		n := p.CollectChange(&a, &b, old, new)
		p.Collect(&wa, old.Doc, old.TS)
		p.Collect(&wb, new.Doc, new.TS)
		if got, want := difference(&a, &b), difference(&wa, &wb); got != want {
			t.Fatalf("%v -> %v\npolicy %s\ngot  %s\nwant %s", value.ObjectOf(old.Doc), value.ObjectOf(new.Doc),
				policies[i%len(policies)], got, want)
		}
		paths := pathIDs(p)
		got, want := make([]Counts, len(paths)), make([]Counts, len(paths))
		a.Count(paths, got, -1)
		b.Count(paths, got, 1)
		wa.Count(paths, want, -1)
		wb.Count(paths, want, 1)
		if !slices.Equal(got, want) {
			t.Fatalf("%v -> %v: %v are more, want %v", value.ObjectOf(old.Doc), value.ObjectOf(new.Doc), got, want)
		}
		if n > 0 {
			shared++
		} else {
			whole++
		}
	}
	if shared < 1000 || whole < 300 {
		t.Fatalf("%d with shared fields, %d without: the test doesn't see both", shared, whole)
	}
}

func difference(a, b *Terms) string {
	var s strings.Builder
	Diff(a, b, func(term []byte) { fmt.Fprintf(&s, "-%x ", term) }, func(term []byte, flag byte) {
		fmt.Fprintf(&s, "+%x/%x ", term, flag)
	})
	return s.String()
}

// TestCollectChangeOfLargeDocuments: a document that may have more than MaxTerms terms is collected completely.
func TestCollectChangeOfLargeDocuments(t *testing.T) {
	p, err := Compile(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	large := `{"id":"a","x":1,"list":[` + strings.Repeat("0,", MaxTerms*3) + `1]}`
	var a, b Terms
	if n := p.CollectChange(&a, &b, Version{Doc: mustDoc(t, large)},
		Version{Doc: mustDoc(t, strings.Replace(large, `"x":1`, `"x":2`, 1))}); n != 0 {
		t.Fatalf("%d terms left out", n)
	}
}

func BenchmarkCollectChange(b *testing.B) {
	p, _ := Compile(nil, 1)
	text :=
		`{"id":"o1","tenant":"t1","status":"new","total":5.5,"created":"2026-01-01","p0":1,"p1":2,"p2":3.5,"p3":4.5,"p4":true,"p5":false,"p6":"a","p7":"b",
		"lines":[{"sku":"s1","qty":1,"price":1.5},{"sku":"s2","qty":2,"price":2.5},{"sku":"s3","qty":3,"price":3.5}],"note":"x"}`
	old, next := Version{mustDoc(b, text), 1}, Version{mustDoc(b, strings.Replace(text, "5.5", "6.5", 1)), 2}
	var s, t Terms
	b.Run("change", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			p.CollectChange(&s, &t, old, next)
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			p.Collect(&s, old.Doc, old.TS)
			p.Collect(&t, next.Doc, next.TS)
		}
	})
}

// TestShapesAreNoOddValues: a shape with several cells doesn't set Odd for the slot. Odd would prevent index-only
// answers.
func TestShapesAreNoOddValues(t *testing.T) {
	p, err := Compile([]byte(`{"includedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/*"}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	var terms Terms
	p.Collect(&terms, mustDoc(t, `{"id":"a","loc":{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,5],[0,0]]]}}`), 1)
	_, id := p.Spatial([]string{"loc"}, false, false)
	n := 0
	terms.Path(id, func([]byte, byte) bool { n++; return true })
	if n < 2 || terms.Classes&Odd != 0 {
		t.Errorf("%d cells, classes %b", n, terms.Classes)
	}
}
