package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

func compile(t testing.TB, composites string) *Policy {
	t.Helper()
	p, err := Compile([]byte(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}],"compositeIndexes":`+composites+`}`),
		1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// entry returns the value of the one entry of a composite index.
func entry(t testing.TB, c *Composite, terms *Terms) (val []byte, flag byte) {
	t.Helper()
	n := 0
	terms.Path(c.ID, func(v []byte, f byte) bool {
		n++
		val, flag = v, f
		return true
	})
	if n != 1 {
		t.Fatalf("%d entries", n)
	}
	return val, flag
}

// Every document has exactly one entry under every composite index. Its bytes are in the order of the columns unless
// the sets say otherwise.
func TestCompositeTerms(t *testing.T) {
	p := compile(t, `[[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}],
		[{"path":"/_ts","order":"descending"},{"path":"/id"}],[{"path":"/a"},{"path":"/b/c","order":"ascending"},{"path":"/x"}]]`)
	if len(p.Composites()) != 3 {
		t.Fatalf("%d composite indexes", len(p.Composites()))
	}
	r := rand.New(rand.NewPCG(1, 1))
	vals := []string{"", "null", "true", "false", "1", "-0.5", `"x"`, `"y"`, `"` + strings.Repeat("l", 300) + `"`,
		"[1,2]", "[]", `{"c":[1]}`, `{"c":5}`, `[{"c":5}]`}
	type one struct {
		terms Terms
		doc   doc.Doc
		ts    int64
		val   [3][]byte
	}
	var all []*one
	for i := range 300 {
		text := fmt.Sprintf(`{"id":"%d"`, i)
		for _, f := range []string{"a", "b", "x"} {
			if v := vals[r.IntN(len(vals))]; v != "" {
				text += fmt.Sprintf(`,%q:%s`, f, v)
			}
		}
		o := &one{doc: mustDoc(t, text+"}"), ts: int64(r.IntN(5))}
		p.Collect(&o.terms, o.doc, o.ts)
		for k, c := range p.Composites() {
			o.val[k], _ = entry(t, c, &o.terms)
		}
		all = append(all, o)
	}
	trusted := 0
	for k, c := range p.Composites() {
		for _, x := range all {
			for _, y := range all {
				want, trust := 0, true
				for i := range c.Columns {
					col := &c.Columns[i]
					vx, vy := value.IntOf(x.ts), value.IntOf(y.ts)
					if col.Segs[0] != SystemTS {
						vx, vy = doc.Get(x.doc, col.Segs...), doc.Get(y.doc, col.Segs...)
					}
					lossy := x.terms.Columns.Has(col.Lossy) || y.terms.Columns.Has(col.Lossy)
					trust = trust && !lossy
					if d := value.CompareCosmos(vx, vy); want == 0 && d != 0 {
						if want = d; col.Desc {
							want = -d
						}
					}
				}
				if trust {
					trusted++
					if got := bytes.Compare(x.val[k], y.val[k]); got < 0 != (want < 0) || got > 0 != (want > 0) {
						t.Fatalf("index %d: %s against %s: %d, want %d", k, doc.AppendJSON(nil, value.ObjectOf(x.doc)),
							doc.AppendJSON(nil, value.ObjectOf(y.doc)), got, want)
					}
				}
			}
		}
	}
	if trusted < 20_000 {
		t.Errorf("only %d pairs are in a trusted order", trusted)
	}
}

// The sets describe the values of a column.
func TestCompositeMarks(t *testing.T) {
	p := compile(t, `[[{"path":"/a/b"},{"path":"/id"}]]`)
	c := p.Composites()[0]
	for text, want := range map[string]string{
		`{"id":"1","a":{"b":1}}`:                                  "",
		`{"id":"1","a":{"b":"x"}}`:                                "",
		`{"id":"1"}`:                                              "",
		`{"id":"1","a":{"b":null}}`:                               "mixed",
		`{"id":"1","a":{"b":true}}`:                               "mixed",
		`{"id":"1","a":[{"b":1}]}`:                                "array",
		`{"id":"1","a":{"b":[1]}}`:                                "array lossy",
		`{"id":"1","a":{"b":{"c":1}}}`:                            "lossy",
		`{"id":"1","a":{"b":"` + strings.Repeat("x", 257) + `"}}`: "lossy",
	} {
		var terms Terms
		p.Collect(&terms, mustDoc(t, text), 1)
		_, flag := entry(t, c, &terms)
		var got []string
		col := &c.Columns[0]
		for _, m := range []struct {
			name string
			id   uint64
		}{{"array", col.Array}, {"foreign", col.Foreign}, {"lossy", col.Lossy}, {"mixed", col.Mixed}} {
			if terms.Elements.Has(m.id) || terms.Lossy.Has(m.id) {
				t.Errorf("%.60s: a mark of a column is among those of paths", text)
			}
			if terms.Columns.Has(m.id) {
				got = append(got, m.name)
			}
		}
		if s := strings.Join(got, " "); s != want || strings.Contains(want, "lossy") != (flag&FlagLossy != 0) {
			t.Errorf("%.60s: %q (flag %x), want %q", text, s, flag, want)
		}
	}
	for _, v := range []value.Value{value.DateOf(5, 0), value.ObjectIDOf(make([]byte, 12)), value.MinKeyValue(),
		value.MaxKeyValue(), value.BinaryOf(0, nil)} {
		if !c.Columns[0].foreign(v) {
			t.Errorf("kind %d is not foreign", v.Kind())
		}
	}
	if id := &c.Columns[1]; id.foreign(value.StringOf("1")) || !id.foreign(value.Int32Of(1)) {
		t.Error("only an identity that is text is shown as it is")
	}
}

// The id depends only on the definition: the paths, their sequence and their orders.
func TestCompositeID(t *testing.T) {
	p :=
		compile(
			t,
			`[[{"path":"/a"},{"path":"/b"}],[{"path":"/a","order":"ascending"},{"path":"/b"}],[{"path":"/b"},{"path":"/a"}],
		[{"path":"/a"},{"path":"/b","order":"descending"}],[{"path":"/a/b"},{"path":"/b"}],[{"path":"/ab"},{"path":"/b"}],[{"path":"/a"}]]`)
	if n := len(p.Composites()); n != 6 {
		t.Errorf("%d composite indexes, want 6: one is there twice", n)
	}
	again := compile(t, `[[{"path":"/a"},{"path":"/b"}]]`)
	if again.Composites()[0].ID != p.Composites()[0].ID {
		t.Error("an id depends on what else the policy has")
	}
	if d := p.Composites()[0].Columns; d[0].Desc || d[1].Desc {
		t.Error("the order is ascending when none is given")
	}
	var terms Terms
	p.Minimal().Collect(&terms, mustDoc(t, `{"id":"1","a":1}`), 1)
	terms.Path(p.Composites()[0].ID, func([]byte, byte) bool {
		t.Error("an item that isn't indexed has an entry")
		return false
	})
	if none, err := Compile([]byte(`{"indexingMode":"none","compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}`),
		1); err != nil || len(none.Composites()) > 0 {
		t.Errorf("mode none has composite indexes (%v)", err)
	}
	if keys.ColumnCut(2) != 256 || keys.ColumnCut(8) != 64 {
		t.Error("the cut of stored columns moved")
	}
}
