package sql

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/value"
)

// BenchmarkVectorSearch finds the ten nearest of 2,000 items with vectors of 256 dimensions and 1 KB of other fields.
func BenchmarkVectorSearch(b *testing.B) {
	kv, err := pebblekv.Open(b.TempDir(), pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned})
	if err != nil {
		b.Fatal(err)
	}
	e, err := core.Open(context.Background(), kv, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		b.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
			IndexingPolicy: []byte(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}]}`)})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	vector := func(add func(value.Value)) {
		for range 256 {
			add(value.DoubleOf(r.NormFloat64()))
		}
	}
	for i := range 2000 {
		var d doc.Builder
		d.BeginObject()
		d.Field("_id", value.StringOf("i"+value.FormatNumber(value.IntOf(int64(i)))))
		d.Field("pk", value.StringOf("p"+value.FormatNumber(value.IntOf(int64(i%50)))))
		d.Field("text", value.StringOf(strings.Repeat("lorem ipsum ", 80)))
		d.BeginArrayField("v")
		vector(d.Elem)
		d.End()
		d.End()
		insert(b, c, d.Doc())
	}
	var q doc.Builder
	q.BeginObject()
	q.BeginArrayField("v")
	vector(q.Elem)
	q.End()
	q.End()
	b.ResetTimer()
	benchQuery(b, c, "SELECT TOP 10 c.id, VectorDistance(c.v, @v) AS s FROM c ORDER BY VectorDistance(c.v, @v)",
		Request{PageSize: -1}, 10,
		Param{"@v", doc.Get(q.Doc(), "v")})
}
