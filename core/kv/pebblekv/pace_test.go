package pebblekv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// fakeTree requests compactions as Pebble does.
type fakeTree struct {
	mu       sync.Mutex
	waiting  int
	optional bool
	allowed  int
	granted  []pebble.CompactionGrantHandle
	shape    shape
}

func (f *fakeTree) GetAllowedWithoutPermission() int { return f.allowed }

func (f *fakeTree) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting > 0, pebble.WaitingCompaction{Optional: f.optional}
}

func (f *fakeTree) Schedule(h pebble.CompactionGrantHandle) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		return false
	}
	f.waiting--
	f.granted = append(f.granted, h)
	return true
}

func (f *fakeTree) look() shape {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shape
}

func (f *fakeTree) set(s shape) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shape = s
}

func (f *fakeTree) grants() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.granted)
}

// ask requests one more compaction.
func (f *fakeTree) ask(t *testing.T, p *pace) {
	t.Helper()
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	if ok, _ := p.TrySchedule(); ok {
		t.Error("granted without a look at the tree")
	}
}

// TestPace: when a waiting compaction runs, while a batch comes every 10 ms: of 100 KiB in a burst, of 1 KiB in a
// trickle.
func TestPace(t *testing.T) {
	const burst, trickle = 100 << 10, 1 << 10
	const perByte = 25
	small := shape{runs: 2, above: 20 << 20, below: 80 << 20, perByte: perByte} // a merge of 2.6 s
	lone := shape{runs: 1, above: 1 << 20, below: 19 << 20, perByte: perByte}   // 524 ms
	still := func(s shape) func(time.Duration) shape { return func(time.Duration) shape { return s } }
	full := func(by float64) func(time.Duration) shape {
		return still(shape{runs: 1, above: 1 << 20, below: 300 << 20, full: by, perByte: perByte})
	}
	const soon = 2 * paceTick
	for _, c := range []struct {
		name     string
		writes   int
		shape    func(elapsed time.Duration) shape
		optional bool
		from, to time.Duration // when it is granted; to 0: not within 40 s
	}{
		{"a burst of writes puts it off", burst, still(small), false, 0, 0},
		{"no writes", 0, still(small), false, paceQuiet, paceQuiet + soon},
		{"a trickle is a pause", trickle, still(small), false, paceQuiet, paceQuiet + soon},
		{"little for a large level", 0, still(lone), false, longPause * 524 * time.Millisecond,
			longPause*524*time.Millisecond + paceDoze},
		{"little for a large level in a burst", burst, still(lone), false, 0, 0},
		{"reclaiming doesn't wait", burst, still(small), true, 0, soon},
		{"many runs", burst, func(e time.Duration) shape {
			return shape{runs: int(e/time.Second) * mergeRuns / 4, above: 1 << 20, below: 1 << 30, perByte: perByte}
		}, false, 4 * time.Second, 4*time.Second + soon},
		{"a full level waits for a pause", burst, full(1.2), false, 0, 0},
		{"a pause is enough for it", 0, full(1.2), false, paceQuiet, paceQuiet + soon},
		{"an overfull one doesn't wait", burst, full(overfull), false, 0, soon},
		{"the first merge, of which nothing is known", 0, still(shape{runs: 1, above: 1 << 20}), false, paceQuiet,
			paceQuiet + soon},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := &fakeTree{allowed: 1, optional: c.optional}, newPace(1<<20)
				start := time.Now()
				f.set(c.shape(0))
				p.Register(1, f)
				p.open(&tree{look: f.look, flush: func() {}})
				f.ask(t, p)
				var at time.Duration
				for at = 0; at < 40*time.Second && f.grants() == 0; at = time.Since(start) {
					p.wrote(c.writes)
					f.set(c.shape(at))
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
				}
				p.Unregister()
				switch {
				case c.to == 0 && f.grants() > 0:
					t.Errorf("granted after %v", at)
				case c.to > 0 && (at < c.from || at > c.to):
					t.Errorf("granted after %v, want %v to %v", at, c.from, c.to)
				}
			})
		})
	}
}

