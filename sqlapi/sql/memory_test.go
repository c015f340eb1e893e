package sql

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// arrays is a container of items with arrays of 1,000 unique numbers each, so that FROM x IN c.a makes many rows of few
// items.
func arrays(t testing.TB, items int, b *budget.Budget) *core.Container {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 1, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
		IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)}
	c, err := e.CreateContainer(context.Background(), "d", spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		var s strings.Builder
		fmt.Fprintf(&s, `{"id":"%d","a":[`, i)
		for k := range 1000 {
			if k > 0 {
				s.WriteByte(',')
			}
			fmt.Fprint(&s, i*1000+k)
		}
		s.WriteString("]}")
		d, err := doc.FromJSON(nil, []byte(s.String()), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	return c
}

// firstPage runs the first page of a query.
func firstPage(ctx context.Context, c *core.Container, text string) (string, error) {
	pl, err := Compile(text, nil, testEnv)
	if err != nil {
		return "", err
	}
	out := &Page{}
	err = pl.Execute(ctx, c, Request{PageSize: 1}, out)
	return string(out.Body), err
}

// gathering are queries that keep each of the 1,000 rows of 300 items, with their first result.
var gathering = map[string]string{
	`SELECT COUNT(1) AS n, x FROM c JOIN x IN c.a GROUP BY x`:                                      `{"n":1,"x":0}`,
	`SELECT VALUE y FROM (SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x OFFSET 0 LIMIT 300000) y`: `0`,
	`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x FROM c JOIN x IN c.a) y`:                  `300000`,
}

// liveHeap returns the bytes that the last garbage collection has left.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// Eight queries with 300,000 groups, rows or values each share 64 MiB. Each one is answered correctly or refused, and
// the process uses little more.
func TestGatheringQueriesShareTheBudget(t *testing.T) {
	const limit = 64 << 20
	b := budget.New(limit, limit)
	c := arrays(t, 300, b)
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	runtime.GC()
	before := liveHeap()
	var most atomic.Int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				most.Store(max(most.Load(), liveHeap()))
			}
		}
	})
	refused := atomic.Int32{}
	for text, want := range gathering {
		if testing.Short() && !strings.Contains(text, "GROUP BY") {
			continue
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := firstPage(context.Background(), c, text)
				switch {
				case status.Is(err, status.MemoryLimit):
					refused.Add(1)
				case status.Is(err, status.TooManyRequests):
					refused.Add(1)
					if status.From(err).RetryAfter <= 0 {
						t.Errorf("%s: no time to come again", text)
					}
				case err != nil || got != want:
					t.Errorf("%s: %q, %v", text, got, err)
				}
			})
		}
		wg.Wait()
		if b.Used() != 0 {
			t.Errorf("%s: %d bytes are left over", text, b.Used())
		}
	}
	close(stop)
	watch.Wait()
	if held := most.Load() - before; held > limit*3/2 {
		t.Errorf("%d MiB were held, of a budget of %d", held>>20, limit>>20)
	}
	if refused.Load() == 0 {
		t.Error("nothing was refused: the queries gather too little")
	}
}

// The memory that is charged for a query is about what it uses.
func TestChargedMemoryIsWhatIsHeld(t *testing.T) {
	b := budget.New(1<<30, 0)
	c := arrays(t, 100, b)
	for text := range gathering {
		runtime.GC()
		before := liveHeap()
		held, charged := int64(0), int64(0)
		env := *testEnv
		rows := 0
		env.ItemJSON = nil
		pl, err := Compile(strings.ReplaceAll(text, "300000", "100000"), nil, &env)
		if err != nil {
			t.Fatal(err)
		}
		f := pl.p.frame(pl.vals)
		pl.p.release(f)
		ctx := &watchedContext{Context: context.Background(), see: func() {
			if rows++; rows%6 == 0 { // a garbage collection is slow
				runtime.GC()
				held, charged = max(held, liveHeap()-before), max(charged, b.Used())
			}
		}}
		if err := pl.Execute(ctx, c, Request{PageSize: 1}, &Page{}); err != nil {
			t.Fatal(err)
		}
		if charged < held*2/3 || charged > held*2 || held < 4<<20 {
			t.Errorf("%s: %d KiB were charged for %d that were held", text, charged>>10, held>>10)
		}
	}
}

