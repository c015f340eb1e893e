package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// The benchmarks run on pebblekv without fsync. Beside their own time they report its ratio to the time of as many raw
// engine operations in the same run ("x-floor").

// order is a document of about 1 KB: 18 scalar fields and three lines of an array.
func order(i int) string {
	h := uint32(i) * 2654435761
	return fmt.Sprintf(`{"id":"o%08d","tenant":"t%06d","customer":"c%07d","status":%q,"total":%.2f,`+
		`"created":"2023-11-14T22:13:%02dZ","p0":%d,"p1":%d,"p2":%d.25,"p3":%d.5,"p4":true,"p5":false,"p6":"region-%d","p7":"chan-%d","p8":"%016x","p9":"EUR","lines":[{"sku":"sku-%d","qty":1,"price":1.5},{"sku":"sku-%d","qty":2,"price":2.5},{"sku":"sku-%d","qty":3,"price":3.5}],"note":%q}`,
		i, i/100, i%1000, []string{"new", "paid", "packed", "shipped", "closed"}[i%5], float64(h%100000)/100, i%60, i,
		h%1000, h%10007, h%997, h%12, h%5, h, h%5000, h>>8%5000, h>>16%5000,
		strings.Repeat("the quick brown fox ", 27))
}

const benchDocs = 10000

func benchContainer(b *testing.B) (*core.Container, *pebblekv.Engine) { return benchIndexed(b, nil) }

// benchEngine opens an empty store on disk, which is closed at the end of the benchmark.
func benchEngine(b *testing.B, relaxed bool) (*core.Engine, *pebblekv.Engine) {
	b.Helper()
	kve, err := pebblekv.Open(b.TempDir(),
		pebblekv.Options{Relaxed: relaxed, Scanned: core.OnlyScanned, Kept: core.GotSingly})
	if err != nil {
		b.Fatal(err)
	}
	e, err := core.Open(bg, kve, core.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e, kve
}

// benchIndexed is benchContainer with an indexing policy.
func benchIndexed(b *testing.B, policy []byte) (*core.Container, *pebblekv.Engine) {
	b.Helper()
	e, kve := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}},
		IndexingPolicy: policy})
	for i := range benchDocs {
		put(b, c, core.Create, order(i))
	}
	return c, kve
}

// floor measures raw engine operations and reports the benchmark's time as a multiple of them.
func floor(b *testing.B, op func(i int)) {
	b.StopTimer()
	const n = 20000
	start := time.Now()
	for i := range n {
		op(i)
	}
	per := float64(time.Since(start).Nanoseconds()) / n
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/per, "x-floor")
}

