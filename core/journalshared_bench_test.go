package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// BenchmarkJournalOfProcesses has one, two and three processes over one store whose calls take 2 ms. Each process has
// 16 clients that create items in a partition of its own, and a reader that follows the journal from the begin. The
// time ends when every reader has all entries: entries/s is what the journal takes. ratio is that to the creates of the
// same processes without a journal, and behind-ms how long the readers went on after the last create.
//
//	go test ./core -run - -bench JournalOfProcesses -benchtime 20000x
func BenchmarkJournalOfProcesses(b *testing.B) {
	for n := 1; n <= 3; n++ {
		bare := 0.0
		for _, recorded := range []bool{false, true} {
			b.Run(fmt.Sprintf("processes=%d/recorded=%t", n, recorded), func(b *testing.B) {
				rate := benchJournal(b, n, recorded)
				if !recorded {
					bare = rate
				}
				b.ReportMetric(rate/bare, "ratio")
			})
		}
	}
}

func benchJournal(b *testing.B, n int, recorded bool) float64 {
	store := kvtest.NewShared(memkv.New(), 1)
	var es []*core.Engine
	for i := range n {
		e, err := core.Open(bg, store.Engine(), core.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			store.SetFaults(kvtest.Faults{})
			if err := e.Close(); err != nil {
				b.Error(err)
			}
		})
		if i == 0 {
			newContainer(b, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 30000}})
		}
		es = append(es, e)
	}
	own := map[uint32]string{} // keys of different slots
	var keys []string
	for i := 0; len(keys) < 3; i++ {
		c, err := es[0].Container("db", "c")
		if err != nil {
			b.Fatal(err)
		}
		slot := put(b, c, core.Create, fmt.Sprintf(`{"id":"k","pk":"p%d"}`, i)).Slot.ID()
		if own[slot] == "" {
			own[slot] = fmt.Sprint("p", i)
			keys = append(keys, own[slot])
		}
	}
	var from []journal.Position
	for _, e := range es {
		if recorded {
			from = append(from, recordOf(b, e, "db", "c"))
		}
	}
	store.SetFaults(kvtest.Faults{Least: 2 * time.Millisecond, Most: 2 * time.Millisecond})
	ctx, cancel := context.WithTimeout(bg, 5*time.Minute)
	defer cancel()
	var readers, writers sync.WaitGroup
	var next atomic.Int64
	b.ResetTimer()
	for p, e := range es {
		if recorded {
			readers.Go(func() { followAll(ctx, b, e, from[p], b.N) })
		}
		c, err := e.Container("db", "c")
		if err != nil {
			b.Fatal(err)
		}
		for range 16 {
			writers.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					put(b, c, core.Create, fmt.Sprintf(`{"id":"i%d","pk":%q,"n":%d}`, i, keys[p], i))
				}
			})
		}
	}
	writers.Wait()
	wrote := time.Now()
	readers.Wait()
	b.StopTimer()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "entries/s")
	if recorded {
		b.ReportMetric(float64(time.Since(wrote).Microseconds())/1e3, "behind-ms")
	}
	return rate
}

// followAll follows the journal until n changes were read.
func followAll(ctx context.Context, b *testing.B, e *core.Engine, pos journal.Position, n int) {
	topic := e.Journal().Watch(journal.Namespace{DB: "db", Coll: "c"})
	defer topic.Leave()
	for got := 0; got < n; {
		p, err := e.Journal().Read(ctx, pos, 1000, func(e *journal.Entry) bool { return e.Op != journal.Mark })
		if err != nil {
			b.Errorf("after %d of %d: %v", got, n, err)
			return
		}
		got, pos = got+len(p.Entries), p.Next
		if len(p.Entries) == 0 && !p.More && !topic.Wait(ctx, pos.Time) {
			b.Errorf("only %d entries of %d", got, n)
			return
		}
	}
}