// watchedContext counts the calls of Err.
type watchedContext struct {
	context.Context
	see func()
}

func (c *watchedContext) Err() error {
	c.see()
	return c.Context.Err()
}

// A query whose client has disconnected ends soon, in every phase.
func TestQueriesEndWithTheirContext(t *testing.T) {
	c := arrays(t, 60, nil)
	texts := []string{
		`SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a`,
		`SELECT VALUE COUNT(1) FROM c WHERE EXISTS (SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a WHERE x + y = -1)`,
		`SELECT x, y FROM c JOIN x IN c.a JOIN y IN c.a GROUP BY x, y`,
		`SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a JOIN y IN c.a ORDER BY y OFFSET 0 LIMIT 10) FROM c`,
	}
	for _, text := range texts {
		checks := 0
		ctx, cancel := context.WithCancel(context.Background())
		var ended time.Time
		watched := &watchedContext{Context: ctx, see: func() {
			if checks++; checks == 5 {
				ended = time.Now()
				cancel()
			}
		}}
		_, err := firstPage(watched, c, text)
		if err == nil || checks < 5 {
			t.Errorf("%s: %v after %d checks", text, err, checks)
		} else if took := time.Since(ended); took > time.Second {
			t.Errorf("%s: went on for %v", text, took)
		}
	}
}

// A sub-query with ORDER BY and a limit keeps only the rows that it returns, in order, equal ones in their original
// order.
func TestSubqueryKeepsTheFirstRows(t *testing.T) {
	b := budget.New(1<<20, 0)
	c := arrays(t, 30, b) // a thousand of 30,000 rows fit
	for text, want := range map[string]string{
		`SELECT VALUE ARRAY(SELECT VALUE y FROM (SELECT VALUE x FROM x IN c.a ORDER BY x DESC OFFSET 1 LIMIT 3) y) FROM c WHERE c.id = "0"`:        `[998,997,996]`,
		`SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a ORDER BY x % 10 = 0 DESC, x < 500 OFFSET 48 LIMIT 4) FROM c WHERE c.id = "0"`:             `[980,990,0,10]`,
		`SELECT VALUE ARRAY(SELECT TOP 2 VALUE x > 3 ? x : undefined FROM x IN c.a ORDER BY x) FROM c WHERE c.id = "0"`:                            `[4,5]`,
		`SELECT VALUE ARRAY(SELECT DISTINCT TOP 3 VALUE x % 7 FROM x IN c.a ORDER BY x % 7 DESC) FROM c WHERE c.id = "0"`:                          `[6,5,4]`,
		`SELECT VALUE ARRAY(SELECT VALUE y FROM (SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x DESC OFFSET 0 LIMIT 0) y) FROM c WHERE c.id = "0"`: `[]`,
		`SELECT VALUE (SELECT TOP 1 VALUE x FROM x IN c.a ORDER BY x DESC) FROM c WHERE c.id = "0"`:                                                `999`,
		`SELECT VALUE MAX(y) FROM (SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x OFFSET 0 LIMIT 20) y`:                                            `19`,
	} {
		got, err := firstPage(context.Background(), c, text)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	_, err := firstPage(context.Background(), c,
		`SELECT VALUE MAX(y) FROM (SELECT VALUE x FROM c JOIN x IN c.a ORDER BY x OFFSET 0 LIMIT 29000) y`)
	if !status.Is(err, status.MemoryLimit) {
		t.Errorf("rows for which there is no memory: %v", err)
	}
}
