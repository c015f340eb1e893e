package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
)

// A panic during an index rebuild ends neither the process nor the rebuild, wherever it happens.
func TestRebuildSurvivesAFault(t *testing.T) {
	t.Parallel()
	e, h := hooked(t, core.Options{MinSlots: 1, Logger: slog.New(slog.DiscardHandler)})
	c := newContainer(t, e, core.ContainerSpec{LogMinutes: 60})
	putMany(t, c, 400, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"a","v":%d}`, i, i) })
	snapshots := 0
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			if calledBy("(*rebuilder)") {
				if snapshots++; snapshots == 2 { // the second chunk
					panic("a fault in a rebuild")
				}
			}
			return take()
		}
	})
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/v/*"}]}`)
	c, err := e.ReplaceContainer(bg, "db", "c", spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	if err := c.WaitIndex(ctx); err != nil || c.IndexProgress() != 100 {
		t.Errorf("the rebuild: %v, %d %%", err, c.IndexProgress())
	}
	if e.Faults() != 1 {
		t.Errorf("%d faults, want 1", e.Faults())
	}
}

// A panic of the engine during a write, which the server recovers, leaves no latch held: the slot's next write
// succeeds.
func TestAFaultLeavesNoLatchHeld(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{LogMinutes: 60})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	upsert := core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)}
	writes := map[string]func(ctx context.Context) error{
		"one": func(ctx context.Context) error {
			_, err := c.Write(ctx, upsert)
			return err
		},
		"many": func(ctx context.Context) error {
			other := core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)}
			return c.WriteMany(ctx, []core.Write{upsert, other}, true)[0].Err
		},
		"transaction": func(ctx context.Context) error {
			_, err := c.WithTx(ctx, pk("a"), func(tx *core.Tx) error {
				_, err := tx.Write(&upsert)
				return err
			})
			return err
		},
	}
	for name, write := range writes {
		h.set(func(s *hookSet) { s.pre = func(*kv.Batch) { panic("a fault of the engine") } })
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no fault", name)
				}
			}()
			_ = write(bg)
		}()
		h.set(func(s *hookSet) { s.pre = nil })
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		if err := write(ctx); err != nil {
			t.Errorf("%s: the write after the fault: %v", name, err)
		}
		cancel()
	}
}

// A write that waits for its slot's latch ends with its context.
func TestAWaitForTheLatchEndsWithItsContext(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h.set(func(s *hookSet) {
		s.pre = func(*kv.Batch) {
			h.set(func(s *hookSet) { s.pre = nil })
			close(begun)
			<-goOn
		}
	})
	go func() {
		defer close(done)
		put(t, c, core.Upsert, `{"id":"1","pk":"a","by":1}`)
	}()
	<-begun
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	if _, err := c.Write(ctx, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)}); err == nil {
		t.Error("a write went past the latch")
	}
	close(goOn)
	<-done
}
