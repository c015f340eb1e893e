package core_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// expiring is a container whose items live for 100 seconds.
func expiring(t *testing.T, e *core.Engine, id string) *core.Container {
	ttl := int32(100)
	return newContainer(t, e, core.ContainerSpec{ID: id, DefaultTTL: &ttl})
}

// putMany writes n items; f returns their JSON.
func putMany(t testing.TB, c *core.Container, n int, f func(i int) string) {
	t.Helper()
	var ws []core.Write
	for i := range n {
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, f(i))})
	}
	for _, o := range c.WriteMany(bg, ws, false) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
}

// The ttl may be removed between any two steps of the reaper.
func TestReapMeetsARemovedTTL(t *testing.T) {
	for _, at := range []int32{1, 2, 3, 4, 5, 6} {
		clk := clock.Fake(time.Unix(1_700_000_000, 0))
		e, h := hooked(t, core.Options{Clock: clk, MinSlots: 1})
		c := expiring(t, e, "c")
		putMany(t, c, 300, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d"}`, i, i%3) })
		clk.Advance(200 * time.Second)
		var steps atomic.Int32
		step := func() {
			if steps.Add(1) == at {
				spec := c.Spec().Clone()
				spec.DefaultTTL = nil
				if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
					t.Error(err)
				}
			}
		}
		h.set(func(s *hookSet) {
			s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
				step()
				return take()
			}
			s.visible = step
		})
		n := e.Reap(bg)
		if e.Faults() != 0 {
			t.Errorf("removed at step %d: the reaper has a fault", at)
		}
		if got := counted(c); got != int64(300-n) {
			t.Errorf("removed at step %d: %d items after %d were reaped", at, got, n)
		}
	}
}

// A panic in one container ends only that container's turn. The container is tried again, less and less often.
func TestReaperSurvivesAFault(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk, MinSlots: 1, Logger: slog.New(slog.DiscardHandler)})
	bad, good := expiring(t, e, "bad"), expiring(t, e, "good")
	put(t, bad, core.Create, `{"id":"1","pk":"a"}`)
	put(t, good, core.Create, `{"id":"1","pk":"a"}`)
	clk.Advance(200 * time.Second)
	faults := 2
	fault := func() { // the first container of a round fails
		h.set(func(s *hookSet) {
			s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
				h.set(func(s *hookSet) { s.snapshot = nil })
				faults--
				panic("a fault in a container")
			}
		})
	}
	fault()
	if n := e.Reap(bg); n != 1 || counted(good) != 0 || counted(bad) != 1 {
		t.Errorf("with a fault in one container %d items were reaped", n)
	}
	fault()
	e.Reap(bg)
	if n := e.Reap(bg); n != 0 || faults != 0 || e.Faults() != 2 {
		t.Errorf("behind the second fault the container sits one round out; reaped %d, %d faults", n, e.Faults())
	}
	if n := e.Reap(bg); n != 1 || counted(bad) != 0 {
		t.Errorf("without a fault %d items were reaped, %d are left", n, counted(bad))
	}
}

// countingSnapshot counts its Gets.
type countingSnapshot struct {
	kv.Snapshot
	n *atomic.Int64
}

func (s countingSnapshot) Get(dst, key []byte) ([]byte, error) {
	s.n.Add(1)
	return s.Snapshot.Get(dst, key)
}

