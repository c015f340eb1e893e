package admit_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/admit"
)

// items opens an engine with a container of n items.
func items(t *testing.T, n int) *core.Container {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","n":%d}`, i, i), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(context.Background(), core.Write{Kind: core.Create, Doc: d}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// scan reads all items of a container in small pieces, so that long computations yield the processor now and then.
func scan(t *testing.T, c *core.Container) {
	rows, err := c.Query(context.Background(), &exec.Query{Match: func(it *core.Item) (bool, error) {
		return doc.Get(it.Doc, "n").Kind() == value.String, nil
	}})
	if err != nil {
		t.Error(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
	}
	runtime.Gosched()
}

// crowd runs this many clients, which scan in a loop. It returns the median duration of admitted requests, the number
// of requests served in a second, and the number of refused ones. Requests that run at the end are completed, which
// takes long without a gate.
func crowd(t *testing.T, c *core.Container, g *admit.Gate, clients int) (median time.Duration, served, refused int) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	var no atomic.Int32
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				if err := g.Enter(context.Background()); err != nil {
					no.Add(1)
					time.Sleep(status.From(err).RetryAfter)
					continue
				}
				scan(t, c)
				g.Leave()
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took[len(took)/2], int(float64(len(took)) / time.Since(began).Seconds()), int(no.Load())
}

// With ten times as many clients as the gate always admits, queries of the real core take a fraction of the time that
// they take without the gate, though nearly as many are served.
func TestGateBeforeTheCore(t *testing.T) {
	c := items(t, 1000)
	const clients = 1280 // ten times as many as are always admitted
	var last string
	for range 10 { // other processes may use the processors, and then nothing can be said
		alone, _, _ := crowd(t, c, nil, 1)
		without, all, _ := crowd(t, c, nil, clients)
		g := admit.New(admit.Options{Running: 1000, Waiting: 1000, Wait: 50 * time.Millisecond})
		with, served, refused := crowd(t, c, g, clients)
		last = fmt.Sprintf("alone %v, %d clients without a gate %v (%d served a second), with it %v (%d served a "+
			"second, %d refused, limit %d)",
			alone, clients, without, all, with, served, refused, g.Limit())
		if g.Running() != 0 {
			t.Fatalf("%d run when all have left", g.Running())
		}
		if with < without/2 && served > all/2 && refused > 0 {
			t.Log(last)
			return
		}
	}
	t.Error(last)
}
