package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// peer is a process over a store that others use too. Its clock moves only when the test moves it, so no lease is lost
// because the machine is busy.
type peer struct {
	kv.Engine
	e   *core.Engine
	clk *clock.Clock

	mu    sync.Mutex
	stop  func(call string) error // called before each call of the engine; nil: nothing
	drops atomic.Int64            // calls of DropRange
}

// leaseTime is the duration of leases in these tests. Turns come twice as often, in real time.
const leaseTime = 100 * time.Millisecond

// join opens another process over a store.
func join(t *testing.T, mem kv.Engine) *peer {
	t.Helper()
	p := &peer{Engine: mem, clk: clock.Fake(time.Unix(1_700_000_000, 0))}
	e, err := core.Open(bg, p, core.Options{Clock: p.clk, MinSlots: 1, Lease: leaseTime, ViewAge: time.Millisecond,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p.e = e
	t.Cleanup(func() { _ = e.Close() })
	return p
}

func (p *peer) Shared() bool { return true }
func (p *peer) Close() error { return nil }

func (p *peer) set(stop func(call string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = stop
}

func (p *peer) called(call string) error {
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop(call)
}

func (p *peer) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := p.called("Get"); err != nil {
		return dst, err
	}
	return p.Engine.Get(ctx, dst, key)
}

func (p *peer) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := p.called("Snapshot"); err != nil {
		return nil, err
	}
	return p.Engine.Snapshot(ctx)
}

func (p *peer) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := p.called("Write"); err != nil {
		return nil, err
	}
	return p.Engine.Write(ctx, b, pre)
}

func (p *peer) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := p.called("DropRange"); err != nil {
		return err
	}
	p.drops.Add(1)
	return p.Engine.DropRange(ctx, lo, hi)
}

// pauseAt pauses the process at the n-th call of a kind from a function: from then on no call goes on until resume.
func (p *peer) pauseAt(t *testing.T, call, from string, n int64) (paused <-chan bool, resume func()) {
	at, goOn := make(chan bool), make(chan bool)
	var once sync.Once
	var is atomic.Bool
	var left atomic.Int64
	left.Store(n)
	p.set(func(c string) error {
		if c == call && calledBy(from) && left.Add(-1) == 0 {
			is.Store(true)
			once.Do(func() { close(at) })
		}
		if is.Load() {
			<-goOn
		}
		return nil
	})
	resume = sync.OnceFunc(func() {
		p.set(nil)
		close(goOn)
	})
	t.Cleanup(resume)
	return at, resume
}

// killAt ends the process at such a call: from then on every call fails, and nothing is released.
func (p *peer) killAt(call, from string, n int64) (killed <-chan bool) {
	at := make(chan bool)
	var once sync.Once
	var left atomic.Int64
	left.Store(n)
	p.set(func(c string) error {
		if c == call && calledBy(from) && left.Add(-1) == 0 {
			once.Do(func() { close(at) })
		}
		if left.Load() <= 0 {
			return kv.ErrUnavailable
		}
		return nil
	})
	return at
}

// eventually waits for a condition while the clocks of processes go on.
func eventually(t *testing.T, what string, cond func() bool, procs ...*peer) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: ", what)
		}
		for _, p := range procs {
			p.clk.Advance(leaseTime / 20)
		}
	}
}

// happens waits for a channel.
func happens(t *testing.T, what string, c <-chan bool) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("in vain: ", what)
	}
}

// ended waits for the result of a goroutine while the clocks of processes go on.
func ended(t *testing.T, what string, done <-chan error, procs ...*peer) (err error) {
	t.Helper()
	eventually(t, what, func() bool {
		select {
		case err = <-done:
			return true
		default:
			return false
		}
	}, procs...)
	return err
}

