package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/value"
)

// benchContainer holds n items of about 1 KB, 100 in each logical partition, with n/10 values of cat.
func benchContainer(b *testing.B, n int) *core.Container { return benchIndexed(b, n, "") }

// benchIndexed is benchContainer with an indexing policy.
func benchIndexed(b *testing.B, n int, policy string) *core.Container {
	kv, err := pebblekv.Open(b.TempDir(),
		pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		b.Fatal(err)
	}
	e, err := core.Open(context.Background(), kv, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		b.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
			IndexingPolicy: []byte(policy)})
	if err != nil {
		b.Fatal(err)
	}
	fill := strings.Repeat("abcdefghij", 80)
	for i := range n {
		json := fmt.Sprintf(`{"id":"item-%06d","pk":"p%04d","cat":"c%d","n":%d,"ten":%d,"price":%d.5,"tags":["a",`+
			`"b"],"o":{"x":%d},"fill":%q}`,
			i, i/100, i%(n/10), i%100, i%10, i, i, fill)
		d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			b.Fatal(err)
		}
		insert(b, c, d)
	}
	return c
}

func benchQuery(b *testing.B, c *core.Container, text string, req Request, want int, params ...Param) {
	b.Helper()
	benchEnv(b, testEnv, c, text, req, want, params...)
}

func benchEnv(b *testing.B, env *Env, c *core.Container, text string, req Request, want int, params ...Param) {
	b.Helper()
	b.ReportAllocs()
	out := &Page{}
	defer reportCPU(b)()
	for b.Loop() {
		pl, err := Compile(text, params, env)
		if err != nil {
			b.Fatal(err)
		}
		out.Body, out.Count = out.Body[:0], 0
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			b.Fatal(err)
		}
		if out.Count != want {
			b.Fatalf("%d rows, wanted %d", out.Count, want)
		}
	}
}

// BenchmarkQuery measures typical queries without HTTP.
func BenchmarkQuery(b *testing.B) {
	c := benchContainer(b, 2000)
	pk := value.StringOf("p0003")
	b.Run("partition 20 of 100", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.pk = @pk AND c.n < @n",
			Request{PK: core.PartitionKey{pk}, PageSize: 100}, 20,
			Param{"@pk", pk}, Param{"@n", value.IntOf(20)})
	})
	b.Run("key", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.id = @id AND c.pk = @pk", Request{PageSize: 100}, 1,
			Param{"@pk", pk}, Param{"@id", value.StringOf("item-000303")})
	})
	b.Run("equality 10", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.cat = @c", Request{PageSize: 100}, 10,
			Param{"@c", value.StringOf("c7")})
	})
	b.Run("range order top 20", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.price >= @p ORDER BY c.price OFFSET 0 LIMIT 20",
			Request{PageSize: 100}, 20, Param{"@p", value.IntOf(500)})
	})
	b.Run("count", func(b *testing.B) {
		benchQuery(b, c, "SELECT VALUE COUNT(1) FROM c", Request{}, 1)
	})
	b.Run("projection 10", func(b *testing.B) {
		benchQuery(b, c, "SELECT c.id, c.price, c.o.x FROM c WHERE c.cat = @c", Request{PageSize: 100}, 10,
			Param{"@c", value.StringOf("c7")})
	})
}

