package core_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// agedProcesses opens a store of an older format with several processes. fill fills it before.
func agedProcesses(t *testing.T, n int, f kvtest.Faults, fill func(e *core.Engine)) *processes {
	mem := memkv.New()
	e, err := core.Open(bg, notClosed{mem}, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	fill(e)
	_ = e.Close()
	if n := age(t, mem); n == 0 {
		t.Fatal("no entries")
	}
	return processesOver(t, mem, n, f)
}

// byIndex waits until a process answers an equality by the index.
func byIndex(t *testing.T, c *core.Container) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p, err := c.Explain(bg, eqQuery("n", 3))
		if err == nil && p.Kind == access.Index {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("an equality is answered by %s (%v)", p.Explain(), err)
		}
	}
}

// The containers of a store that several processes share are upgraded once, while all processes answer as before.
func TestSharedUpgrade(t *testing.T) {
	t.Parallel()
	var want map[string][]string
	ps := agedProcesses(t, 3, network, func(e *core.Engine) {
		fillAged(t, e, 60)
		want = askAged(t, e)
	})
	for i, e := range ps.all {
		sameAnswers(t, fmt.Sprintf("process %d at once", i), askAged(t, e), want)
	}
	for i, e := range ps.all {
		upgraded(t, e)
		sameAnswers(t, fmt.Sprintf("process %d in the end", i), askAged(t, e), want)
		c, err := e.Container("db", "plain")
		if err != nil {
			t.Fatal(err)
		}
		byIndex(t, c)
		if n := c.IndexProgress(); n != 100 {
			t.Errorf("process %d has indexed %d %%", i, n)
		}
	}
	noFormer(t, ps.kvs[0])
	e, err := core.Open(bg, ps.store.Engine(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if st, under := e.Upgrading(); under {
		t.Errorf("a process that is started afterwards upgrades again: %+v", st)
	}
}

// Processes write, read and query during the upgrade. Calls fail and have unknown outcomes, and the process that works
// is killed again and again. Another one goes on, and no answer is wrong.
func TestSharedUpgradeAmongFaults(t *testing.T) {
	t.Parallel()
	const items = 1000
	ps := agedProcesses(t, 3, kvtest.Faults{}, func(e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range items {
			put(t, c, core.Create, agedDoc(i))
		}
	})
	faults := kvtest.Faults{Most: 500 * time.Microsecond, Unavailable: 0.01, Unknown: 0.01, Late: 2 * time.Millisecond}
	ps.store.SetFaults(faults)
	stop, over := make(chan bool), make(chan bool)
	var wg, clocks sync.WaitGroup
	defer clocks.Wait()
	defer close(over)
	clocks.Go(func() { // leases of processes that were killed end
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				for _, c := range ps.clks {
					c.Advance(5 * time.Millisecond)
				}
			}
		}
	})
	for w := range 2 { // of process 1: a failed write is tried again
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := n*7%(items/2)*2 + w
				c, err := ps.all[1].Container("db", "c")
				if err == nil {
					_, err = c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, agedDoc(i))})
				}
				if err != nil && !status.Is(err, status.Unavailable) && !status.Is(err, status.UnknownOutcome) {
					t.Error(err)
				}
			}
		})
	}
	during := 0
	for range 8 { // process 0 and 2 are killed and started
		for _, i := range []int{0, 2} {
			time.Sleep(20 * time.Millisecond)
			if _, under := ps.all[i].Upgrading(); under {
				during++
			}
			ps.kvs[i].Kill()
			_ = ps.all[i].Close()
			ps.store.SetFaults(kvtest.Faults{}) // a server that can't read the catalog doesn't start
			ps.start(i)
			ps.store.SetFaults(faults)
			c, err := ps.all[i].Container("db", "c")
			if status.Is(err, status.Unavailable) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			q := eqQuery("n", 3)
			r, err := c.Query(bg, q)
			n := 0
			for err == nil && r.Next() {
				n++
			}
			if r != nil {
				if err == nil {
					err = r.Err()
				}
				r.Close()
			}
			if err == nil && n != items/20 {
				t.Errorf("process %d finds %d rows", i, n)
			}
		}
	}
	close(stop)
	wg.Wait()
	if t.Logf("%d processes were killed during the upgrade", during); during < 3 {
		t.Errorf("only %d processes were killed during the upgrade", during)
	}
	ps.store.SetFaults(kvtest.Faults{})
	for _, e := range ps.all {
		waitUpgraded(t, e)
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		byIndex(t, c)
		if n := len(ids(t, c, eqQuery("n", 3))); n != items/20 {
			t.Errorf("%d rows in the end", n)
		}
	}
	noFormer(t, ps.kvs[0])
}

// waitUpgraded waits for the end of an upgrade that may have had problems.
func waitUpgraded(t *testing.T, e *core.Engine) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		st, under := e.Upgrading()
		if !under {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the upgrade is at %+v", st)
		}
	}
}

// Slots whose index entries follow an unknown policy are indexed again in a shared store too.
func TestSharedIndexOfUnknownPolicy(t *testing.T) {
	const items = 100
	mem := memkv.New()
	e, err := core.Open(bg, notClosed{mem}, core.Options{MinSlots: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range items {
		put(t, c, core.Create, agedDoc(i))
	}
	_ = e.Close()
	var b kv.Batch
	ks, vs := every(t, mem)
	for i, k := range ks {
		slot, kind, _ := keys.ParseSlot(k)
		switch {
		case kind == keys.KindHead:
			vs[i][2+8*4+3] = 77 // the version of the policy
			b.Put(k, vs[i])
		case kind == keys.KindIndex && i%3 == 0:
			b.Delete(k)
			b.Put(append(keys.AppendIndexPath(nil, slot, 12345), k[keys.PrefixLen+8:]...), vs[i])
		}
	}
	if _, err := mem.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	ps := processesOver(t, mem, 2, network)
	for i, e := range ps.all {
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Upsert, agedDoc(i))
		if n := len(ids(t, c, eqQuery("n", 3))); n != items/20 {
			t.Errorf("process %d finds %d rows at once", i, n)
		}
	}
	for _, e := range ps.all {
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WaitIndex(bg); err != nil {
			t.Fatal(err)
		}
		byIndex(t, c)
		if n := len(ids(t, c, &exec.Query{OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos})); n != items {
			t.Errorf("%d rows in order", n)
		}
	}
}
