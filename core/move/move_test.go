package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/move"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// filled makes a store with n items in container "c".
func filled(t testing.TB, p place, n int) {
	t.Helper()
	e := p.serve(t, 2)
	if _, err := e.EnsureDatabase(bg, "db"); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(bg, "db", core.ContainerSpec{ID: "c",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		write(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":%d}`, i, i%5, i))
	}
	closed(t, e)
}

// count returns the number of items of container "c", after a check of the store.
func count(t testing.TB, p place) int64 {
	t.Helper()
	e := p.serve(t, 2)
	defer clean(t, e)
	n, err := container(t, e, "c").Count(bg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A move whose process ends at any of its writes is continued by the next one. Until it is complete nobody serves one
// of the stores; afterwards the target is served.
func TestEndedAnywhere(t *testing.T) {
	for _, way := range [][2]string{{"memory", "cluster"}, {"cluster", "memory"}} {
		t.Run(way[0]+" to "+way[1], func(t *testing.T) {
			from, to := places[way[0]](t), places[way[1]](t)
			filled(t, from, 150)
			runs, resumed := 0, 0
			for {
				runs++
				// The first write of a call to a shared source repeats what is done already.
				l := &life{writes: 1 + runs%3, applied: runs%2 == 0}
				r, err := try(t, from, to, func(e kv.Engine) kv.Engine { return dying{e, l} })
				if r.Resumed {
					resumed++
				}
				if err == nil {
					break
				}
				if !errors.Is(err, kv.ErrClosed) {
					t.Fatal(err)
				}
				if src := record(t, from); src == nil {
					continue // it has not begun
				}
				from.refuses(t)
				if dst := record(t, to); dst != nil && dst.State == catalog.MoveArriving {
					to.refuses(t)
				}
			}
			if runs < 10 || resumed == 0 {
				t.Errorf("the move took %d calls", runs)
			}
			if n := count(t, to); n != 150 {
				t.Errorf("%d items", n)
			}
			from.refuses(t)
			if r := moved(t, from, to); !r.Done || r.Items != 150 {
				t.Errorf("another call: %+v", r)
			}
		})
	}
}

func record(t testing.TB, p place) *catalog.Move {
	t.Helper()
	e := p.open()
	defer closed(t, e)
	m, _, err := catalog.ReadMove(bg, e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Calls of both engines fail, and outcomes of commits are unknown: the move goes on.
func TestFaults(t *testing.T) {
	a, b := kvtest.NewShared(memkv.New(), 3), kvtest.NewShared(memkv.New(), 4)
	from := place{"a", func() kv.Engine { return kv.Checked(a.Engine()) }}
	to := place{"b", func() kv.Engine { return kv.Checked(b.Engine()) }}
	filled(t, from, 60)
	f := kvtest.Faults{Unavailable: 0.02, Unknown: 0.1, Late: 5 * time.Millisecond, Oldest: 20 * time.Millisecond}
	a.SetFaults(f)
	b.SetFaults(f)
	x, y := from.open(), to.open()
	defer closed(t, x)
	defer closed(t, y)
	calm := watch(func(task string) {
		if task == "checking items" { // a check reports calls that fail
			a.SetFaults(kvtest.Faults{})
			b.SetFaults(kvtest.Faults{})
		}
	})
	r, err := move.Run(bg, x, y, move.Options{From: "a", To: "b", Part: 4 << 10, Watch: calm})
	if err != nil || r.Items != 60 {
		t.Fatal(r, err)
	}
	if n := count(t, to); n != 60 {
		t.Errorf("%d items", n)
	}
}

// watch gets the names of tasks.
type watch func(task string)

func (w watch) Task(name string, _ bool) { w(name) }
func (watch) Set(_, _ int64)             {}

// A move that can't begin, or be continued, says why, and changes nothing.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, from, to place)
		want    string
	}{
		"the source is empty": {func(*testing.T, place, place) {}, "holds no databases"},
		"the target has items": {func(t *testing.T, from, to place) {
			filled(t, from, 1)
			filled(t, to, 1)
		}, "isn't empty"},
		"the source is going elsewhere": {func(t *testing.T, from, _ place) {
			filled(t, from, 1)
			half(t, from, place{"elsewhere", places["memory"](t).open})
		}, "is being moved to elsewhere"},
		"the source has left": {func(t *testing.T, from, _ place) {
			filled(t, from, 1)
			moved(t, from, place{"elsewhere", places["memory"](t).open})
		}, "was moved to elsewhere"},
		"the target has a part of another store": {func(t *testing.T, from, to place) {
			filled(t, from, 1)
			other := places["memory"](t)
			filled(t, other, 1)
			half(t, other, to)
		}, "an incomplete copy of another store"},
		"the source is a part": {func(t *testing.T, from, _ place) {
			other := places["memory"](t)
			filled(t, other, 1)
			half(t, other, from)
		}, "incomplete copy of the store"},
		"the move was abandoned": {func(t *testing.T, from, to place) {
			filled(t, from, 1)
			half(t, from, to)
			abandon(t, from)
		}, "an incomplete copy of another store, or of another move"},
		"a server is running": {func(t *testing.T, from, _ place) {
			filled(t, from, 1)
			holdLease(t, from)
		}, "A server is using"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := places["cluster"](t), places["memory"](t)
			c.prepare(t, from, to)
			was, were := record(t, from), record(t, to)
			_, err := try(t, from, to, func(e kv.Engine) kv.Engine { return e })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if now, then := record(t, from), record(t, to); !same(was, now) || !same(were, then) {
				t.Errorf("the records are %v and %v, were %v and %v", now, then, was, were)
			}
		})
	}
}

func same(a, b *catalog.Move) bool {
	return a == nil && b == nil || a != nil && b != nil && a.ID == b.ID && a.State == b.State
}

// half begins a move and ends with the first part.
func half(t *testing.T, from, to place) {
	t.Helper()
	l := &life{writes: 4}
	if from.open().Shared() {
		l.writes++
	}
	if _, err := try(t, from, to, func(e kv.Engine) kv.Engine { return dying{e, l} }); !errors.Is(err, kv.ErrClosed) {
		t.Fatal(err)
	}
	if m := record(t, to); m == nil || m.State != catalog.MoveArriving {
		t.Fatalf("the target has the record %v", m)
	}
}

func abandon(t *testing.T, p place) {
	t.Helper()
	e := p.open()
	defer closed(t, e)
	if err := move.Abandon(bg, e); err != nil {
		t.Fatal(err)
	}
}

// holdLease keeps a process alive until the end of the test.
func holdLease(t *testing.T, p place) {
	t.Helper()
	e, group := p.open(), work.New(nil)
	all := lease.New(e, clock.New(), group, 200*time.Millisecond)
	if l, err := all.Try(bg, lease.Name{Kind: lease.Scrub}); l == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group.Close()
		all.Close()
		closed(t, e)
	})
}

// An abandoned move leaves the source as it was: it is served again, and can be moved to another place.
func TestAbandon(t *testing.T) {
	for _, kind := range []string{"memory", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			from, to := places[kind](t), places["memory"](t)
			filled(t, from, 30)
			e := from.open()
			if err := move.Abandon(bg, e); err == nil {
				t.Error("a store that isn't moved was abandoned")
			}
			closed(t, e)
			half(t, from, to)
			from.refuses(t)
			abandon(t, from)
			if n := count(t, from); n != 30 {
				t.Errorf("%d items", n)
			}
			other := places["cluster"](t)
			moved(t, from, other)
			abandon(t, from) // of a move that is complete: there are two stores now
			if a, b := count(t, from), count(t, other); a != 30 || b != 30 {
				t.Errorf("%d and %d items", a, b)
			}
		})
	}
}

