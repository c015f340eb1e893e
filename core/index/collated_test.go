package index

import (
	"bytes"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/collate"
)

// TestCollatedTerms: the entries of an index under a collation are equal for strings that it equates, and in its order;
// a rule with an unknown language makes no index.
func TestCollatedTerms(t *testing.T) {
	p, err := Compile([]byte(`{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"collatedIndexes":[
		{"paths":[{"path":"/s"},{"path":"/n","order":"descending"}],"collation":{"locale":"en","strength":2}},
		{"paths":[{"path":"/s"}],"collation":{"locale":"none","strength":2}},
		{"paths":[],"collation":{"locale":"en","strength":2}}]}`), 7)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Composites()); n != 1 {
		t.Fatalf("%d indexes", n)
	}
	c := p.Composites()[0]
	o := collate.Options{Locale: "en", Strength: 2}
	col, under, plain := &c.Columns[0], []string{CollatedPath(o), "s"}, []string{"s"}
	if !col.Holds(under, false) || !col.Holds(plain, true) || col.Holds(plain, false) {
		t.Error("the column holds other paths")
	}
	key := func(text string) []byte {
		var terms Terms
		p.Collect(&terms, mustDoc(t, text), 1)
		val, _ := entry(t, c, &terms)
		return slices.Clone(val)
	}
	var last []byte
	for _, same := range [][]string{
		{`{"id":"1","n":1}`},
		{`{"id":"1","s":5,"n":1}`},
		{`{"id":"1","s":"cote","n":2}`, `{"id":"2","s":"COTE","n":2}`},
		{`{"id":"1","s":"Cote","n":1}`},
		{`{"id":"1","s":"coté","n":2}`, `{"id":"2","s":"Coté","n":2}`},
		{`{"id":"1","s":"d","n":2}`},
	} {
		first := key(same[0])
		if bytes.Compare(last, first) >= 0 {
			t.Errorf("%s isn't behind", same[0])
		}
		for _, s := range same[1:] {
			if !bytes.Equal(first, key(s)) {
				t.Errorf("%s differs from %s", s, same[0])
			}
		}
		last = first
	}
}
