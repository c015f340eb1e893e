package core_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// cappedSpec is a capped container for so many items.
func cappedSpec(items int64) core.ContainerSpec {
	return core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
		Capped: &core.Capped{Bytes: 1 << 30, Items: items}}
}

// cappedTail reads a capped container in the order of insertion.
type cappedTail struct {
	t    testing.TB
	c    *core.Container
	at   string // continuation
	mark uint64
	news core.News
	got  []string
}

// newCappedTail begins to read. The caller calls news.Leave.
func newCappedTail(t testing.TB, c *core.Container) *cappedTail {
	return &cappedTail{t: t, c: c, news: c.Changed()}
}

// read reads what is new.
func (r *cappedTail) read() {
	r.mark, _ = r.news.News(r.mark)
	bound := r.c.Settled()
	rows, err := r.c.Query(bg, &exec.Query{PlanHash: 1, Shown: exec.Oldest, Continuation: r.at, Number: true})
	if err != nil {
		if !status.Is(err, status.Unavailable) { // a fault: the next read goes on
			r.t.Error(err)
		}
		return
	}
	defer rows.Close()
	for rows.Next() && core.CounterOf(rows.Item()) < bound {
		r.got = append(r.got, rows.Item().ID().Str())
		r.at = rows.Continuation()
	}
	if err := rows.Err(); err != nil && !status.Is(err, status.Unavailable) {
		r.t.Error(err)
	}
}

// wait waits until something may be new.
func (r *cappedTail) wait(most time.Duration) bool {
	woken := make(chan struct{})
	stop := r.news.Notify(r.mark, func() { close(woken) })
	if stop == nil {
		return true
	}
	defer stop()
	select {
	case <-woken:
		return true
	case <-time.After(most):
		return false
	}
}

// TestCappedOrder: writers of a capped container write in all processes at once, alone and with others, while its slots
// are split. Readers that follow them in each process have all items, each once, in one order. In this order are the
// items of each writer.
func TestCappedOrder(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, cappedSpec(0))
		cappedOrder(t, append(twinsOf(c), c), overNetwork(60, 10), true)
	})
}

// TestCappedOrderWithFaults: the order is one also if calls fail, and the outcome of commits is unknown.
func TestCappedOrderWithFaults(t *testing.T) {
	t.Parallel()
	ps := startProcesses(t, 3, network)
	cs := ps.containers(cappedSpec(0))
	ps.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unavailable: 0.005, Unknown: 0.03,
		Late: 5 * time.Millisecond})
	cappedOrder(t, cs, 40, false)
	ps.store.SetFaults(kvtest.Faults{})
}

// TestCappedCreates: of several processes that create one item, one succeeds, also if the outcome of commits is
// unknown: a number that a lost commit would have given may be that of another process's item.
func TestCappedCreates(t *testing.T) {
	ps := startProcesses(t, 3, network)
	cs := ps.containers(cappedSpec(0))
	ps.store.SetFaults(kvtest.Faults{Most: time.Millisecond, Unknown: 0.3, Late: 5 * time.Millisecond})
	for i := range 60 {
		var made atomic.Int64
		ps.each(1, func(p, _ int) {
			_, err := cs[p].Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t,
				fmt.Sprintf(`{"id":"%d","by":%d}`, i, p))})
			if err == nil {
				made.Add(1)
			}
		})
		if n := made.Load(); n > 1 {
			t.Fatalf("%d processes have created item %d", n, i)
		}
	}
	ps.store.SetFaults(kvtest.Faults{})
	time.Sleep(20 * time.Millisecond) // commits that are on their way
}

