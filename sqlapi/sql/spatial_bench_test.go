package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// BenchmarkRadius finds the few of 10,000 points over a country that lie within 5 km of a place, with a spatial index and by
// reading all.
func BenchmarkRadius(b *testing.B) {
	for name, policy := range map[string]string{"index": noPaths + earthIndex, "scan": noPaths + "}"} {
		b.Run(name, func(b *testing.B) {
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
			c, err := e.CreateContainer(context.Background(), "d", core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, IndexingPolicy: []byte(policy)})
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 10_000 {
				d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"i%d","pk":"p%d","name":"place %d","loc":{"type":"Point","coordinates":[%.6f,%.6f]}}`,
					i, i%100, i, 6+9*r.Float64(), 47+8*r.Float64()), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					b.Fatal(err)
				}
				insert(b, c, d)
			}
			b.ResetTimer()
			benchQuery(b, c, `SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, {"type":"Point","coordinates":[10.5,51.2]}) < 5000`, Request{PageSize: -1}, 2)
		})
	}
}
