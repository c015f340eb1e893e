package server

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// Snapshot, fork and restore while eight clients write give whole stores: each client's items up to some one, and no
// later one. None of them takes a time that depends on the size. ORRERY_SNAPSHOT has the size of the store in MB; the
// limit is 100 ms then, which isn't always kept in a directory (docs/testing.md).
func TestSnapshotUnderWriters(t *testing.T) {
	for _, kind := range []string{"memory", "directory"} {
		t.Run(kind, func(t *testing.T) {
			mb, limit := 16, 5*time.Second
			if n, err := strconv.Atoi(os.Getenv("ORRERY_SNAPSHOT")); err == nil {
				mb, limit = n, 100*time.Millisecond
			}
			dir := ""
			if kind == "directory" {
				dir = t.TempDir()
			}
			s := testServer(t, dir)
			w := startWriters(t, s, mb)
			for _, step := range []struct {
				name string
				do   func() error
			}{
				{"snapshot", func() error { return s.Snapshot("", "base") }},
				{"fork", func() error { _, err := s.Fork("base", "", "forked"); return err }},
				{"restore", func() error { return s.Restore("", "base") }},
			} {
				before, began := w.written(), time.Now()
				err := step.do()
				took := time.Since(began)
				t.Logf("%s beside %d items took %v; %d were written meanwhile", step.name, before, took,
					w.written()-before)
				if err != nil || took > limit {
					t.Errorf("%s: %v after %v, want at most %v", step.name, err, took, limit)
				}
				for now := w.written(); w.written() < now+writers && !t.Failed(); {
					time.Sleep(time.Millisecond)
				}
			}
			w.end()
			forked, err := s.accountNamed("forked")
			if err != nil {
				t.Fatal(err)
			}
			if least := int64(mb) << 20 / itemSize; contiguous(t, forked) < least {
				t.Errorf("the fork has not the %d items that were written before", least)
			}
			for _, a := range []*Server{s, forked} {
				if problems, err := a.Engine().Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("account %s isn't clean: %v %v", a.cfg.Account, problems, err)
				}
			}
		})
	}
}

const writers, itemSize = 8, 8 << 10

// writing is clients of the MongoDB API that insert items W-0, W-1, .. each.
type writing struct {
	t    *testing.T
	done [writers]atomic.Int64
	stop atomic.Bool
	wait sync.WaitGroup
}

// startWriters starts the clients, and returns when they have written so many MB.
func startWriters(t *testing.T, s *Server, mb int) *writing {
	t.Helper()
	newDatabase(t, s, "db")
	if _, err := s.Engine().CreateContainer(t.Context(), "db", core.ContainerSpec{ID: "c",
		PartitionKey:   core.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2},
		IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)}); err != nil {
		t.Fatal(err)
	}
	w := &writing{t: t}
	// Letters without repetition, of which each item has a part: a store compresses them by a quarter at most.
	letters := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[random.IntN(64)]
	}
	var single atomic.Bool // one item with each request, and not many of them
	for n := range writers {
		c, err := s.dialMongo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.wait.Go(func() {
			defer c.Close()
			for next := 0; !w.stop.Load(); {
				var docs []string
				for range 64 {
					at := (next*writers + n) * 997 % (len(letters) - itemSize)
					docs = append(docs, fmt.Sprintf(`{"_id":"%d-%d","text":"%s"}`, n, next, letters[at:at+itemSize]))
					if next++; single.Load() {
						break
					}
				}
				_, err := c.run(`{"insert":"c","documents":[` + strings.Join(docs, ",") + `],"$db":"db"}`)
				if err != nil {
					t.Error(err)
					return
				}
				w.done[n].Store(int64(next))
			}
		})
	}
	t.Cleanup(w.end)
	for w.written() < int64(mb)<<20/itemSize && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	single.Store(true)
	return w
}

func (w *writing) written() (n int64) {
	for i := range w.done {
		n += w.done[i].Load()
	}
	return n
}

func (w *writing) end() {
	w.stop.Store(true)
	w.wait.Wait()
}

// contiguous counts the items of an account, and checks that no writer's item is missing before another one.
func contiguous(t *testing.T, s *Server) (n int64) {
	t.Helper()
	c, err := s.Engine().Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		for i := 0; ; i++ {
			id := value.StringOf(fmt.Sprintf("%d-%d", w, i))
			if _, err := c.Read(t.Context(), core.PartitionKey{id}, id); err != nil {
				break
			}
			n++
		}
	}
	if all, err := c.Count(t.Context()); err != nil || all != n {
		t.Errorf("%d items, of which %d follow each other: %v", all, n, err)
	}
	return n
}