// cappedOrder tests a container by its handles in all processes. each is the number of writes of a writer. Where calls
// fail some of them may be missing.
func cappedOrder(t *testing.T, cs []*core.Container, each int, all bool) {
	const writers = 3 // of a process
	var wg, readers sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	for p, c := range cs {
		for w := range writers {
			wg.Go(func() {
				for i := 0; i < each; i++ {
					n := 1
					if w == 0 {
						n = 3
					}
					var ws []core.Write
					for k := range n {
						ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t,
							fmt.Sprintf(`{"id":"%d.%d.%05d"}`, p, w, 10*i+k))})
					}
					out := c.WriteMany(bg, ws, true)
					mu.Lock()
					for k, o := range out {
						if o.Err == nil {
							acknowledged[value.ObjectOf(ws[k].Doc).Get("_id").Str()] = true
						} else if all {
							t.Error(o.Err)
						}
					}
					mu.Unlock()
				}
			})
		}
	}
	tails, done := make([]*cappedTail, len(cs)), make(chan struct{})
	for p, c := range cs {
		tails[p] = newCappedTail(t, c)
		readers.Go(func() {
			for over := false; !over; {
				select {
				case <-done:
					over = true
				default:
					tails[p].wait(20 * time.Millisecond)
				}
				tails[p].read()
			}
		})
	}
	if all {
		wg.Go(func() {
			if err := cs[0].SplitSlot(bg, epk.Split(epk.V2, 32)[3]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	time.Sleep(20 * time.Millisecond) // commits of unknown outcome that are on their way
	close(done)
	readers.Wait()
	for p, tail := range tails {
		tail.read()
		tail.news.Leave()
		if !slices.Equal(tail.got, tails[0].got) {
			t.Fatalf("process %d has the order %v, and process 0 %v", p, tail.got, tails[0].got)
		}
	}
	last, seen := map[string]string{}, map[string]bool{}
	for _, id := range tails[0].got {
		if seen[id] {
			t.Errorf("%s was read twice", id)
		}
		seen[id] = true
		if by := id[:3]; last[by] > id {
			t.Errorf("%s is after %s", id, last[by])
		} else {
			last[by] = id
		}
	}
	for id := range acknowledged {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
	if all && len(seen) != len(acknowledged) {
		t.Errorf("%d items were read, and %d were written", len(seen), len(acknowledged))
	}
}

// TestCappedKeepsTheNewest: when all processes write at once, a capped container has the newest items afterwards, as
// many as it may have, and before that never fewer. An item of a removed one's id is a new one.
func TestCappedKeepsTheNewest(t *testing.T) {
	t.Parallel()
	on(t, farEngines(), core.Options{}, func(t *testing.T, e *core.Engine) { cappedLimits(t, e) })
}

// TestCappedKeepsTheNewestInOneSlot is the same with one slot, whose counts a process knows by its own commits.
func TestCappedKeepsTheNewestInOneSlot(t *testing.T) {
	t.Parallel()
	on(t, farEngines(), core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) { cappedLimits(t, e) })
}

func cappedLimits(t *testing.T, e *core.Engine) {
	const most = 5
	c := newContainer(t, e, cappedSpec(most))
	cs := append(twinsOf(c), c)
	for i := range most {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"first %d"}`, i))
	}
	var wg sync.WaitGroup
	for p, c := range cs {
		for w := range 2 {
			wg.Go(func() {
				for i := range overNetwork(25, 6) {
					_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t,
						fmt.Sprintf(`{"id":"%d.%d.%d","n":%d}`, p, w, i%4, i))})
					if err != nil {
						t.Error(err)
					}
					if n := counted(c); n < most {
						t.Errorf("%d items, there may be %d", n, most)
					}
				}
			})
		}
	}
	wg.Wait()
	for p, c := range cs {
		if n := counted(c); n != most {
			t.Errorf("process %d: %d items, wanted %d", p, n, most)
		}
	}
	made := map[string]bool{}
	var numbers []uint64
	rows, err := c.Query(bg, &exec.Query{PlanHash: 1, Shown: exec.Oldest, Number: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		made[rows.Item().ID().Str()] = true
		numbers = append(numbers, core.CounterOf(rows.Item()))
	}
	if len(made) != most || !slices.IsSorted(numbers) {
		t.Errorf("items %v with the numbers %v", made, numbers)
	}
	// One that is created next is after all of them, and the oldest one is removed.
	put(t, c, core.Create, `{"id":"next"}`)
	rows, err = c.Query(bg, &exec.Query{PlanHash: 1, Shown: exec.Oldest, Number: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var after []uint64
	for rows.Next() {
		after = append(after, core.CounterOf(rows.Item()))
	}
	if len(after) != most || !slices.Equal(after[:most-1], numbers[1:]) || after[most-1] <= numbers[most-1] {
		t.Errorf("the numbers %v, and %v before", after, numbers)
	}
}

// TestCappedBlocks: a capped container takes as many LSNs as it has commits: more than a block of a slot has.
func TestCappedBlocks(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, cappedSpec(0))
		n := overNetwork(9000, 2200)
		var ws []core.Write
		for i := range n {
			ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"%06d"}`, i))})
		}
		for half := range slices.Chunk(ws, n/2) {
			for _, o := range inTurn(c).WriteMany(bg, half, true) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
			}
		}
		tail := newCappedTail(t, inTurn(c))
		defer tail.news.Leave()
		tail.read()
		if len(tail.got) != n || !slices.IsSorted(tail.got) {
			t.Errorf("%d items, wanted %d in their order", len(tail.got), n)
		}
	})
}

// TestCappedNews: a reader that waits is woken by a commit of another process, also by one that removes an item.
func TestCappedNews(t *testing.T) {
	t.Parallel()
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, cappedSpec(0))
		other := c
		if others := twinsOf(c); len(others) > 0 {
			other = others[0]
		}
		tail := newCappedTail(t, c)
		defer tail.news.Leave()
		settle := func() { // the first look tells, too
			for tail.read(); tail.wait(500 * time.Millisecond); {
				tail.read()
			}
		}
		settle()
		write := func(w core.Write) {
			t.Helper()
			wait := make(chan bool)
			go func() { wait <- tail.wait(30 * time.Second) }()
			if _, err := other.Write(bg, w); err != nil {
				t.Error(err)
			}
			if !<-wait {
				t.Errorf("kind %d: nobody was told", w.Kind)
			}
			settle()
		}
		write(core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"x"}`)})
		if len(tail.got) != 1 {
			t.Errorf("read %v", tail.got)
		}
		id := value.StringOf("x")
		write(core.Write{Kind: core.Delete, PK: core.PartitionKey{id}, ID: id})
	})
}

// TestCappedUpdatesKeepTheOrder: an item that is changed, or written again in a transaction, stays where it is.
func TestCappedUpdatesKeepTheOrder(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, cappedSpec(0))
		for _, id := range []string{"c", "a", "b"} {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%s"}`, id))
		}
		put(t, c, core.Replace, `{"id":"c","n":1}`)
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"a","n":1}`)})
			return err
		})
		_, err2 := c.WithTx(bg, pk("0"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"0","n":1}`)})
			return err
		})
		if err := cmp.Or(err, err2); err != nil {
			t.Fatal(err)
		}
		tail := newCappedTail(t, c)
		defer tail.news.Leave()
		if tail.read(); fmt.Sprint(tail.got) != "[c a b 0]" {
			t.Errorf("the order is %v", tail.got)
		}
		it, err := inTurn(c).Read(bg, pk("c"), value.StringOf("c"))
		if err != nil || doc.Get(it.Doc, "n").Int() != 1 {
			t.Errorf("%v, %v", it, err)
		}
	})
}