// damaging is a target which stores another value for a key, or forgets one, or has one more.
type damaging struct {
	kv.Engine
	kind keys.Kind
	what string
	once *sync.Once
}

func (d damaging) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	var out kv.Batch
	for i := range b.Len() {
		op := b.Op(i)
		if _, kind, ok := keys.ParseSlot(op.Key); ok && kind == d.kind && !op.Delete {
			d.once.Do(func() {
				switch val := append([]byte(nil), op.Value...); d.what {
				case "other value":
					val[len(val)/2] ^= 1
					op.Value = val
				case "missing":
					op.Key = nil
				case "one more":
					out.Put(append(append([]byte(nil), op.Key...), 0), val)
				}
			})
		}
		switch {
		case op.Key == nil:
		case op.Delete:
			out.Delete(op.Key)
		default:
			out.Put(op.Key, op.Value)
		}
	}
	return d.Engine.Write(ctx, &out, pre)
}

// A copy with any damage is found, and isn't served.
func TestDamage(t *testing.T) {
	for _, what := range []string{"other value", "missing", "one more"} {
		for _, kind := range []keys.Kind{keys.KindItem, keys.KindIndex, keys.KindHead, keys.KindFeed} {
			t.Run(fmt.Sprintf("%s of kind %02x", what, byte(kind)), func(t *testing.T) {
				from, to := places["memory"](t), places["memory"](t)
				filled(t, from, 20)
				a, b := from.open(), to.open()
				_, err := move.Run(bg, a, damaging{b, kind, what, new(sync.Once)}, move.Options{From: "a", To: "b"})
				closed(t, a)
				closed(t, b)
				if err == nil || !strings.Contains(err.Error(), "is no true copy") {
					t.Fatal(err)
				}
				from.refuses(t)
				to.refuses(t)
				abandon(t, from)
				if n := count(t, from); n != 20 {
					t.Errorf("%d items", n)
				}
			})
		}
	}
}

// late is the engine of a process that is paused before its next write.
type late struct {
	kv.Engine
	mu     sync.Mutex
	paused chan struct{} // nil: it isn't
	begun  chan struct{}
}

