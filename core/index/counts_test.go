package index

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// pathIDs returns the ids of the paths that this file's documents have, ascending.
func pathIDs(p *Policy) (ids []uint64) {
	for _, segs := range [][]string{{"a"}, {"a", "c"}, {"a", "c", "d"}, {"a", "_value"}, {"a", "id"}, {"b"}, {"b", "c"},
		{"d"}, {"e"}, {SystemTS}} {
		ids = append(ids, p.PathID(segs))
	}
	slices.Sort(ids)
	return ids
}

// TestCounts: how the entries of documents at one path are counted.
func TestCounts(t *testing.T) {
	long := `"` + strings.Repeat("x", 300) + `"`
	type fields []string // name, JSON, ..
	type test struct {
		doc  fields
		want Counts
	}
	for policy, tests := range map[string][]test{
		``: {
			{fields{}, Counts{}},
			{fields{"a", "1"}, Counts{Values: 1}},
			{fields{"a", "null", "b", "1"}, Counts{Values: 1}},
			{fields{"a", long}, Counts{Values: 1, Lossy: 1}},
			{fields{"a", `{"x":1}`}, Counts{Values: 1, Lossy: 1}},
			{fields{"a", "[]"}, Counts{Values: 1, Elements: 1, Lossy: 1}},
			{fields{"a", "[1,2]"}, Counts{Values: 1, Elements: 3, Lossy: 1}},
			{fields{"a", `[{"x":1}]`}, Counts{Values: 1, Elements: 1, Lossy: 1}},
			{fields{"a", `[{"_value":"v","id":"p"}]`}, Counts{Values: 1, Elements: 1, Lossy: 1}},
			{fields{"a", "[" + long + "]"}, Counts{Values: 1, Elements: 2, Lossy: 2}},
			{fields{"a", "1", "a", "2"}, Counts{Values: 2, Elements: 2}},
			{fields{"a", "1", "a", "1"}, Counts{Values: 1}},
			{fields{"a", "1", "a", "[1]"}, Counts{Values: 2, Elements: 2, Lossy: 1}},
			// an "any value" entry
			{fields{"list", "[" + strings.Repeat("0,", MaxTerms) + "0]", "a", "1"}, Counts{Elements: 1, Lossy: 1}},
		},
		`{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`: {
			{fields{"b", "1"}, Counts{}},
			{fields{"a", "1"}, Counts{Values: 1}},
			{fields{"a", "[1,2]"}, Counts{Values: 1, Elements: 3, Lossy: 1}},
		},
		`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/?"}]}`: {{fields{"a", "1"}, Counts{}}},
	} {
		p, err := Compile([]byte(policy), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range tests {
			doc := make([]byte, 4)
			for i := 0; i < len(tc.doc); i += 2 {
				doc = appendField(t, doc, tc.doc[i], tc.doc[i+1])
			}
			var terms Terms
			p.Collect(&terms, bson.End(doc, 0), 1)
			var got [1]Counts
			terms.Count([]uint64{p.PathID([]string{"a"})}, got[:], 1)
			if got[0] != tc.want {
				t.Errorf("policy %q, %.60q: %+v, want %+v", policy, tc.doc, got[0], tc.want)
			}
		}
	}
}

// TestSameBelow: if two policies have the same rules for a field, then an item has the same counts below the field with
// either policy and with both merged. SameBelow must also return true for some policies of the table.
func TestSameBelow(t *testing.T) {
	texts := []string{``, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/b/*"}]}`,
		`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/c/?"}]}`,
		`{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b/c"}]]}`,
		`{"includedPaths":[{"path":"/*"},{"path":"/a/?"}]}`, `{"includedPaths":[{"path":"/*"},{"path":"/a/[]/c/?"}]}`,
		`{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`,
		`{"includedPaths":[{"path":"/a/?"},{"path":"/b/?"}],"excludedPaths":[{"path":"/*"}]}`,
		`{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"}]}`,
		`{"indexingMode":"none","automatic":false}`,
		`{"includedPaths":[{"path":"/*"}],"spatialIndexes":[{"path":"/a/?"}]}`}
	var policies []*Policy
	for _, text := range texts {
		p, err := Compile([]byte(text), 1)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	r := rand.New(rand.NewPCG(3, 3))
	same := 0
	for range 3000 {
		a, b := policies[r.IntN(len(policies))], policies[r.IntN(len(policies))]
		doc := make([]byte, 4)
		for _, name := range []string{"a", "b", "d"}[:r.IntN(4)] {
			doc = appendField(t, doc, name, changeValues[r.IntN(len(changeValues))])
		}
		doc = bson.End(doc, 0)
		for _, field := range []string{"a", "b", "d"} {
			if !SameBelow(a, b, field) {
				continue
			}
			same++
			var paths []uint64
			for _, segs := range [][]string{
				{field}, {field, "c"}, {field, "c", "d"}, {field, "_value"}, {field, "id"}} {
				paths = append(paths, a.PathID(segs))
			}
			slices.Sort(paths)
			count := func(t *Terms) []Counts {
				sums := make([]Counts, len(paths))
				t.Count(paths, sums, 1)
				return sums
			}
			var ta, tb Terms
			a.Collect(&ta, doc, 1)
			b.Collect(&tb, doc, 1)
			na, nb := count(&ta), count(&tb)
			ta.Merge(&tb)
			if both := count(&ta); !slices.Equal(na, nb) || !slices.Equal(na, both) {
				t.Fatalf("%v at %s: %v and %v, both %v", value.ObjectOf(doc), field, na, nb, both)
			}
		}
	}
	if same < 2000 {
		t.Errorf("only %d pairs are the same", same)
	}
	if SameBelow(policies[0], policies[1], "b") || !SameBelow(policies[0], policies[1], "a") ||
		!SameBelow(policies[0], policies[3], "a") ||
		SameBelow(policies[6], policies[8], "a") || !SameBelow(policies[6], policies[7], "a") {
		t.Error("the rules of a field are taken for others'")
	}
}
