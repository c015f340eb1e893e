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

// BenchmarkNearest finds the nearest 10 of 10,000 places in a country, among those within 200 km: in rings, and by
// sorting all of these.
func BenchmarkNearest(b *testing.B) {
	c := benchIndexed(b, 10, noPaths+earthIndex)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		json := fmt.Sprintf(`{"id":"i%d","pk":"p%d","loc":{"type":"Point","coordinates":[%.6f,%.6f]}}`, i, i%100,
			6+9*r.Float64(), 47+8*r.Float64())
		d, err := doc.FromJSON(nil, []byte(json), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			b.Fatal(err)
		}
		insert(b, c, d)
	}
	const at = `ST_DISTANCE(c.loc, {"type":"Point","coordinates":[10.5,51.2]})`
	const text = "SELECT TOP 10 VALUE c.id FROM c WHERE " + at + " < 200000 ORDER BY " + at
	b.Run("rings", func(b *testing.B) { benchQuery(b, c, text, Request{}, 10) })
	b.Run("sort", func(b *testing.B) { benchEnv(b, itemEnv, c, text, Request{}, 10) })
}

// BenchmarkRadius finds the few of 10,000 places in a country that are within 5 km of one, with a spatial index and by
// reading all. All places are points, or every tenth is a square.
func BenchmarkRadius(b *testing.B) {
	for _, x := range []struct {
		name, policy string
		every        int
	}{{"index", noPaths + earthIndex, 1 << 30}, {"index with shapes", noPaths + earthIndex, 10},
		{"scan", noPaths + "}", 1 << 30}} {
		b.Run(x.name, func(b *testing.B) {
			policy := x.policy
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
			c, err := e.CreateContainer(
				context.Background(), "d",
				core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
					IndexingPolicy: []byte(policy)})
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 10_000 {
				lng, lat := 6+9*r.Float64(), 47+8*r.Float64()
				loc := fmt.Sprintf(`{"type":"Point","coordinates":[%.6f,%.6f]}`, lng, lat)
				if i%x.every == x.every-1 {
					loc = fmt.Sprintf(`{"type":"Polygon","coordinates":[[[%.6f,%.6f],[%.6f,%.6f],[%.6f,%.6f],[%.6f,`+
						`%.6f],[%.6f,%.6f]]]}`,
						lng, lat, lng+0.001, lat, lng+0.001, lat+0.001, lng, lat+0.001, lng, lat)
				}
				d, err := doc.FromJSON(nil,
					fmt.Appendf(nil, `{"id":"i%d","pk":"p%d","name":"place %d","loc":%s}`, i, i%100, i, loc),
					doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					b.Fatal(err)
				}
				insert(b, c, d)
			}
			b.ResetTimer()
			benchQuery(b, c, `SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, {"type":"Point","coordinates":[10.5,`+
				`51.2]}) < 5000`, Request{PageSize: -1}, 2)
		})
	}
}
