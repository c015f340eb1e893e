package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

const columnsPolicy = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[],"compositeIndexes":[[{"path":"/a"},` +
	`{"path":"/n","order":"descending"}],[{"path":"/o/x"},{"path":"/a"},{"path":"/s"}],` +
	`[{"path":"/pk"},{"path":"/n"}],[{"path":"/v"},{"path":"/w","order":"descending"},{"path":"/_ts"}]]}`

// TestColumnsReadNoItem: queries that the columns of a composite index answer alone, the number of entries they read at
// most, and the same answer from items.
func TestColumnsReadNoItem(t *testing.T) {
	const items, slots = 600, 4
	c := memContainer(t, slots, core.ContainerSpec{IndexingPolicy: []byte(columnsPolicy)})
	for i := range items {
		s := fmt.Sprintf(`,"s":"s%d"`, i%7)
		if i%10 == 0 {
			s = ""
		}
		insert(
			t, c,
			mustJSON(t, fmt.Sprintf(`{"id":"i%03d","pk":"p%d","a":%d,"n":%d.5,"o":{"x":%d}%s}`, i, i%3, i%20, i,
				i/20%4, s)))
	}
	key := core.PartitionKey{value.StringOf("p1")}
	for _, tc := range []struct {
		text    string
		pk      core.PartitionKey
		entries int // of a page with all rows
	}{
		{"SELECT c.a, c.n FROM c WHERE c.a = 1 ORDER BY c.n DESC", nil, 40},
		{"SELECT c.a, c.n FROM c WHERE c.a = 1 ORDER BY c.n", nil, 60},
		{"SELECT c.id, c.n FROM c WHERE c.a = 1", nil, 300},
		{"SELECT c.a, c.n FROM c ORDER BY c.a, c.n DESC", nil, 620},
		{"SELECT c.o.x, c.s FROM c WHERE c.o.x = 1 AND c.a = 5", nil, 300},
		{"SELECT c.o.x, c.s, c.a FROM c ORDER BY c.s, c.id DESC", nil, 620},
		{"SELECT SUM(c.n) AS n FROM c WHERE c.a = 3", nil, 450},
		{"SELECT c.a, SUM(c.n) AS n FROM c GROUP BY c.a", nil, 620},
		{"SELECT c.s, c.o.x, COUNT(1) AS n FROM c GROUP BY c.s, c.o.x", nil, 620},
		{"SELECT DISTINCT c.o.x, c.a FROM c WHERE c.o.x > 1 ORDER BY c.a, c.o.x", nil, 620},
		{"SELECT c.pk, c.n FROM c ORDER BY c.n", key, 220},
		{"SELECT c.id, c.n FROM c WHERE c.n >= 300 ORDER BY c.n DESC", key, 120},
	} {
		want, _ := pages(t, c, itemEnv, Request{PK: tc.pk}, tc.text)
		for _, size := range []int{0, 7} {
			got, m := pages(t, c, coverEnv, Request{PK: tc.pk, PageSize: size}, tc.text)
			if !strings.Contains(tc.text, "ORDER BY") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, from the items %v", tc.text, got, want)
			}
			if !strings.HasPrefix(m.Explain, "covered ") || !strings.Contains(m.Explain, "composite") ||
				m.ItemsRead != 0 || size == 0 && m.IndexReads > tc.entries {
				t.Errorf("%s: %d rows, %d items and %d entries read by %q", tc.text, len(got), m.ItemsRead,
					m.IndexReads, m.Explain)
			}
		}
	}
	for _, text := range []string{"SELECT c.a, c.n, c.s FROM c WHERE c.a = 1 ORDER BY c.n",
		"SELECT * FROM c WHERE c.a = 1 ORDER BY c.n", "SELECT c.o, c.a FROM c WHERE c.o.x = 1 AND c.a = 5"} {
		if _, m := pages(t, c, coverEnv, Request{}, text); strings.Contains(m.Explain, "covered") {
			t.Errorf("%s: %s", text, m.Explain)
		}
	}
}

// TestColumnsFetchWhatEntriesDontTell: a number of another kind than its neighbours, a long text and an array cost one
// item each.
func TestColumnsFetchWhatEntriesDontTell(t *testing.T) {
	c := memContainer(t, 1, core.ContainerSpec{IndexingPolicy: []byte(columnsPolicy)})
	for i, n := range []string{"1", "2.5", "3.0", `"s"`, `"` + strings.Repeat("y", 600) + `"`, "[1]", "null",
		"9007199254740993", "-0.0"} {
		insert(t, c, mustJSON(t, fmt.Sprintf(`{"id":"%d","pk":"p","a":1,"n":%s}`, i, n)))
	}
	const text = "SELECT c.a, c.n FROM c WHERE c.a = 1 ORDER BY c.n, c.id"
	want, _ := pages(t, c, itemEnv, Request{}, text)
	got, m := pages(t, c, coverEnv, Request{}, text)
	if !slices.Equal(got, want) || m.ItemsRead != 4 || !strings.Contains(m.Explain, "covered") {
		t.Errorf("%v with %d items read by %s, wanted %v", got, m.ItemsRead, m.Explain, want)
	}
}

// TestColumnsAgainstItems runs queries over random, changing items, by the columns of composite indexes and by items.
func TestColumnsAgainstItems(t *testing.T) {
	for n, variant := range []struct {
		slots          int
		foreign, twice bool
	}{{1, false, false}, {8, true, false}, {4, true, true}} {
		t.Run(fmt.Sprintf("%d slots, foreign %v, twice %v", variant.slots, variant.foreign, variant.twice),
			func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(n), 19))
				c := memContainer(t, variant.slots, core.ContainerSpec{IndexingPolicy: []byte(columnsPolicy)})
				covered := 0
				for round := range 3 {
					for range 120 {
						change(t, c, r, variant.foreign && round > 0, variant.twice && round > 1)
					}
					for range 60 {
						covered += compareRows(
							t, c, r, strings.NewReplacer("WHERE", filterOn(r, []string{"c.v", "c.w"}[r.IntN(2)])).
								Replace([]string{
									"SELECT c.v, c.w FROM c WHERE",
									"SELECT c.id, c.w, c.v FROM c WHERE ORDER BY c.v, c.w DESC",
									"SELECT c.v, c.w, c._rid FROM c WHERE ORDER BY c.w, c.v",
									"SELECT c.v, COUNT(c.w) AS n FROM c WHERE GROUP BY c.v",
									"SELECT COUNT(c.v) AS n, COUNT(c.w) AS m, COUNT(1) AS k FROM c WHERE",
									"SELECT DISTINCT c.v, c.w FROM c WHERE",
									"SELECT c.w, c.v FROM c WHERE ORDER BY c.v DESC, c.w",
									"SELECT VALUE [c.v, c.w, c._ts > 0] FROM c WHERE ORDER BY c.w DESC",
								}[r.IntN(8)]))
					}
				}
				if covered < 60 {
					t.Errorf("only %d queries were covered", covered)
				}
			})
	}
}
