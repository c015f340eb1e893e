package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// tallies are queries that the ends of an index and the counts of the slots can answer.
var tallies = []string{
	"SELECT MIN(c.v) AS a, MAX(c.v) AS b, COUNT(1) AS n FROM c",
	"SELECT VALUE COUNT(c.v) FROM c",
	"SELECT COUNT(c.v) AS n, COUNT(1) AS all FROM c",
	"SELECT VALUE [{\"item\": MIN(c.v), \"item2\": {\"min\": MIN(c.v), \"count\": COUNT(c.v)}}] FROM c",
	"SELECT {\"a\": {\"item\": MAX(c.v), \"item2\": {\"max\": MAX(c.v), \"count\": COUNT(c.v)}}, \"n\": {\"item\": COUNT(1)}} AS payload FROM c",
	"SELECT COUNT(1) AS n, MAX(c._ts) > 0 AS t FROM c",
	"SELECT MIN(c.id) AS a, MAX(c.id) AS b, COUNT(1) AS n FROM c",
}

// TestTally: MIN and MAX with a COUNT read some entries of each slot and no items, after any writes and deletes, and
// have the same result as with items.
func TestTally(t *testing.T) {
	for name, policy := range map[string]string{"all": "", "exact": `{"includedPaths":[{"path":"/v/?"}],"excludedPaths":[{"path":"/*"}]}`} {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, foreign %v", name, foreign), func(t *testing.T) {
				const slots = 4
				r := rand.New(rand.NewPCG(5, 5))
				c := memContainer(t, slots, core.ContainerSpec{IndexingPolicy: []byte(policy)})
				cheap := 0
				for round := range 10 {
					for range 150 {
						scalar(t, c, r, foreign && round > 4)
					}
					for _, text := range tallies {
						for _, ranges := range [][]Range{
							nil, {{"", "1F"}}, {{"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"}}} {
							req := Request{Ranges: ranges}
							want, _ := pages(t, c, itemEnv, req, text)
							got, m := pages(t, c, coverEnv, req, text)
							for _, rows := range [][]string{got, want} {
								for i := range rows {
									rows[i] = spelling.ReplaceAllString(
										strings.ReplaceAll(rows[i], "-0.0", "0"), "$1$2")
								}
							}
							if !slices.Equal(got, want) {
								t.Fatalf("round %d, %s (%v) by %s: %v, from the items %v", round, text, ranges,
									m.Explain, got, want)
							}
							if ranges == nil && round > 0 && !foreign { // the path was counted before
								cheap++
								most := 40 * slots
								if policy != "" { // items without a value have entries, which are counted
									most += 300
								}
								if m.IndexReads > most || m.ItemsRead > 2*slots ||
									!strings.HasPrefix(m.Explain, "covered") {
									t.Errorf("round %d, %s: %d entries and %d items read by %s", round, text,
										m.IndexReads, m.ItemsRead, m.Explain)
								}
							}
						}
					}
				}
				if !foreign && cheap == 0 {
					t.Error("no query was counted")
				}
			})
		}
	}
}

// scalar writes or deletes one of 1500 items. Most of them have a value at v that isn't an array.
func scalar(t *testing.T, c *core.Container, r *rand.Rand, foreign bool) {
	t.Helper()
	id, pk := value.StringOf(fmt.Sprintf("i%d", r.IntN(1500))), value.StringOf(fmt.Sprintf("p%d", r.IntN(9)))
	fields := []any{"_id", id, "pk", pk}
	if v := oddValue(r, foreign); v.Kind() != value.Array && r.IntN(5) > 0 {
		if !foreign && v.Kind() == value.Object { // MIN and MAX of objects are undefined
			v = value.Int32Of(7)
		}
		fields = append(fields, "v", v)
	}
	if _, err := c.Write(context.Background(),
		core.Write{Kind: core.Upsert, PK: core.PartitionKey{pk}, ID: id, Doc: bsonDoc(fields...)}); err != nil {
		t.Fatal(err)
	}
	if r.IntN(3) == 0 {
		if _, err := c.Write(context.Background(),
			core.Write{Kind: core.Delete, PK: core.PartitionKey{pk}, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
}
