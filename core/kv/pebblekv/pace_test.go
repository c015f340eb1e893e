package pebblekv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// fakeTree asks for compactions like Pebble does.
type fakeTree struct {
	mu      sync.Mutex
	waiting int
	allowed int
	granted []pebble.CompactionGrantHandle
	shape   shape
}

func (f *fakeTree) GetAllowedWithoutPermission() int { return f.allowed }

func (f *fakeTree) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting > 0, pebble.WaitingCompaction{}
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

// ask has one more compaction wait.
func (f *fakeTree) ask(t *testing.T, p *pace) {
	t.Helper()
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	if ok, _ := p.TrySchedule(); ok {
		t.Error("granted without a look at the tree")
	}
}

// TestPace is when a waiting compaction runs, while every 10 ms another batch comes in, of 100 KiB in a burst and of 1 KiB in a trickle.
func TestPace(t *testing.T) {
	const burst, trickle = 100 << 10, 1 << 10
	small := shape{runs: 2, above: 2 << 20, below: 8 << 20} // a merge of 262 ms
	lone := shape{runs: 1, above: 1 << 20, below: 19 << 20} // 524 ms
	still := func(s shape) func(time.Duration) shape { return func(time.Duration) shape { return s } }
	// reads look up so many blocks a second: 100 ms of each second for every 250,000 and two runs
	reads := func(s shape, perSecond int64) func(time.Duration) shape {
		return func(e time.Duration) shape {
			s.touches = perSecond * int64(e) / int64(time.Second)
			return s
		}
	}
	const soon = 2 * paceTick
	for _, c := range []struct {
		name     string
		writes   int
		shape    func(elapsed time.Duration) shape
		from, to time.Duration // when it is granted; to 0: not in a minute
	}{
		{"a burst of writes puts it off", burst, still(small), 0, 0},
		{"no writes", 0, still(small), paceQuiet, paceQuiet + soon},
		{"a trickle is a pause", trickle, still(small), paceQuiet, paceQuiet + soon},
		{"little for a large level", 0, still(lone), longPause * 524 * time.Millisecond, longPause*524*time.Millisecond + paceDoze},
		{"many runs", burst, func(e time.Duration) shape {
			return shape{runs: int(e/time.Second) * maxRuns / 4, above: 1 << 20, below: 1 << 30}
		}, 4 * time.Second, 4*time.Second + soon},
		{"a few reads", burst, reads(small, 1000), 0, 0},
		{"reads pay for it", burst, reads(small, 250_000), 2500 * time.Millisecond, 2800 * time.Millisecond},
		{"a larger merge costs more", burst, reads(shape{runs: 2, above: 4 << 20, below: 16 << 20}, 250_000), 5 * time.Second, 5500 * time.Millisecond},
		{"a full level waits for a pause", burst, still(shape{runs: 1, above: 1 << 20, below: 300 << 20, full: 1.2}), 0, 0},
		{"a pause is enough for it", 0, still(shape{runs: 1, above: 1 << 20, below: 300 << 20, full: 1.2}), paceQuiet, paceQuiet + soon},
		{"an overfull one doesn't wait", burst, still(shape{runs: 1, above: 1 << 20, below: 600 << 20, full: overfull}), 0, soon},
		{"reads pay in a pause too", 0, reads(lone, 5_000_000), 300 * time.Millisecond, 300*time.Millisecond + paceDoze},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := &fakeTree{allowed: 1}, newPace()
				start := time.Now()
				f.set(c.shape(0))
				p.Register(1, f)
				p.open(&tree{look: f.look, flush: func() {}})
				f.ask(t, p)
				var at time.Duration
				for at = 0; at < time.Minute && f.grants() == 0; at = time.Since(start) {
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

// TestPaceFlush: a pause has the memtable flushed once, when it holds enough to be worth it.
func TestPaceFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 1}, newPace()
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
		expect(1) // too little to be worth it
		p.wrote(flushBytes)
		time.Sleep(2 * flushQuiet)
		expect(2)
		p.Unregister()
	})
}

// TestPaceBounds: no more compactions at once than are allowed, each in the place of one that ended, and none after the end.
func TestPaceBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := &fakeTree{allowed: 2}, newPace()
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

// TestPaceMerges: after a burst of writes a real store is tidied up without anyone asking: little in the memtable, no runs, and nothing lost.
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
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		m := e.Metrics()
		if m.Runs == 0 && m.Compactions > 0 && m.Tables > 0 && e.pace.unflushed() < flushBytes {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d runs, %d compactions, %d bytes not flushed", m.Runs, m.Compactions, e.pace.unflushed())
		}
	}
	for i := range n {
		if v, err := e.Get(key(i)); err != nil || len(v) != len(val) {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}
