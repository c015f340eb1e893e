package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/work"
)

// eventually waits until f returns an empty text, which says what is missing.
func eventually(t *testing.T, f func() string) {
	t.Helper()
	missing := f()
	for end := time.Now().Add(20 * time.Second); missing != "" && time.Now().Before(end); missing = f() {
		time.Sleep(10 * time.Millisecond)
	}
	if missing != "" {
		t.Fatal(missing)
	}
}

// /status of each server over a shared store lists all of them, also those that have nothing to do, with their versions
// and addresses. One that ends isn't listed any more.
func TestStatusListsAllProcesses(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var all []*Server
	for i := range 3 {
		s, _ := whole(t, func(c *Config) {
			over(store)(c)
			c.Version = fmt.Sprint("version ", i)
		})
		all = append(all, s)
	}
	for i, s := range all {
		eventually(t, func() string {
			seen, mine := map[string]bool{}, 0
			for _, p := range s.status(context.Background()).Processes {
				if p.ID == "" || p.Started == "" || !strings.HasSuffix(p.Name, fmt.Sprint("/", os.Getpid())) {
					t.Fatalf("%+v", p)
				}
				seen[p.Version+" at "+p.Addresses[Mongo]] = true
				if p.Mine {
					mine++
					if p.Version != s.cfg.Version || p.ID != s.Engine().ProcessID() || p.Silent != 0 {
						t.Errorf("server %d takes another one for itself: %+v", i, p)
					}
				}
			}
			for _, other := range all {
				if !seen[other.cfg.Version+" at "+other.Addr(Mongo)] {
					return fmt.Sprintf("server %d knows %v", i, slices.Collect(maps.Keys(seen)))
				}
			}
			if len(seen) != len(all) || mine != 1 {
				t.Errorf("server %d knows %v, %d of them are itself", i, seen, mine)
			}
			return ""
		})
	}
	stop(t, all[0], 5*time.Second)
	if left := all[1].status(context.Background()).Processes; len(left) != 2 {
		t.Errorf("after the end of one: %+v", left)
	}
}

// A local store has one process, which is not listed.
func TestStatusOfALocalStore(t *testing.T) {
	s, _ := whole(t, nil)
	if st := s.status(context.Background()); st.Processes != nil || st.Leases != nil || s.Engine().ProcessID() != "" {
		t.Errorf("%+v, %+v, process %q", st.Processes, st.Leases, s.Engine().ProcessID())
	}
}

// The report of a container's partitions names the processes that do background work for it, and says how many writes
// wait.
func TestPartitionsOfASharedStore(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	s, ctx := whole(t, over(store))
	eng := s.Engine()
	if _, err := eng.EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"other", "c"} {
		if _, err := eng.CreateContainer(ctx, "db", core.ContainerSpec{ID: id,
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
			t.Fatal(err)
		}
	}
	ct, err := eng.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	group := work.New(nil)
	another := lease.New(store.Engine(), clock.New(), group, 0)
	another.Announce(`{"name":"somewhere/1"}`)
	report := func(id string) *PartitionsReport {
		r, err := AskForPartitions(ctx, "http://"+s.Addr(Admin), s.Key(), "db", id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var r *PartitionsReport
	var held *lease.Lease
	for gen := uint32(1); r == nil || len(r.Leases) == 0; gen++ { // containers have small numbers; this finds that of c
		if held != nil {
			held.Release()
		}
		if held, err = another.Acquire(ctx, lease.Name{Kind: lease.Expiry, Gen: gen}); err != nil {
			t.Fatal(err)
		}
		r = report("c")
	}
	if len(r.Leases) != 1 || r.Leases[0].Work != "expiry" || r.Leases[0].Process != another.Process() ||
		r.Leases[0].Name != "somewhere/1" || r.Leases[0].Mine || r.Leases[0].Container != "db/c" || r.Waiting != 0 {
		t.Errorf("%+v", r)
	}
	if r := report("other"); len(r.Leases) > 0 {
		t.Errorf("of another container: %+v", r.Leases)
	}
	held.Release()
	if r := report("c"); len(r.Leases) > 0 {
		t.Errorf("after the release: %+v", r.Leases)
	}
	group.Close()
	another.Close()

	// Writers of one partition wait for each other's commits, which take long here.
	store.SetFaults(kvtest.Faults{Least: 20 * time.Millisecond, Most: 20 * time.Millisecond})
	writing, end := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p"}`, i), doc.JSONOptions{Names: doc.NoSQL})
			for err == nil && writing.Err() == nil {
				_, err = ct.Write(ctx, core.Write{Kind: core.Upsert, Doc: d})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, func() string {
		if n := report("c").Waiting; n < 1 || n > 8 {
			return fmt.Sprintf("%d writes wait", n)
		}
		return ""
	})
	end()
	writers.Wait()
	store.SetFaults(kvtest.Faults{})
}
