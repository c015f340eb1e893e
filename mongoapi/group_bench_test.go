package mongoapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// BenchmarkMatchGroup compares $match and $group over 100,000 documents of a kilobyte, of which two fields are read,
// with a scan of the same store that reads the same two fields and does nothing else. The metric share is the speed of
// the pipeline as a part of that of the scan; "covered" has an index with both fields.
func BenchmarkMatchGroup(b *testing.B) {
	const docs = 100_000
	e, c := diskConn(b)
	var m wire.Msg
	ask := func(d bson.D) {
		beginBench(c)
		defer endBench(c)
		out, err := c.answer(nil, wire.Header{OpCode: wire.OpMsg}, opMsg(b, d), &m)
		if err != nil {
			b.Fatal(err)
		}
		if !bytes.Contains(out, []byte("ok\x00\x00\x00\x00\x00\x00\x00\xf0?")) {
			b.Fatalf("%q", out)
		}
	}
	pad := strings.Repeat("x", 850)
	for i := 0; i < docs; i += 1000 {
		var batch bson.A
		for j := range 1000 {
			n := i + j
			batch = append(batch, bson.D{{Key: "_id", Value: n}, {Key: "a", Value: fmt.Sprint("name", n)},
				{Key: "k", Value: n % 100}, {Key: "pad", Value: pad}, {Key: "v", Value: n}})
		}
		ask(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: batch}})
	}
	group := bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "v", Value: bson.D{{Key: "$gte", Value: 0}}}}}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$k"},
			{Key: "n", Value: bson.D{{Key: "$sum", Value: "$v"}}}}}},
	}}, {Key: "cursor", Value: bson.D{}}}
	bare := bareScan(b, e, docs)
	for _, name := range []string{"scan", "covered"} {
		if name == "covered" {
			ask(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key",
				Value: bson.D{{Key: "k", Value: 1}, {Key: "v", Value: 1}}}, {Key: "name", Value: "kv"}}}}})
			cont, err := c.s.eng.Container("db", "c")
			if err == nil {
				err = cont.WaitIndex(context.Background())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			var took, free time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				ask(group)
				took += time.Since(began)
				free += bare()
			}
			b.ReportMetric(float64(free)/float64(took), "share")
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/docs, "ns/doc")
		})
	}
}

// bareScan returns a function that reads the fields k and v of all documents with an iterator of the engine, and
// returns how long it took. It finds the documents by their size.
func bareScan(b *testing.B, e kv.Engine, docs int) func() time.Duration {
	type span struct{ lo, hi []byte }
	var spans []span
	ctx := context.Background()
	each := func(lo, hi []byte, f func(key, val []byte)) {
		snap, err := e.Snapshot(ctx)
		if err != nil {
			b.Fatal(err)
		}
		defer snap.Close()
		it, err := snap.Iter(lo, hi)
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			f(it.Key(), it.Value())
		}
	}
	open := false
	each([]byte{0}, bytes.Repeat([]byte{0xff}, 8), func(key, val []byte) {
		if len(val) < 800 {
			open = false
			return
		}
		if !open {
			spans = append(spans, span{lo: bytes.Clone(key)})
		}
		open, spans[len(spans)-1].hi = true, append(bytes.Clone(key), 0)
	})
	return func() time.Duration {
		began, n, sum := time.Now(), 0, int64(0)
		for _, s := range spans {
			each(s.lo, s.hi, func(_, val []byte) {
				off := 0
				for int(binary.LittleEndian.Uint32(val[off:])) != len(val)-off {
					off++
				}
				doc := value.ObjectOf(val[off:])
				n++
				sum += doc.Get("k").Int() + doc.Get("v").Int()
			})
		}
		if n != docs || sum == 0 {
			b.Fatal(n, sum)
		}
		return time.Since(began)
	}
}

// diskConn returns an engine on disk, and a connection to a server on it.
func diskConn(b *testing.B) (*pebblekv.Engine, *conn) {
	e, err := pebblekv.Open(b.TempDir(),
		pebblekv.Options{Relaxed: true, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		b.Fatal(err)
	}
	eng, err := core.Open(context.Background(), e, core.Options{MinSlots: 4})
	if err != nil {
		b.Fatal(err)
	}
	s := New(eng, Options{Account: "localhost", Key: "a2V5"})
	here, there := net.Pipe()
	b.Cleanup(func() {
		_, _ = here.Close(), there.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		_ = eng.Close()
	})
	return e, benchConn(s, here)
}
