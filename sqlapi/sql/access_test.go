package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// TestAccessPaths: the cost of a filter. Each query has the access path that it must use, and the largest number of the
// 2,000 items that it may load.
func TestAccessPaths(t *testing.T) {
	c := containers(t)["16 slots, all indexed"]
	for i := range 2000 {
		json := fmt.Sprintf(`{"id":"i%d","pk":"p%d","cat":"c%d","n":%d,"tags":["t%d"],"o":{"x":%d}}`, i, i%20, i%200,
			i, i%100, i)
		d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`(c.id = "i%d" AND c.pk = "p%d")`, i, i%20)
	}
	key := core.PartitionKey{value.StringOf("p3")}
	for _, q := range []struct {
		text  string
		pk    core.PartitionKey
		path  string
		items int
		rows  int
	}{
		{`SELECT * FROM c WHERE c.id = "i3"`, key, "points", 1, 1},
		{`SELECT * FROM c WHERE c.id = "i3" AND c.pk = "p3"`, nil, "points", 1, 1},
		{`SELECT * FROM c WHERE c.id IN ("i3", "i23", "i43")`, key, "points", 3, 3},
		{`SELECT * FROM c WHERE ` + strings.Join(many, " OR "), nil, "points", 1000, 1000},
		{`SELECT * FROM c WHERE c.pk = "p3"`, nil, "scan: items of one logical partition", 100, 100},
		{`SELECT * FROM c WHERE c.pk IN ("p3", "p4")`, nil, "points", 200, 200},
		{`SELECT * FROM c WHERE c.cat = "c7"`, nil, "index", 10, 10},
		{`SELECT * FROM c WHERE c.cat IN ("c7", "c8") AND c.n < 1000`, nil, "index", 20, 10},
		{`SELECT * FROM c WHERE c.cat = "c7" OR c.o.x = 5`, nil, "index", 11, 11},
		{`SELECT * FROM c WHERE c.n BETWEEN 10 AND 19`, nil, "index", 10, 10},
		{`SELECT * FROM c WHERE c.n >= 10 AND c.n < 20 AND c.pk != "p3"`, nil, "index", 10, 10},
		{`SELECT * FROM c WHERE STARTSWITH(c.cat, "c19")`, nil, "index", 110, 110},
		{`SELECT * FROM c WHERE c.cat LIKE "c19%"`, nil, "index", 110, 110},
		{`SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, "t5")`, nil, "index", 20, 20},
		{`SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = "t5")`, nil, "index", 20, 20},
		{`SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = "t5"`, nil, "index", 20, 20},
		{`SELECT * FROM c WHERE c.n >= 1500 ORDER BY c.n OFFSET 0 LIMIT 5`, nil, "ordered", 40, 5},
		{`SELECT * FROM c WHERE c.nothing = 1`, nil, "index", 0, 0},
		{`SELECT * FROM c WHERE c.cat = undefined`, nil, "nothing", 0, 0},
		{`SELECT * FROM c WHERE CONTAINS(c.cat, "19")`, nil, "scan", 2000, 120},
	} {
		pl, err := Compile(q.text, nil, testEnv)
		if err != nil {
			t.Fatal(err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, Request{PK: q.pk, Explain: true}, out); err != nil {
			t.Errorf("%.80s: %v", q.text, err)
			continue
		}
		if out.Count != q.rows || out.Metrics.ItemsRead > q.items || !strings.HasPrefix(out.Metrics.Explain, q.path) {
			t.Errorf("%.80s\n%d rows, wanted %d; %d items read, at most %d; %s, wanted %s", q.text, out.Count, q.rows,
				out.Metrics.ItemsRead, q.items, out.Metrics.Explain, q.path)
		}
	}
}