// alone opens the store when no other process has it, checks it, and calls f.
func alone(t *testing.T, mem kv.Engine, f func(e *core.Engine)) {
	t.Helper()
	e, err := core.Open(bg, &peer{Engine: mem}, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	clean(t, e)
	f(e)
}

// of opens the container of these tests.
func (p *peer) of(t *testing.T) *core.Container {
	t.Helper()
	c, err := p.e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// holding returns the lease of a process that does nothing else.
func holding(t *testing.T, mem kv.Engine, n lease.Name) *lease.Lease {
	t.Helper()
	g := work.New(nil)
	m := lease.New(&peer{Engine: mem}, clock.Fake(time.Time{}), g, time.Hour)
	t.Cleanup(func() { g.Close(); m.Close() })
	l, err := m.Try(bg, n)
	if l == nil || err != nil {
		t.Fatal(err)
	}
	return l
}

func gen(t *testing.T, mem kv.Engine) (gen uint32) {
	t.Helper()
	ks, _ := every(t, mem)
	for _, k := range ks {
		if s, _, ok := keys.ParseSlot(k); ok {
			gen = s.Gen
		}
	}
	return gen
}

func TestOneProcessRemovesExpiredItems(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	c := expiring(t, a.e, "c")
	putMany(t, c, 600, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d"}`, i, i%3) })
	b := join(t, mem)
	b.of(t)
	other := holding(t, mem, lease.Name{Kind: lease.Expiry, Gen: gen(t, mem)})
	a.clk.Advance(200 * time.Second)
	b.clk.Advance(200 * time.Second)
	if n, m := a.e.Reap(bg), b.e.Reap(bg); n != 0 || m != 0 {
		t.Errorf("%d and %d items are removed while another process has the lease", n, m)
	}
	held, err := a.e.Leases(bg)
	if err != nil || len(held) != 1 || held[0].Work != "expiry" || held[0].Container != "db/c" || held[0].Mine {
		t.Errorf("%+v, %v", held, err)
	}
	other.Release()
	var n, m atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() { n.Store(int64(a.e.Reap(bg))) })
	wg.Go(func() { m.Store(int64(b.e.Reap(bg))) })
	wg.Wait()
	if n.Load()+m.Load() != 600 {
		t.Errorf("%d and %d items are removed, want 600 in all", n.Load(), m.Load())
	}
	_, _ = a.e.Close(), b.e.Close()
	alone(t, mem, func(e *core.Engine) {
		if c, err := e.Container("db", "c"); err != nil || len(content(t, c)) != 0 {
			t.Errorf("items are left, %v", err)
		}
	})
}

// indexed makes a container whose index is about to be rebuilt by a process, and returns what starts that.
func indexed(t *testing.T, a *peer) (rebuild func()) {
	c := newContainer(t, a.e, core.ContainerSpec{IndexingPolicy: []byte(onlyA)})
	putMany(t, c, 1000, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":[%d]}`, i, i%7, i%3, i%5)
	})
	return func() {
		t.Helper()
		spec := c.Spec().Clone()
		spec.IndexingPolicy = []byte(onlyB)
		if _, err := a.e.ReplaceContainer(bg, "db", "c", spec); err != nil {
			t.Fatal(err)
		}
	}
}

// rebuilt reports whether a process knows that the index follows the new policy.
func (p *peer) rebuilt(t *testing.T) bool {
	c := p.of(t)
	return string(c.Spec().IndexingPolicy) == onlyB && c.IndexProgress() == 100
}

// A process that is killed during a rebuild leaves it to another one, wherever it was, and whether or not that one has
// used the container.
func TestARebuildIsTakenOver(t *testing.T) {
	for _, c := range []struct {
		writes int64 // of the rebuild until the process is killed
		used   bool
	}{{1, true}, {3, true}, {3, false}, {8, true}, {9, false}, {12, true}, {16, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			mem := kv.Checked(memkv.New())
			a := join(t, mem)
			rebuild := indexed(t, a)
			b := join(t, mem)
			if c.used {
				b.of(t)
			}
			killed := a.killAt("Write", "(*rebuilder).write", c.writes)
			rebuild()
			happens(t, "a is killed", killed)
			if len(records(t, mem)) == 0 {
				t.Error("the dead process had no lease")
			}
			eventually(t, "b completes the rebuild", func() bool { return b.rebuilt(t) }, b)
			if got := ids(t, b.of(t), eqQuery("a", 1)); len(got) != 333 {
				t.Errorf("%d rows", len(got))
			}
			_, _ = a.e.Close(), b.e.Close()
			alone(t, mem, func(e *core.Engine) {
				if c, err := e.Container("db", "c"); err != nil || c.IndexProgress() != 100 {
					t.Errorf("the index isn't complete: %v", err)
				}
			})
		})
	}
}

