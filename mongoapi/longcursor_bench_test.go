package mongoapi

import (
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// BenchmarkLongCursor reads a million documents with one cursor. The metric is how much the heap grows from the fourth
// part of them to their end, after a collection at each: before that the caches of the store fill.
func BenchmarkLongCursor(b *testing.B) {
	const docs, batches = 1_000_000, 10_000
	_, c := diskConn(b)
	ask := benchAsk(b, c)
	ask(bson.D{{Key: "create", Value: "c"}})
	for i := 0; i < docs; i += 5000 {
		var batch bson.A
		for n := i; n < i+5000; n++ {
			batch = append(batch, bson.D{{Key: "_id", Value: n}})
		}
		ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: batch}})
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		r := ask(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: docs / batches}})
		id, n, quarter, most := r.Lookup("cursor", "id").Int64(), docs/batches, 0.0, 0.0
		for i := 0; id != 0; i++ {
			r = ask(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"},
				{Key: "batchSize", Value: docs / batches}})
			vs, err := r.Lookup("cursor", "nextBatch").Array().Values()
			if err != nil {
				b.Fatal(err)
			}
			n += len(vs)
			id = r.Lookup("cursor", "id").Int64()
			switch {
			case i == batches/4:
				quarter = heap()
			case i > batches/4 && i%500 == 0:
				most = max(most, heap())
			}
		}
		if n != docs {
			b.Fatal(n)
		}
		b.ReportMetric((most-quarter)/1024, "KiB-more")
	}
}
