package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// copyWatch is an engine that watches the commits of copies: those with keys of slots that no map names yet.
type copyWatch struct {
	kv.Engine
	mu      sync.Mutex
	from    uint32 // the least id of such a slot; 0: nothing is watched
	commits int
	named   int           // of these, commits whose preconditions name a head that they don't write
	ended   time.Time     // the end of the last one, until a snapshot is begun
	idle    time.Duration // the time between these two
}

func (w *copyWatch) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	cm, err := w.Engine.Write(ctx, b, pre)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.from == 0 || !w.copies(b) {
		return cm, err
	}
	w.commits++
	w.ended = time.Now()
	for _, p := range pre {
		if _, kind, ok := keys.ParseSlot(p.Key); ok && kind == keys.KindHead && !putsKey(b, p.Key) {
			w.named++
		}
	}
	return cm, err
}

// Snapshot implements kv.Engine.
func (w *copyWatch) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	w.mu.Lock()
	if !w.ended.IsZero() {
		w.idle += time.Since(w.ended)
		w.ended = time.Time{}
	}
	w.mu.Unlock()
	return w.Engine.Snapshot(ctx)
}

// copies reports whether a batch has items of a watched slot.
func (w *copyWatch) copies(b *kv.Batch) bool {
	for i := range b.Len() {
		if s, kind, ok := keys.ParseSlot(b.Op(i).Key); ok && kind == keys.KindItem && s.ID >= w.from {
			return true
		}
	}
	return false
}

func putsKey(b *kv.Batch, key []byte) bool {
	for i := range b.Len() {
		if string(b.Op(i).Key) == string(key) {
			return true
		}
	}
	return false
}

// TestCopiesLeaveSlotsToWriters has a slot copied in a store that several processes share. TiKV locks the keys of
// preconditions while a transaction commits, and every writer replaces the head of its slot: so the commits of a copy,
// which are large, must not name it. The copy doesn't rest either: it waits for the network most of the time.
func TestCopiesLeaveSlotsToWriters(t *testing.T) {
	t.Parallel()
	const trip = 20 * time.Millisecond
	store := kvtest.NewShared(memkv.New(), 1)
	w := &copyWatch{Engine: kv.Checked(store.Engine())}
	e, err := core.Open(bg, w, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, splitSpec())
	for i := range 600 {
		put(t, c, core.Create, splitDoc(i, 0))
	}
	store.SetFaults(kvtest.Faults{Least: trip, Most: trip})
	defer store.SetFaults(kvtest.Faults{})
	w.mu.Lock()
	w.from = slotMap(t, c).NextSlot
	w.mu.Unlock()
	if err := c.SplitSlot(bg, nested(2)[0]); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.commits < 3 {
		t.Fatalf("there were %d commits of the copy, and the test needs several", w.commits)
	}
	if w.named > 1 {
		t.Errorf("%d of %d commits of the copy name the head of a slot that others write to", w.named, w.commits)
	}
	if most := time.Duration(w.commits) * 3 * trip; w.idle > most { // a rest is at least six trips
		t.Errorf("the copy has rested for %v after %d commits", w.idle, w.commits)
	}
}