// records returns the keys of leases and of signs of life.
func records(t testing.TB, mem kv.Engine) (out [][]byte) {
	lo, _ := keys.LeaseBounds()
	_, hi := keys.ProcessBounds()
	s := kvtest.Snapshot(t, mem)
	defer s.Close()
	it, err := s.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, bytes.Clone(it.Key()))
	}
	return out
}

// A drop's data stays for the readers of old snapshots. Then one process removes it, also if the one that has dropped
// it has ended.
func TestDropsOfASharedStore(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a, b, c := join(t, mem), join(t, mem), join(t, mem)
	for i := range 5 {
		con := newContainer(t, a.e, core.ContainerSpec{ID: fmt.Sprint("c", i)})
		put(t, con, core.Create, `{"id":"1","pk":"p"}`)
	}
	if _, err := a.e.CreateDatabase(bg, core.DatabaseSpec{ID: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.e.CreateContainer(bg, "other", core.ContainerSpec{ID: "stays",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
		t.Fatal(err)
	}
	data := func() int { // keys besides leases and signs of life, which come and go
		ks, _ := every(t, mem)
		return len(slices.DeleteFunc(ks, keys.IsJob))
	}
	before := data()
	if err := a.e.DropContainer(bg, "db", "c0"); err != nil {
		t.Fatal(err)
	}
	if err := a.e.DropDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	_ = a.e.Close()
	// Either of the others has the turn to remove the heads.
	eventually(t, "the heads are removed", func() bool { return before-data() >= 5 })
	turns := b.turns("dropTurn")
	eventually(t, "turns", func() bool { return turns.Load() > 2 })
	if left := data(); before-left != 5 { // the heads
		t.Errorf("%d of %d keys are there before the data may be removed", left, before)
	}
	eventually(t, "the data is removed", func() bool { return b.e.DropsLeft() == 0 }, b, c)
	if n := a.drops.Load() + b.drops.Load() + c.drops.Load(); n < 1 || n > 5 {
		t.Errorf("5 generations are removed with %d calls", n)
	}
	_, _ = b.e.Close(), c.e.Close()
	alone(t, mem, func(*core.Engine) {
		ks, _ := every(t, mem)
		for _, k := range ks {
			if s, _, ok := keys.ParseSlot(k); ok && s.Gen != 6 {
				t.Errorf("key %x is left", k)
			}
		}
	})
}

// turns counts the snapshots that a function of background work takes.
func (p *peer) turns(from string) *atomic.Int64 {
	var n atomic.Int64
	p.set(func(call string) error {
		if call == "Snapshot" && calledBy(from) {
			n.Add(1)
		}
		return nil
	})
	return &n
}

// While a process copies slots, another one starts. It removes nothing of the copy, though notes say that the keys of
// the new slots are to be removed.
func TestAStartBesideACopy(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	newContainer(t, a.e, splitSpec())
	m := newSplitModel(t, a.of(t))
	source := slotMap(t, m.c).Slots[0].ID
	at, goOn := make(chan bool), make(chan bool)
	var calls atomic.Int64
	a.set(func(call string) error {
		if call == "Write" && calledBy("(*move).round") && calls.Add(1) == 1 {
			close(at)
			<-goOn
		}
		return nil
	})
	done := make(chan error, 1)
	resume := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	m.duringNext(a, 1)
	go func() { done <- a.of(t).SplitSlot(bg, []byte{0x20}) }()
	<-at
	b := join(t, mem)
	seen := b.turns("(*Engine).dropTurn")
	eventually(t, "b sees the notes", func() bool { return seen.Load() > 2 })
	turns := b.turns("(*Engine).removeSlots")
	b.of(t)
	targets := func() (n int) {
		ks, _ := every(t, mem)
		for _, k := range ks {
			if s, _, ok := keys.ParseSlot(k); ok && s.ID != source {
				n++
			}
		}
		return n
	}
	before := targets()
	if slotNotes(t, mem) != 2 || before < modelItems {
		t.Fatalf("%d notes, %d keys of a copy", slotNotes(t, mem), before)
	}
	b.clk.Advance(leaseTime / 2)
	eventually(t, "turns", func() bool { return turns.Load() > 2 })
	if n := targets(); n != before {
		t.Errorf("the copy has %d keys, it had %d", n, before)
	}
	resume()
	if err := <-done; err != nil {
		t.Error(err)
	}
	m.compare("after the split")
	eventually(t, "the replaced slot is removed", func() bool { return b.e.DropsLeft() == 0 }, b)
	_, _ = a.e.Close(), b.e.Close()
	alone(t, mem, func(e *core.Engine) {
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		m.c = c
		m.compare("at the end")
		onlySlots(t, mem, c)
	})
}

// A process is killed during a copy. Another one removes what it has left, when its lease is free: the keys of the new
// slots, and the records of removed items in the old one. Then slots can be split again.
func TestACopyOfADeadProcess(t *testing.T) {
	for _, from := range []string{"(*move).copySlot", "(*move).round", "(*Catalog).ReplaceMap"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			mem := kv.Checked(memkv.New())
			a := join(t, mem)
			newContainer(t, a.e, splitSpec())
			m := newSplitModel(t, a.of(t))
			source := slotMap(t, m.c).Slots[0].ID
			killed := a.killAt("Write", from, 1)
			m.duringNext(a, 4) // one of these changes removes an item
			if err := a.of(t).SplitSlot(bg, []byte{0x20}); !status.Is(err, status.Unavailable) {
				t.Errorf("the killed process: %v", err)
			}
			happens(t, "a is killed", killed)
			b := join(t, mem)
			m.c = b.of(t)
			eventually(t, "the copy is removed", func() bool {
				ks, _ := every(t, mem)
				for _, k := range ks {
					if s, kind, ok := keys.ParseSlot(k); ok && (s.ID != source || kind == keys.KindRemoved) {
						return false
					}
				}
				return b.e.DropsLeft() == 0
			}, b)
			if err := m.c.SplitSlot(bg, []byte{0x10}); err != nil {
				t.Error(err)
			}
			m.compare("split again")
			eventually(t, "the replaced slot is removed", func() bool { return b.e.DropsLeft() == 0 }, b)
			_, _ = a.e.Close(), b.e.Close()
			alone(t, mem, func(e *core.Engine) {
				c, err := e.Container("db", "c")
				if err != nil {
					t.Fatal(err)
				}
				onlySlots(t, mem, c)
			})
		})
	}
}

// A process is paused in the last round of a copy. Writers of another one wait for a moment only. What they write then
// is in the new slots, when the paused process goes on.
func TestWritersBesideAPausedCopy(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	newContainer(t, a.e, splitSpec())
	m := newSplitModel(t, a.of(t))
	b := join(t, mem)
	paused, resume := a.pauseAt(t, "Write", "(*Catalog).ReplaceMap", 1)
	done := make(chan error, 1)
	go func() { done <- m.c.SplitSlot(bg, []byte{0x20}) }()
	happens(t, "a is paused", paused)
	was := m.c
	m.c = b.of(t)
	for range 8 {
		m.change()
	}
	m.compare("during the pause")
	resume()
	if err := <-done; err != nil || len(slotMap(t, was).Slots) != 2 {
		t.Errorf("%d slots, %v", len(slotMap(t, was).Slots), err)
	}
	m.compare("after the split")
	m.c = was
	m.change()
	m.compare("in the process that has split the slot")
	clean(t, b.e)
}

// One process trims a log, by commits: a range that is removed outside of snapshots would be missing in older ones.
func TestOneProcessTrimsALog(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	c := newContainer(t, a.e, core.ContainerSpec{LogMinutes: 10})
	putMany(t, c, 300, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	entries := func() (n int) {
		ks, _ := every(t, mem)
		for _, k := range ks {
			if _, kind, ok := keys.ParseSlot(k); ok && kind == keys.KindLog {
				n++
			}
		}
		return n
	}
	other := holding(t, mem, lease.Name{Kind: lease.Expiry, Gen: gen(t, mem)})
	a.clk.Advance(20 * time.Minute)
	if a.e.Reap(bg); entries() != 300 {
		t.Errorf("%d entries, while another process has the lease", entries())
	}
	other.Release()
	a.clk.Advance(2 * time.Minute)
	if a.e.Reap(bg); entries() != 0 || a.drops.Load() > 0 {
		t.Errorf("%d entries are left, after %d calls of DropRange", entries(), a.drops.Load())
	}
	_ = a.e.Close()
	alone(t, mem, func(*core.Engine) {})
}

// duringNext makes changes before the first commit of a copy, so that the next round has something to write.
func (m *splitModel) duringNext(p *peer, changes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.stop
	var begun atomic.Bool
	p.stop = func(call string) error {
		if call == "Write" && calledBy("(*move).copyKind") && begun.CompareAndSwap(false, true) {
			for range changes {
				m.change()
			}
		}
		return of(call)
	}
}

// A process is paused during its work for longer than its lease lasts. Another one does the work. When the first one
// wakes up, nothing of what it still writes does harm.
func TestWorkOfAPausedProcess(t *testing.T) {
	split := func(p *peer) error { return p.of2().SplitSlot(bg, []byte{0x20}) }
	for _, c := range []struct {
		what, call, from string
		n                int64
		make             func(t *testing.T, a *peer) (begin func() error)
		other            func(t *testing.T, b *peer) // does the work; a is paused
		refused          bool                        // the call of a fails
	}{
		{"expiry", "Write", "(*Container).reapAttempt", 2, expiringItems, reapAll, false},
		{"rebuild, adding", "Write", "(*rebuilder).write", 3, rebuildLater, rebuildAll, false},
		{"rebuild, removing", "Write", "(*rebuilder).write", 13, rebuildLater, rebuildAll, false},
		{"copy of slots", "Write", "(*move).copySlot", 2, splitLater(split), splitToo, true},
		{"round of a copy", "Snapshot", "(*move).round", 1, splitLater(split), splitToo, true},
		{"change of the map", "Write", "(*Catalog).ReplaceMap", 1, splitLater(split), splitToo, true},
		{"change of the map of a copy that is removed", "Write", "(*Catalog).ReplaceMap", 1, splitLater(split),
			removeCopy, true},
		{"splits for a throughput", "Write", "(*Catalog).ReplaceMap", 2, resizeLater, resizeToo, false},
		{"removal of dropped data", "DropRange", "(*Engine).removeRipe", 1, dropLater, removeDropped, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			mem := kv.Checked(memkv.New())
			a := join(t, mem)
			begin := c.make(t, a)
			paused, resume := a.pauseAt(t, c.call, c.from, c.n)
			done := make(chan error, 1)
			go func() { done <- begin() }()
			happens(t, "a is paused", paused)
			b := join(t, mem) // before that it might be the first to do the work
			c.other(t, b)
			resume()
			if err := ended(t, "the paused process ends", done, a, b); (err != nil) != c.refused {
				t.Errorf("the paused process: %v", err)
			} else if err != nil && !status.Is(err, status.Unavailable) {
				t.Errorf("the error is %v", err)
			}
			eventually(t, "what was dropped is removed", func() bool { return b.e.DropsLeft() == 0 }, a, b)
			_, _ = a.e.Close(), b.e.Close()
			alone(t, mem, func(e *core.Engine) {
				con, err := e.Container("db", "c")
				if err != nil { // it was dropped
					return
				}
				onlySlots(t, mem, con)
				if n := con.Spec().Throughput.Manual / 10_000; n > 0 && len(slotMap(t, con).Partitions) != n {
					t.Errorf("%d partitions", len(slotMap(t, con).Partitions))
				}
			})
		})
	}
}

// of2 is of for goroutines of a test.
func (p *peer) of2() *core.Container {
	c, err := p.e.Container("db", "c")
	if err != nil {
		panic(err)
	}
	return c
}

func expiringItems(t *testing.T, a *peer) func() error {
	c := expiring(t, a.e, "c")
	putMany(t, c, 400, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d"}`, i, i%3) })
	a.clk.Advance(200 * time.Second)
	return func() error { a.e.Reap(bg); return nil }
}

func reapAll(t *testing.T, b *peer) {
	b.clk.Advance(200 * time.Second)
	b.of(t)
	removed := 0
	eventually(t, "b removes the items", func() bool {
		removed += b.e.Reap(bg)
		return removed >= 400-128
	}, b)
}

func rebuildLater(t *testing.T, a *peer) func() error {
	rebuild := indexed(t, a)
	return func() error {
		rebuild()
		return a.of2().WaitIndex(bg)
	}
}

func rebuildAll(t *testing.T, b *peer) {
	eventually(t, "b completes the rebuild", func() bool { return b.rebuilt(t) }, b)
}

func splitLater(split func(*peer) error) func(t *testing.T, a *peer) func() error {
	return func(t *testing.T, a *peer) func() error {
		c := newContainer(t, a.e, core.ContainerSpec{})
		putMany(t, c, 600, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
		return func() error { return split(a) }
	}
}

func splitToo(t *testing.T, b *peer) {
	done := make(chan error, 1)
	go func() { done <- b.of2().SplitSlot(bg, []byte{0x10}) }()
	if err := ended(t, "b splits the slot", done, b); err != nil {
		t.Error(err)
	}
	removeCopy(t, b)
}

func removeCopy(t *testing.T, b *peer) {
	eventually(t, "b removes the copy", func() bool { return b.e.DropsLeft() == 0 }, b)
}

func resizeLater(t *testing.T, a *peer) func() error {
	c := newContainer(t, a.e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	putMany(t, c, 300, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	return func() error {
		spec := c.Spec().Clone()
		spec.Throughput = core.Throughput{Manual: 50_000}
		_, err := a.e.ReplaceContainer(bg, "db", "c", spec)
		return err
	}
}

func resizeToo(t *testing.T, b *peer) {
	b.of(t)
	eventually(t, "b splits the partitions", func() bool {
		return b.of(t).Spec().Throughput.Manual == 50_000 && !resizing(b.e, "db", "c")
	}, b)
}

func dropLater(t *testing.T, a *peer) func() error {
	put(t, newContainer(t, a.e, core.ContainerSpec{}), core.Create, `{"id":"1","pk":"p"}`)
	return func() error {
		err := a.e.DropContainer(bg, "db", "c")
		for a.drops.Load() == 0 && t.Context().Err() == nil { // the data is ripe some time after a has seen the note
			a.clk.Advance(leaseTime / 20)
			time.Sleep(2 * time.Millisecond)
		}
		return err
	}
}

func removeDropped(t *testing.T, b *peer) {
	eventually(t, "b removes the data", func() bool { return b.e.DropsLeft() == 0 && b.drops.Load() > 0 }, b)
}

// A throughput that needs more partitions is met exactly, though two processes look at it.
func TestTwoProcessesResize(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	c := newContainer(t, a.e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	putMany(t, c, 300, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	b := join(t, mem)
	b.of(t)
	spec := c.Spec().Clone()
	spec.Throughput = core.Throughput{Manual: 50_000}
	if _, err := a.e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there are five partitions", func() bool {
		return !resizing(a.e, "db", "c") && !resizing(b.e, "db", "c")
	}, a, b)
	eventually(t, "replaced slots are removed", func() bool { return b.e.DropsLeft() == 0 }, a, b)
	_, _ = a.e.Close(), b.e.Close()
	alone(t, mem, func(e *core.Engine) {
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		if m := slotMap(t, c); len(m.Partitions) != 5 {
			t.Errorf("%d partitions", len(m.Partitions))
		}
		onlySlots(t, mem, c)
	})
}

// While one process splits partitions for a throughput, no other one takes the next throughput.
func TestCheckIdleOfOthers(t *testing.T) {
	mem := kv.Checked(memkv.New())
	a := join(t, mem)
	newContainer(t, a.e, core.ContainerSpec{Throughput: core.Throughput{Manual: 400}})
	b := join(t, mem)
	b.of(t)
	// A third process has the lease, and splits slowly: at first a partition that has reached its storage limit.
	l := holding(t, mem, lease.Name{Kind: lease.Resize, Gen: gen(t, mem)})
	if err := idle(t, b.e); err != nil {
		t.Error(err)
	}
	raiseTo(t, a.e, "c", core.Throughput{Manual: 20_000})
	for range 20 { // now and then b looks for work itself, and then it knows without the lease
		if err := idle(t, b.e); !status.Is(err, status.Locked) {
			t.Fatalf("while partitions are split: %v", err)
		}
	}
	l.Release()
	eventually(t, "there are two partitions", func() bool {
		return !resizing(a.e, "db", "c") && !resizing(b.e, "db", "c")
	}, a, b)
	if err := idle(t, b.e); err != nil {
		t.Error(err)
	}
}

// Only one process makes a backup at a time.
func TestBackupsTakeTurns(t *testing.T) {
	mem := &backups{peer: peer{Engine: memkv.New()}}
	e, err := core.Open(bg, mem, core.Options{Lease: leaseTime})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Backup(bg, "x", kv.BackupOptions{}); err != nil {
		t.Error(err)
	}
	l := holding(t, mem, lease.Name{Kind: lease.Backup})
	var r *kv.Refusal
	_, err = e.Backup(bg, "x", kv.BackupOptions{})
	if !errors.As(err, &r) || !strings.Contains(r.Sentence, "Another") {
		t.Errorf("%v", err)
	}
	l.Release()
	if _, err := e.Backup(bg, "x", kv.BackupOptions{}); err != nil || mem.made != 2 {
		t.Errorf("%v after %d backups", err, mem.made)
	}
}

// backups is an engine that counts its backups.
type backups struct {
	peer
	made int
}

func (b *backups) Backup(context.Context, string, kv.BackupOptions) (kv.Backup, error) {
	b.made++
	return kv.Backup{}, nil
}

// A local store has no records of leases, whatever the background does.
func TestALocalStoreHasNoLeases(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	never := int32(-1)
	c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never})
	var wrote atomic.Int64
	h.set(func(s *hookSet) {
		s.pre = func(b *kv.Batch) {
			for i := range b.Len() {
				if b.Op(i).Key[0] == 0x11 {
					wrote.Add(1)
				}
			}
		}
	})
	put(t, c, core.Create, `{"id":"1","pk":"p"}`)
	setPolicy(t, e, c, onlyA)
	if err := c.SplitSlot(bg, []byte{0x20}); err != nil {
		t.Fatal(err)
	}
	e.Reap(bg)
	if held, err := e.Leases(bg); wrote.Load() > 0 || len(held) > 0 || err != nil {
		t.Errorf("%d writes, %v, %v", wrote.Load(), held, err)
	}
	if ks := records(t, h); len(ks) > 0 {
		t.Errorf("keys %x", ks)
	}
}