func rawKeys(b *testing.B, e *pebblekv.Engine, n int) (key func(i int) []byte, val []byte) {
	val = mustDoc(b, order(1))
	key = func(i int) []byte { return fmt.Appendf(nil, "\x30raw%032d", i) }
	var batch kv.Batch
	for i := range n {
		batch.Put(key(i), val)
		if batch.Len() == 1000 {
			if _, err := e.Write(bg, &batch, nil); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	return key, val
}

// BenchmarkPointRead reads an item and appends its JSON; the floor is one Get.
func BenchmarkPointRead(b *testing.B) {
	c, e := benchContainer(b)
	key, _ := rawKeys(b, e, benchDocs)
	var buf []byte
	pks, names := make([]core.PartitionKey, benchDocs), make([]value.Value, benchDocs)
	for n := range pks {
		pks[n], names[n] = pk(fmt.Sprintf("t%06d", n/100)), value.StringOf(fmt.Sprintf("o%08d", n))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n := i * 7919 % benchDocs
		it, err := c.Read(bg, pks[n], names[n])
		if err != nil {
			b.Fatal(err)
		}
		buf = doc.AppendJSONFields(buf[:0], it.Doc, doc.NoSQL)
	}
	floor(b, func(i int) {
		if _, err := e.Get(context.Background(), nil, key(i*7919%benchDocs)); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkInsert parses, indexes and writes an item; the floor is a raw batch of the same number of keys.
func BenchmarkInsert(b *testing.B) {
	c, e := benchContainer(b)
	var n atomic.Int64
	n.Store(benchDocs)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = order(benchDocs + i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s := texts[i%len(texts)]
		s = fmt.Sprintf(`{"id":"n%010d",%s`, i, s[strings.IndexByte(s, ',')+1:])
		d, err := doc.FromJSON(nil, []byte(s), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
			b.Fatal(err)
		}
	}
	val := mustDoc(b, order(1))
	floor(b, func(i int) {
		var batch kv.Batch
		batch.Put(fmt.Appendf(nil, "\x31raw%032d", i), val)
		for k := range 31 {
			batch.Put(fmt.Appendf(nil, "\x31idx%02d%032d", k, i*7919%100003), []byte{1})
		}
		if _, err := e.Write(bg, &batch, nil); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkInsertByID is BenchmarkInsert where the partition key is the id, as in a MongoDB collection.
func BenchmarkInsertByID(b *testing.B) {
	e, _ := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{ID: "by id", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}})
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		d := mustDoc(b, fmt.Sprintf(`{"id":"n%010d","a":%d,"b":"x","c":[1,2],"d":{"e":%d}}`, i, i%100, i))
		if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplaceOneField replaces an item that differs in one field; the floor is a raw batch of six keys.
func BenchmarkReplaceOneField(b *testing.B) {
	c, e := benchContainer(b)
	docs := make([]doc.Doc, 1000)
	for i := range docs {
		docs[i] = mustDoc(b, strings.Replace(order(i), `"p0":`, `"p0":7`, 1))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := c.Write(bg, core.Write{Kind: core.Replace, Doc: docs[i%len(docs)]}); err != nil {
			b.Fatal(err)
		}
	}
	val := mustDoc(b, order(1))
	floor(b, func(i int) {
		var batch kv.Batch
		batch.Put(fmt.Appendf(nil, "\x31raw%032d", i%1000), val)
		for k := range 8 {
			batch.Put(fmt.Appendf(nil, "\x31idx%02d%032d", k, i%1000), []byte{1})
		}
		if _, err := e.Write(bg, &batch, nil); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkInsertSynced is a durable insert by 32 writers; the floor is raw durable batches of the same keys and bytes
// by as many writers.
func BenchmarkInsertSynced(b *testing.B) {
	e, kve := benchEngine(b, false)
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/tenant"}}})
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			d, err := doc.FromJSON(nil, []byte(order(int(n.Add(1)))), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				b.Error(err)
			}
			if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	const times, writers = 16000, 32
	val := mustDoc(b, order(1))
	start := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var batch kv.Batch
			for i := range times / writers {
				batch.Reset()
				batch.Put(fmt.Appendf(nil, "\x31raw%02d%032d", w, i), val)
				for k := range 31 {
					batch.Put(fmt.Appendf(nil, "\x31idx%02d%02d%040d", k, w, i*7919%100003), []byte{1})
				}
				cm, err := kve.Write(bg, &batch, nil)
				if err == nil {
					err = cm.Wait()
				}
				if err != nil {
					b.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	per := float64(time.Since(start).Nanoseconds()) / times
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/per, "x-floor")
}

func benchQuery(b *testing.B, c *core.Container, rows int, q func(i int) *exec.Query) {
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r, err := c.Query(bg, q(i))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for (rows < 0 || n < -rows || rows > 0) && r.Next() {
			n++
			if rows > 0 && n == rows && q(i).Limit > 0 {
				break
			}
		}
		if r.Err() != nil || n != rows {
			b.Fatalf("%d rows, %v, %s", n, r.Err(), r.Stats().Plan.Explain())
		}
		r.Close()
	}
}

// BenchmarkPartitionQuery filters the 100 items of a logical partition down to 20; the floor is a scan of 100 raw keys.
func BenchmarkPartitionQuery(b *testing.B) {
	c, e := benchContainer(b)
	key, _ := rawKeys(b, e, benchDocs)
	paid := value.StringOf("paid")
	benchQuery(b, c, 20, func(i int) *exec.Query {
		return &exec.Query{PK: pk(fmt.Sprintf("t%06d", i%100)), Pred: access.Eq(access.NewPath("status"), paid),
			Match: func(it *core.Item) (bool, error) { return value.EqualCosmos(doc.Get(it.Doc, "status"), paid), nil }}
	})
	floor(b, func(i int) {
		s := kvtest.Snapshot(b, e)
		it, err := s.Iter(key(i%9000), key(i%9000+100))
		if err != nil {
			b.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			_ = it.Value()
		}
		_ = it.Close()
		s.Close()
	})
}

// BenchmarkEquality finds 10 items over all partitions; the floor is 10 Gets.
func BenchmarkEquality(b *testing.B) {
	c, e := benchContainer(b)
	key, _ := rawKeys(b, e, benchDocs)
	benchQuery(b, c, 10, func(i int) *exec.Query {
		v := value.StringOf(fmt.Sprintf("c%07d", i%1000))
		return &exec.Query{Pred: access.Eq(access.NewPath("customer"), v),
			Match: func(it *core.Item) (bool, error) { return value.EqualCosmos(doc.Get(it.Doc, "customer"), v), nil }}
	})
	floor(b, func(i int) {
		for k := range 10 {
			if _, err := e.Get(context.Background(), nil, key((i*10+k)%benchDocs)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRangeOrder takes the first 20 items above a value in the value's order; the floor is 20 Gets.
func BenchmarkRangeOrder(b *testing.B) {
	c, e := benchContainer(b)
	key, _ := rawKeys(b, e, benchDocs)
	total := access.NewPath("total")
	benchQuery(b, c, 20, func(i int) *exec.Query {
		return &exec.Query{
			Pred:    access.Range(total, &access.Bound{Value: value.DoubleOf(float64(i % 900)), Inclusive: true}, nil),
			OrderBy: []exec.Order{{Path: total}}, Compare: value.CompareCosmos, Limit: 20}
	})
	floor(b, func(i int) {
		for k := range 20 {
			if _, err := e.Get(context.Background(), nil, key((i*20+k)%benchDocs)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkKeyed finds one item by its key as a query does.
func BenchmarkKeyed(b *testing.B) {
	c, _ := benchContainer(b)
	for _, partition := range []bool{false, true} {
		b.Run(fmt.Sprintf("partition=%v", partition), func(b *testing.B) {
			b.ReportAllocs()
			benchQuery(b, c, 1, func(i int) *exec.Query {
				n := i * 7919 % benchDocs
				p := value.StringOf(fmt.Sprintf("t%06d", n/100))
				q := &exec.Query{Pred: access.And(access.Eq(access.NewPath("tenant"), p),
					access.Eq(access.ID, value.StringOf(fmt.Sprintf("o%08d", n)))), Limit: 1,
					Match: func(it *core.Item) (bool, error) { return true, nil }}
				if partition {
					q.PK = core.PartitionKey{p}
				}
				return q
			})
		})
	}
}
