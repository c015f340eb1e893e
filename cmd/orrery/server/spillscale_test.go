package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// spillEnv is the number of items of a kilobyte that TestSpillAtScale sorts, groups and makes distinct. With a number
// it uses the server's own limits and ten concurrent queries, and fails if the process uses more than mostMemory. In a
// build without cgo, like the server's, Go's memory limit applies to the whole process.
const spillEnv = "ORRERY_SPILL"

// mostMemory is the memory that the process may use with the server's own limits, in bytes.
const mostMemory = 600 << 20

// TestSpillAtScale sorts items without an index, groups them, and reads their distinct rows, in SQL and as a graph,
// with much less memory than their size: one query alone, then several at once. Each returns all rows in order, and
// their files are removed.
func TestSpillAtScale(t *testing.T) {
	cfg := Default()
	cfg.Data, cfg.Durability = t.TempDir(), "relaxed"
	items, at := 20_000, 3
	scale, err := strconv.Atoi(os.Getenv(spillEnv))
	if full := err == nil && scale > 0; full {
		items, at = scale, 10
		cfg.LimitMemory()
		defer debug.SetGCPercent(debug.SetGCPercent(50)) // as the server does
	} else {
		cfg.CacheMB, cfg.MemoryMB = 1, 1+8
	}
	b, err := openBackend(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := b.(*backing).eng
	c := loadUnindexed(t, e, items)
	p := watchMemory(e)
	queries := map[string]func() error{
		"sort": func() error { return sortAll(c, items) },
		"group": func() error {
			return allRows(c, `SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g`, `"n":2}`, items/2)
		},
		"distinct": func() error { return allRows(c, `SELECT DISTINCT c.g, c.n FROM c`, `{"g":`, items) },
	}
	maps.Copy(queries, graphQueries(e, c, items))
	for _, n := range []int{1, at} {
		for name, query := range queries {
			began, before := time.Now(), e.Spill().Written()
			for range 20 { // queries that happen to run one after the other may each have enough memory
				if err := atOnce(n, query); err != nil {
					t.Errorf("%d of %s: %v", n, name, err)
				}
				if n == 1 || e.Spill().Written() > before {
					break
				}
			}
			t.Logf("%s of %d items, %d at once: %v, %d MiB written, process %d MiB, budget %d MiB", name, items, n,
				time.Since(began).Round(time.Millisecond), (e.Spill().Written()-before)>>20, p.process.Swap(0)>>20,
				p.budget.Load()>>20)
			if e.Spill().Written() == before && (n > 1 || name == "sort") {
				t.Errorf("%d of %s: nothing was written", n, name)
			}
		}
	}
	p.stop()
	if most := e.Budget().Limit() + int64(at)<<20; p.budget.Load() > most {
		t.Errorf("requests held %d bytes of %d", p.budget.Load(), e.Budget().Limit())
	}
	if items == scale && p.most.Load() > mostMemory {
		t.Errorf("the process took %d MiB", p.most.Load()>>20)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := e.Spill().Files(); n != 0 {
		t.Errorf("%d files are open", n)
	}
	if left, err := os.ReadDir(spillDir(cfg.Data)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// loadUnindexed makes a container of items of a kilobyte without an index. n is a permutation of their numbers, and g
// has half as many values.
func loadUnindexed(t *testing.T, e *core.Engine, items int) *core.Container {
	ctx := context.Background()
	if _, err := e.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(ctx, "db", core.ContainerSpec{ID: "c",
		PartitionKey:   core.PartitionKeyDef{Paths: []string{"/id"}},
		IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("some text ", 93)
	const batch = 1000
	for i := 0; i < items; i += batch {
		ws := make([]core.Write, 0, batch)
		for k := i; k < min(i+batch, items); k++ {
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","n":%d,"g":%d,"text":%q}`, k,
				k*7919%items, k*104729%(items/2), text), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			ws = append(ws, core.Write{Kind: core.Create, Doc: d})
		}
		for _, o := range c.WriteMany(ctx, ws, false) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
	}
	return c
}

// atOnce runs a query n times concurrently.
func atOnce(n int, query func() error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = query() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// sortAll reads all items in the order of n, which no index has.
func sortAll(c *core.Container, items int) error {
	rows, err := c.Query(context.Background(), &exec.Query{OrderBy: []exec.Order{{Path: access.NewPath("n")}},
		Compare: value.CompareCosmos})
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		d := rows.Item().Doc
		if got := value.Lookup(d, "n").Int(); got != int64(n) || len(d) < 900 {
			return fmt.Errorf("row %d is %d", n, got)
		}
	}
	if rows.Err() == nil && n != items {
		return fmt.Errorf("%d rows", n)
	}
	return rows.Err()
}

// allRows reads the pages of a query that gives so many rows, each with some text.
func allRows(c *core.Container, query, text string, want int) error {
	pl, err := sql.Compile(query, nil, nil)
	if err != nil {
		return err
	}
	rows, charge, most := 0, 0.0, 0.0
	for req := (sql.Request{}); ; {
		page := sql.Page{}
		if err := pl.Execute(context.Background(), c, req, &page); err != nil {
			return err
		}
		rows += page.Count
		charge, most = charge+page.Charge, max(most, page.Charge)
		if n := bytes.Count(page.Body, []byte(text)); n != page.Count {
			return fmt.Errorf("%d of %d rows have %s", n, page.Count, text)
		}
		if req.Continuation = page.Continuation; req.Continuation == "" {
			break
		}
	}
	if rows != want || charge > 1.5*most+10 {
		return fmt.Errorf("%d rows for %.0f RU, the most expensive page %.0f", rows, charge, most)
	}
	return nil
}

// peaks are the largest amounts of memory of the process and of its requests.
type peaks struct {
	process, most, budget atomic.Int64
	end                   chan struct{}
	done                  sync.WaitGroup
}

// watchMemory samples the memory until stop.
func watchMemory(e *core.Engine) *peaks {
	p := &peaks{end: make(chan struct{})}
	p.done.Go(func() {
		for {
			n := resident()
			p.process.Store(max(p.process.Load(), n))
			p.most.Store(max(p.most.Load(), n))
			p.budget.Store(max(p.budget.Load(), e.Budget().Used()))
			select {
			case <-p.end:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return p
}

func (p *peaks) stop() {
	close(p.end)
	p.done.Wait()
}

// resident returns the memory of the process in bytes: from the system if possible, else from Go's runtime.
func resident() int64 {
	if b, err := os.ReadFile(filepath.FromSlash("/proc/self/statm")); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return n * int64(os.Getpagesize())
			}
		}
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