// BenchmarkCovered compares answers from index entries with the same answers from items.
func BenchmarkCovered(b *testing.B) {
	c := benchContainer(b, 20000)
	for _, q := range []struct {
		name, text string
		rows       int
	}{
		{"count of 10000", "SELECT VALUE COUNT(1) FROM c WHERE c.price >= 10000", 1},
		{"max", "SELECT VALUE MAX(c.price) FROM c", 1},
		{"max and count", `SELECT VALUE [{"item": MAX(c.price), "item2": {"max": MAX(c.price),` +
			` "count": COUNT(c.price)}}] FROM c`, 1},
		{"max of 10000", "SELECT VALUE MAX(c.price) FROM c WHERE c.price < 10000", 1},
		{"distinct 10", "SELECT DISTINCT VALUE c.ten FROM c", 10},
		{"distinct 100", "SELECT DISTINCT VALUE c.n FROM c", 100},
		{"group 100", "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", 100},
		{"sum of 10000", "SELECT VALUE SUM(c.price) FROM c WHERE c.price >= 10000", 1},
		{"two of all", "SELECT c.id, c.price FROM c", 20000},
		{"values 1000", "SELECT VALUE c.price FROM c WHERE c.price < 999", 999},
	} {
		b.Run(q.name, func(b *testing.B) { benchQuery(b, c, q.text, Request{}, q.rows) })
		b.Run(q.name+" from items", func(b *testing.B) { benchEnv(b, itemEnv, c, q.text, Request{}, q.rows) })
	}
}

// BenchmarkColumns compares answers from the columns of composite indexes with answers that need one more path, so
// items are read.
func BenchmarkColumns(b *testing.B) {
	c := benchIndexed(b, 20000, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[],`+
		`"compositeIndexes":[[{"path":"/n"},{"path":"/price"}],[{"path":"/ten"},{"path":"/price"}]]}`)
	for _, q := range []struct {
		name, text string
		rows       int
	}{
		{"order 200", "SELECT c.n, c.priceMORE FROM c WHERE c.n = 7 ORDER BY c.price", 200},
		{"sum of 2000", "SELECT SUM(c.price) AS s, MAX(c.ten) AS tMORE FROM c WHERE c.ten = 3", 1},
		{"group 10", "SELECT c.ten, SUM(c.price) AS sMORE FROM c GROUP BY c.ten", 10},
	} {
		more := ", c.o.x"
		if q.rows != 200 {
			more = ", MAX(c.o.x) AS x"
		}
		b.Run(q.name, func(b *testing.B) {
			benchQuery(b, c, strings.ReplaceAll(q.text, "MORE", ""), Request{}, q.rows)
		})
		b.Run(q.name+" with items", func(b *testing.B) {
			benchQuery(b, c, strings.ReplaceAll(q.text, "MORE", more), Request{}, q.rows)
		})
	}
}

// BenchmarkMerged compares the first rows of an order after an IN list: from a composite index, and sorted because the
// index lacks a column.
func BenchmarkMerged(b *testing.B) {
	c := benchIndexed(b, 20000, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[],`+
		`"compositeIndexes":[[{"path":"/n"},{"path":"/price"}]]}`)
	const text = "SELECT TOP 20 * FROM c WHERE c.n IN (3, 17, 44, 71, 90) ORDER BY c.price"
	b.Run("20 of 1000", func(b *testing.B) { benchQuery(b, c, text, Request{}, 20) })
	b.Run("20 of 1000 sorted", func(b *testing.B) { benchEnv(b, itemEnv, c, text, Request{}, 20) })
}

// BenchmarkInsidePartition compares two equalities in a logical partition of 2,000 items with one of them and a filter.
func BenchmarkInsidePartition(b *testing.B) {
	c := benchIndexed(b, 20000, "")
	pk := core.PartitionKey{value.StringOf("big")}
	for i := range 2000 {
		json := fmt.Sprintf(`{"id":"x%d","pk":"big","half":%d,"few":%d,"fill":%q}`, i, i%2, i%50,
			strings.Repeat("abcdefghij", 80))
		d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			b.Fatal(err)
		}
		insert(b, c, d)
	}
	b.Run("best of two", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.half = 0 AND c.few = 6", Request{PK: pk}, 40)
	})
	b.Run("first of two", func(b *testing.B) {
		benchQuery(b, c, "SELECT * FROM c WHERE c.half = 0 AND ABS(c.few) = 6 + 0 * c.few", Request{PK: pk}, 40)
	})
}
