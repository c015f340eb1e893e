package pebblekv

import (
	"fmt"
	"sync"
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
	small := shape{runs: 2, bytes: 10 << 20} // a merge of 262 ms
	for _, c := range []struct {
		name   string
		writes int
		shape  func(elapsed time.Duration) shape
		from   time.Duration // granted not before
		to     time.Duration // but until then; 0: not in 10 s
	}{
		{"a burst of writes puts it off", burst, func(time.Duration) shape { return small }, 0, 0},
		{"no writes", 0, func(time.Duration) shape { return small }, paceQuiet, paceQuiet + 2*paceTick},
		{"a trickle is a pause", trickle, func(time.Duration) shape { return small }, paceQuiet, paceQuiet + 2*paceTick},
		{"many runs", burst, func(e time.Duration) shape {
			return shape{runs: int(e/time.Second) * 4, bytes: 1 << 30}
		}, 4 * time.Second, 4*time.Second + 2*paceTick},
		{"a few reads", burst, func(e time.Duration) shape { // 1,000 blocks a second: 0.2 ms of each
			return shape{runs: 2, bytes: 10 << 20, touches: int64(e / time.Millisecond)}
		}, 0, 0},
		{"reads pay for it", burst, func(e time.Duration) shape { // 500,000 blocks a second: 100 ms of each
			return shape{runs: 2, bytes: 10 << 20, touches: 500 * int64(e/time.Millisecond)}
		}, 2500 * time.Millisecond, 2800 * time.Millisecond},
		{"a larger merge costs more", burst, func(e time.Duration) shape {
			return shape{runs: 2, bytes: 20 << 20, touches: 500 * int64(e/time.Millisecond)}
		}, 5 * time.Second, 5500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := &fakeTree{allowed: 1}, newPace()
				start := time.Now()
				f.set(c.shape(0))
				p.Register(1, f)
				p.open(f.look)
				f.ask(t, p)
				var at time.Duration
				for at = 0; at < 10*time.Second && f.grants() == 0; at = time.Since(start) {
					p.written.Add(int64(c.writes))
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
		p.open(f.look)
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

// TestPaceMerges: after a burst of writes the runs of a real store are merged without anyone asking, and nothing is lost.
func TestPaceMerges(t *testing.T) {
	e, err := Open(t.TempDir(), Options{MemTableMB: 1, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	val := make([]byte, 1000)
	const n = 6000
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
		if m.Runs < 2 && m.Compactions > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d runs and %d compactions after a pause", m.Runs, m.Compactions)
		}
	}
	for i := range n {
		if v, err := e.Get(key(i)); err != nil || len(v) != len(val) {
			t.Fatalf("key %d: %d bytes, %v", i, len(v), err)
		}
	}
}