// TestPaceReclaims: after a drop a pause is enough for a merge that would otherwise wait long, but only for a limited
// time.
func TestPaceReclaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 1}, newPace(1<<20)
		f.set(shape{runs: 1, above: 1 << 20, below: 1 << 30, perByte: 100}) // 107 s
		p.Register(1, f)
		p.open(&tree{look: f.look, flush: func() {}})
		grants := func(want int) {
			t.Helper()
			f.ask(t, p)
			time.Sleep(2 * paceDoze)
			synctest.Wait()
			if n := f.grants(); n != want {
				t.Errorf("%d granted, want %d", n, want)
			}
		}
		grants(0)
		p.dropped()
		time.Sleep(paceDoze)
		grants(1)
		time.Sleep(reclaimFor)
		f.granted[0].Done()
		grants(1)
		p.Unregister()
	})
}

// TestPaceFlush: during a pause the memtable is flushed once, if it holds enough.
func TestPaceFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 1}, newPace(1<<20)
		var flushes atomic.Int32
		p.Register(1, f)
		p.open(&tree{look: f.look, flush: func() { flushes.Add(1) }})
		write := func(bytes int, d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				p.wrote(bytes)
			}
			synctest.Wait()
		}
		expect := func(want int32) {
			t.Helper()
			synctest.Wait()
			if n := flushes.Load(); n != want {
				t.Fatalf("%d flushes, want %d", n, want)
			}
		}
		write(100<<10, 10*time.Second)
		expect(0)
		time.Sleep(flushQuiet / 2)
		write(100<<10, time.Second)
		expect(0) // the pause was too short
		time.Sleep(2 * flushQuiet)
		expect(1)
		time.Sleep(time.Hour)
		expect(1) // nothing to flush
		write(1<<10, 10*time.Second)
		time.Sleep(time.Hour)
		expect(1) // too little to flush
		p.wrote(flushBytes)
		time.Sleep(2 * flushQuiet)
		expect(2)
		p.Unregister()
	})
}

// TestPaceFlushBehindAStoppedWriter: a flush that waits for a writer, which waits for a merge, doesn't keep the merge
// from beginning. A flush begins when nothing was written for a second, which is so while a writer is stopped.
func TestPaceFlushBehindAStoppedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 1}, newPace(1<<20)
		f.set(shape{runs: stopRuns - 1})
		var flushed atomic.Bool
		merged := make(chan struct{})
		p.Register(1, f)
		p.open(&tree{look: f.look, flush: func() { <-merged; flushed.Store(true) }})
		f.ask(t, p)
		synctest.Wait()
		if n := f.grants(); n != 1 {
			t.Fatalf("%d merges granted, want 1", n)
		}
		p.wrote(flushBytes)
		f.set(shape{runs: stopRuns})
		time.Sleep(3 * flushQuiet) // the merge goes on, and the flush waits
		f.ask(t, p)
		f.granted[0].Done() // it has not freed the writer
		time.Sleep(paceDoze)
		synctest.Wait()
		if n := f.grants(); n != 2 || flushed.Load() {
			t.Errorf("%d merges granted, want a second one that frees the writer; flushed: %v", n, flushed.Load())
		}
		close(merged)
		p.Unregister()
		if !flushed.Load() {
			t.Error("a flush goes on after Unregister")
		}
	})
}

// TestPaceBounds: no more compactions run than are allowed, each begins when another ends, and none after Close.
func TestPaceBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 2}, newPace(1<<20)
		p.Register(1, f)
		settle := func(want int) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if n := f.grants(); n != want {
				t.Fatalf("%d granted, want %d", n, want)
			}
		}
		for range 4 {
			f.ask(t, p)
		}
		settle(0) // the store isn't open yet
		p.open(&tree{look: f.look, flush: func() {}})
		settle(2)
		f.granted[0].Done()
		settle(3)
		f.granted[1].Done()
		f.granted[2].Done()
		settle(4)
		f.granted[3].Done()
		f.ask(t, p)
		p.Unregister()
		settle(4)
	})
}

