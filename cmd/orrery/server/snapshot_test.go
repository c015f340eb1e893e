package server

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// A snapshot of a directory while eight writers write is a whole store: each writer's items are there up to some one,
// and no later one. It takes no time that depends on the size. ORRERY_SNAPSHOT has the size of the store in MB; the
// limit of 100 ms holds on a machine that does nothing else.
func TestSnapshotUnderWriters(t *testing.T) {
	mb, limit := 16, 5*time.Second
	if n, err := strconv.Atoi(os.Getenv("ORRERY_SNAPSHOT")); err == nil {
		mb, limit = n, 100*time.Millisecond
	}
	const writers, size = 8, 8 << 10
	s := testServer(t, t.TempDir())
	ctx := context.Background()
	newDatabase(t, s, "db")
	if _, err := s.Engine().CreateContainer(ctx, "db", core.ContainerSpec{ID: "c",
		PartitionKey:   core.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2},
		IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)}); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", size)
	var done [writers]atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	write := func(w int, n int64) error {
		c, err := s.Engine().Container("db", "c")
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%d-%d", w, n)
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, text),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			return err
		}
		_, err = c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
		return err
	}
	for w := range writers {
		wg.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := write(w, n); err != nil {
					t.Error(err)
					return
				}
				done[w].Store(n + 1)
			}
		})
	}
	total := func() (n int64) {
		for w := range done {
			n += done[w].Load()
		}
		return n
	}
	for total() < int64(mb)<<20/size && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	before := total()
	began := time.Now()
	err := s.Snapshot("", "base")
	took := time.Since(began)
	after := total()
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a snapshot of %d items of %d bytes took %v; %d were written meanwhile", before, size, took, after-before)
	if took > limit {
		t.Errorf("a snapshot took %v, want at most %v", took, limit)
	}
	if err := s.Restore("", "base"); err != nil {
		t.Fatal(err)
	}
	c, err := s.Engine().Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.Count(ctx)
	if err != nil || n < before-writers || n > after+writers {
		t.Errorf("the snapshot has %d items, %v, want %d to %d", n, err, before, after)
	}
	if problems, err := s.Engine().Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("the restored store isn't clean: %v %v", problems, err)
	}
}