// Items with their own ttl are read by one round, not by every round, wherever they are in the feed.
func TestReaperPassesPinnedItemsOnce(t *testing.T) {
	const pinned = 9000 // more than one step skips
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk, MinSlots: 1})
	c := expiring(t, e, "c")
	putMany(t, c, pinned, func(i int) string {
		return fmt.Sprintf(`{"id":"p%d","pk":"a","ttl":%d}`, i, []int{-1, 1_000_000}[i%2])
	})
	putMany(t, c, 10, func(i int) string { return fmt.Sprintf(`{"id":"d%d","pk":"a"}`, i) })
	clk.Advance(200 * time.Second)
	putMany(t, c, 10, func(i int) string { return fmt.Sprintf(`{"id":"n%d","pk":"a"}`, i) })
	var gets atomic.Int64
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot { return countingSnapshot{take(), &gets} }
	})
	round := func(left, most int64) { // the background reaper may come first
		t.Helper()
		gets.Store(0)
		if e.Reap(bg); counted(c) != left {
			t.Errorf("%d items are left, want %d", counted(c), left)
		}
		if gets.Load() > most {
			t.Errorf("a round has read %d items, want at most %d", gets.Load(), most)
		}
	}
	round(pinned+10, pinned+50)
	round(pinned+10, 5)
	put(t, c, core.Upsert, `{"id":"p0","pk":"a"}`) // no longer pinned: it has a new place in the feed
	clk.Advance(50 * time.Second)
	put(t, c, core.Upsert, `{"id":"p1","pk":"a","ttl":10}`)
	clk.Advance(60 * time.Second)
	round(pinned-2, 50)
	round(pinned-2, 5)
	ttl := int32(-1) // the meaning of items without a ttl changes, that of pinned items doesn't
	spec := c.Spec().Clone()
	spec.DefaultTTL = &ttl
	c, err := e.ReplaceContainer(bg, "db", "c", spec)
	if err != nil {
		t.Fatal(err)
	}
	clk.Advance(1_000_000 * time.Second)
	round(pinned/2-1, 50)
	if _, err := c.Read(bg, pk("a"), value.StringOf("p2")); err != nil {
		t.Errorf("an item that never expires: %v", err)
	}
	_, err = c.Read(bg, pk("a"), value.StringOf("p3"))
	wantCode(t, err, status.NotFound, 0)
}

// Many items of a slot are removed with one commit.
func TestReaperDeletesInBatches(t *testing.T) {
	const items = 2500
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk, MinSlots: 1})
	c := expiring(t, e, "c")
	putMany(t, c, items, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%d","ttl":%d}`, i, i%7, 10+i%2*1000)
	})
	putMany(t, c, items, func(i int) string { return fmt.Sprintf(`{"id":"d%d","pk":"%d"}`, i, i%7) })
	clk.Advance(200 * time.Second)
	commits := 0
	h.set(func(s *hookSet) { s.visible = func() { commits++ } })
	if n := e.Reap(bg); n != items+items/2 {
		t.Errorf("%d items were reaped, want %d", n, items+items/2)
	}
	if commits > (items+items/2)/100 {
		t.Errorf("%d items were deleted by %d commits", items+items/2, commits)
	}
}

// An item that is written while its deletion is prepared stays.
func TestReaperLosesToAWriter(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk, MinSlots: 1})
	c := expiring(t, e, "c")
	putMany(t, c, 20, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"a"}`, i) })
	clk.Advance(200 * time.Second)
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			h.set(func(s *hookSet) { s.snapshot = nil })
			snap := take()
			put(t, c, core.Upsert, `{"id":"7","pk":"a","again":true}`)
			return snap
		}
	})
	if n := e.Reap(bg); n != 19 {
		t.Errorf("%d items were reaped, want 19", n)
	}
	if _, err := c.Read(bg, pk("a"), value.StringOf("7")); err != nil {
		t.Errorf("an item that was written again: %v", err)
	}
}

// Any number of containers dropped at once are removed one after the other.
func TestDropOfManyContainersIsOneGoroutine(t *testing.T) {
	const containers = 400
	e, h := hooked(t, core.Options{MinSlots: 1})
	for i := range containers {
		c := newContainer(t, e, core.ContainerSpec{ID: fmt.Sprint("c", i)})
		if i%100 == 0 {
			put(t, c, core.Create, `{"id":"1","pk":"a"}`)
		}
	}
	hold := make(chan struct{})
	var drops atomic.Int32
	h.set(func(s *hookSet) {
		s.drop = func() {
			<-hold
			drops.Add(1)
		}
	})
	before := runtime.NumGoroutine()
	if err := e.DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine() - before; n > 3 {
		t.Errorf("%d goroutines drop %d containers", n, containers)
	}
	close(hold)
	for end := time.Now().Add(time.Minute); dataKeys(t, h.Engine) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d containers were dropped", drops.Load())
		}
	}
}