// TestPaceMerges: after a burst of writes a store is compacted by itself: little in the memtable, no runs, and nothing
// lost.
func TestPaceMerges(t *testing.T) {
	e, err := Open(t.TempDir(), Options{MemTableMB: 1, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	val := make([]byte, 1000)
	const n = 12000
	key := func(i int) []byte { return fmt.Appendf(nil, "k%08d", i*7919%n) }
	for i := range n {
		var b kv.Batch
		b.Put(key(i), val)
		if _, err := e.Write(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if e.Metrics().Flushes < 3 {
		t.Fatalf("%d flushes: not enough for runs", e.Metrics().Flushes)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		m := e.Metrics()
		if m.Runs == 0 && m.Compactions > 0 && m.Tables > 0 && e.pace.unflushed() < flushBytes {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d runs, %d compactions, %d bytes not flushed", m.Runs, m.Compactions, e.pace.unflushed())
		}
	}
	for i := range n {
		if v, err := e.Get(context.Background(), nil, key(i)); err != nil || len(v) != len(val) {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}

// TestReserve: a store in reserve merges nothing, however long there are no writes, until it is in use.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(dir, Options{MemTableMB: 1, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	e.pace.still.Store(true)
	for i := range 4000 {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "k%08d", i*7919%4000), make([]byte, 1000))
		if _, err := e.Write(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(dir, Options{MemTableMB: 1, Relaxed: true, Reserve: true}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if n := e.Metrics().Runs; n < 2 {
		t.Fatalf("%d runs, want some to merge", n)
	}
	eventually(t, "there is something to merge", func() bool {
		waiting, _ := e.pace.db.GetWaitingCompaction()
		return waiting
	})
	now := time.Now()
	if again := e.pace.merge(e.pace.tree.Load(), &writes{at: now, busy: now.Add(-time.Hour)}); again != never {
		t.Errorf("the next look is in %v", again)
	}
	e.pace.mu.Lock()
	running := e.pace.running
	e.pace.mu.Unlock()
	if n := e.Metrics().Compactions; n > 0 || running > 0 {
		t.Errorf("%d merges have run, and %d are running", n, running)
	}
	e.Work()
	eventually(t, "the runs are merged", func() bool { m := e.Metrics(); return m.Compactions > 0 && m.Runs == 0 })
}

// TestPaceDelays: how long batches wait, by the number of steps that the store is behind.
func TestPaceDelays(t *testing.T) {
	const ms = time.Millisecond
	type batch struct {
		steps int64
		at    time.Duration // ms
		kb    int
	}
	for _, tc := range []struct {
		name    string
		batches []batch
		want    []time.Duration
	}{
		{"nothing is behind", []batch{{0, 0, 1e6}, {0, 0, 1e6}, {0, 0, 1e6}}, []time.Duration{0, 0, 0}},
		{"the first pays nothing, the next ones for those before",
			[]batch{{1, 0, 250}, {1, 0, 250}, {1, 0, 250}, {1, 0, 250}},
			[]time.Duration{0, ms, 2 * ms, 3 * ms}},
		{"who comes later has waited", []batch{{1, 0, 250}, {1, 4, 250}, {1, 4, 250}}, []time.Duration{0, 0, ms}},
		{"dearer by the step", []batch{{2, 0, 100}, {3, 0, 100}, {4, 0, 100}, {4, 0, 1}},
			[]time.Duration{0, 1500 * time.Microsecond, 6500 * time.Microsecond, 18500 * time.Microsecond}},
		{"what is too short for a sleep is owed", []batch{{1, 0, 25}, {1, 0, 25}, {1, 0, 25}},
			[]time.Duration{0, 0, 200 * time.Microsecond}},
		{"nobody waits long, whatever others wrote", []batch{{4, 0, 1e6}, {4, 0, 1}, {4, 150, 1}, {4, 200, 1}},
			[]time.Duration{0, 100 * ms, 50 * ms, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPace(1 << 20)
			var got []time.Duration
			for _, b := range tc.batches {
				got = append(got, p.delay(b.kb*1000, b.steps, b.at*ms))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
		})
	}
}

// The count of full memtables follows the store: it grows while the disk delays a flush, and is right again afterwards,
// for any writes.
func TestPaceCountsMemtables(t *testing.T) {
	mem := vfs.NewMem()
	fs := &heldFS{FS: mem, held: func(name string) bool { return strings.HasSuffix(name, ".sst") }}
	for _, fresh := range []bool{true, false} { // the second time there is a log to replay
		e := mustOpen(t, "db", Options{FS: fs, MemTableMB: 1, Relaxed: true})
		if n := e.pace.full.Load(); n != 0 {
			t.Errorf("%d bytes of full memtables after opening", n)
		}
		fs.busy.Lock()
		for i := 0; e.pace.full.Load() < 3<<20; i++ {
			if i == 20_000 {
				t.Fatal("no memtable is ever full")
			}
			writePair(t, e, i)
		}
		var large kv.Batch // it becomes a separate memtable
		large.Put([]byte("large"), make([]byte, 3<<20))
		if _, err := e.Write(context.Background(), &large, nil); err != nil {
			t.Fatal(err)
		}
		fs.busy.Unlock()
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); e.pace.full.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes of full memtables, but all are flushed", e.pace.full.Load())
			}
		}
		if fresh {
			writePair(t, e, 0)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPaceSteps: by how many steps a store is behind: the worst of memtables, runs and debt decides.
func TestPaceSteps(t *testing.T) {
	for _, tc := range []struct {
		name string
		full int64 // memtables
		tree shape
		want int64
	}{
		{"nothing", 0, shape{}, 0},
		{"one is being flushed", 1, shape{}, 0},
		{"one more waits", 2, shape{}, 1},
		{"as many as there can be", 5, shape{}, 4},
		{"more than there can be", 9, shape{}, maxSteps},
		{"runs that merges may wait for", 0, shape{runs: slowRuns - 1}, 0},
		{"runs", 0, shape{runs: slowRuns}, 1},
		{"more runs", 0, shape{runs: slowRuns + 2}, 3},
		{"as many as Pebble allows", 0, shape{runs: stopRuns}, maxSteps},
		{"memtables and runs", 3, shape{runs: slowRuns}, 2},
		{"debt of a small store", 0, shape{debt: freeDebt - 1}, 0},
		{"much debt of a small store", 0, shape{debt: 2 * freeDebt}, 2},
		{"the same of a large store", 0, shape{debt: 2 * freeDebt, total: 100 << 30}, 0},
		{"much debt of a large store", 0, shape{debt: 60 << 30, total: 100 << 30}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPace(1 << 20)
			p.full.Store(tc.full<<20 - 1000)
			p.behind.Store(tc.tree.steps())
			if got := p.steps(); got != tc.want {
				t.Errorf("%d steps, want %d", got, tc.want)
			}
		})
	}
	if s := (&shape{runs: stopRuns - 1}).steps(); s != maxSteps {
		t.Errorf("%d steps a run before all writers stop", s)
	}
}

// While the store is behind, a batch of background work waits itself, and makes no other batch wait.
func TestBackgroundBatchesYield(t *testing.T) {
	p := newPace(1 << 20)
	p.behind.Store(maxSteps)
	begun := time.Now()
	p.admit(64<<20, true)
	if took := time.Since(begun); took < yieldFor {
		t.Errorf("it has waited %v", took)
	}
	if next := p.next.Load(); next != 0 {
		t.Errorf("the next batch would wait until %d", next)
	}
	p.admit(64<<20, false)
	if p.next.Load() == 0 {
		t.Error("other batches pay nothing")
	}
}