func (l *late) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	l.mu.Lock()
	gate := l.paused
	l.mu.Unlock()
	if gate != nil {
		close(l.begun)
		<-gate
	}
	return l.Engine.Write(ctx, b, pre)
}

// A server that was not stopped refuses its requests as soon as the store is leaving. A write that it has begun before,
// and goes on with when the move is complete, is refused: nobody is told that it is stored.
func TestServerThatRuns(t *testing.T) {
	from, to := places["cluster"](t), places["memory"](t)
	filled(t, from, 10)
	eng := &late{Engine: from.open(), begun: make(chan struct{})}
	e, err := core.Open(bg, eng, core.Options{Lease: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, e)
	c := container(t, e, "c")
	write(t, c, core.Create, `{"id":"before","pk":"p"}`)
	gate := make(chan struct{})
	eng.mu.Lock()
	eng.paused = gate
	eng.mu.Unlock()
	done := make(chan error)
	go func() {
		_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: document(t, `{"id":"late","pk":"p"}`)})
		done <- err
	}()
	<-eng.begun
	moved(t, from, to)
	eng.mu.Lock()
	eng.paused = nil
	eng.mu.Unlock()
	close(gate)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "was moved to memory") {
		t.Errorf("the late write: %v", err)
	}
	if _, err := c.Read(bg, core.PartitionKey{text("p")}, text("before")); err == nil ||
		!strings.Contains(err.Error(), "was moved to memory") {
		t.Errorf("a read: %v", err)
	}
	if n := count(t, to); n != 11 {
		t.Errorf("%d items", n)
	}
}

// Work that the end of the source's last process has interrupted is continued by the target: index rebuilds, removal of
// dropped data, and copies of slots.
func TestInterruptedWork(t *testing.T) {
	for _, way := range [][2]string{{"memory", "cluster"}, {"cluster", "memory"}} {
		t.Run(way[0]+" to "+way[1], func(t *testing.T) {
			from, to := places[way[0]](t), places[way[1]](t)
			filled(t, from, 300)
			slot := interrupt(t, from)
			moved(t, from, to)
			settled(t, to, slot)
			e := to.serve(t, 2)
			defer clean(t, e)
			c := container(t, e, "c")
			if err := c.WaitIndex(bg); err != nil {
				t.Fatal(err)
			}
			for e.DropsLeft() > 0 && way[1] == "memory" {
				time.Sleep(time.Millisecond)
			}
			if err := c.SplitSlot(bg, []byte{0x10}); err != nil {
				t.Error(err)
			}
			if n, err := c.Count(bg); err != nil || n != 300 {
				t.Errorf("%d items, %v", n, err)
			}
		})
	}
}

// settled checks that a slot isn't being copied: nobody would end that.
func settled(t *testing.T, p place, slot keys.Slot) {
	t.Helper()
	eng := p.open()
	defer closed(t, eng)
	raw, err := eng.Get(bg, nil, keys.AppendPrefix(nil, slot, keys.KindHead))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := store.DecodeHead(raw); err != nil || h.Moving || h.Move != 0 || h.Held {
		t.Errorf("the head is %+v, %v", h, err)
	}
	if _, err := eng.Get(bg, nil, keys.AppendRemoved(nil, slot, 7, []byte("suffix"))); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a record of a removed item: %v", err)
	}
}

// interrupt leaves a store with work that has begun, and returns a slot that is being copied.
func interrupt(t *testing.T, p place) keys.Slot {
	t.Helper()
	e := p.serve(t, 2)
	if _, err := e.CreateContainer(bg, "db", core.ContainerSpec{ID: "gone",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
		t.Fatal(err)
	}
	spec := *container(t, e, "c").Spec()
	spec.IndexingPolicy = []byte(`{"indexingMode":"consistent","includedPaths":[{"path":"/v/?"}],` +
		`"excludedPaths":[{"path":"/*"}]}`)
	if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	if err := e.DropContainer(bg, "db", "gone"); err != nil {
		t.Fatal(err)
	}
	closed(t, e)

	// A copy of slot 1 that has recorded a removed item.
	eng := p.open()
	defer closed(t, eng)
	cat, err := catalog.Open(eng, clock.New(), catalog.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	def, err := cat.Container(bg, "db", "c")
	if err != nil {
		t.Fatal(err)
	}
	slot := keys.Slot{Gen: def.Gen, ID: 1}
	name := keys.AppendPrefix(nil, slot, keys.KindHead)
	raw, err := eng.Get(bg, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := store.DecodeHead(raw)
	if err != nil {
		t.Fatal(err)
	}
	h.Moving = true
	if eng.Shared() {
		h.Move, h.Held = 9, true
	}
	var b kv.Batch
	b.Put(name, h.WrittenBy(h.Writer))
	b.Put(keys.AppendRemoved(nil, slot, 7, []byte("suffix")), []byte{1})
	if _, err := eng.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	return slot
}
