package core_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// TestCreateOnce has several writers create the same items in one slot, which outgrows its id filter twice. Exactly one
// writer creates each item, and after a delete exactly one creates it again.
func TestCreateOnce(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		const items, writers = 2500, 4
		race := func(step int) {
			var made [items]atomic.Int32
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for i := 0; i < items; i += step {
						_, err := c.Write(
							bg, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"i%d","pk":"p"}`, i))})
						if err == nil {
							made[i].Add(1)
						} else if status.CodeOf(err) != status.Conflict {
							t.Errorf("i%d: %v", i, err)
						}
					}
				})
			}
			wg.Wait()
			for i := 0; i < items; i += step {
				if n := made[i].Load(); n != 1 {
					t.Errorf("i%d was made %d times", i, n)
				}
			}
		}
		race(1)
		for i := 0; i < items; i += 5 {
			if _, err := c.Write(bg, core.Write{
				Kind: core.Delete, PK: pk("p"), ID: value.StringOf(fmt.Sprintf("i%d", i))}); err != nil {
				t.Fatal(err)
			}
		}
		race(5)
		if n := len(ids(t, c, &exec.Query{})); n != items {
			t.Errorf("%d items", n)
		}
	})
}

// TestCreateAsksNoEngine: once the slot has an id filter, a create doesn't read the engine to find its item absent.
func TestCreateAsksNoEngine(t *testing.T) {
	h := &hooks{Engine: memkv.New()}
	e, err := core.Open(bg, h, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	var looks atomic.Int32
	h.set(func(on *hookSet) {
		on.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			looks.Add(1)
			return take()
		}
	})
	quiet := 0
	for i, deadline := 0, time.Now().Add(10*time.Second); quiet < 20; i++ {
		before := looks.Load()
		put(t, c, core.Create, fmt.Sprintf(`{"id":"i%d","pk":"p"}`, i))
		if quiet++; looks.Load() != before {
			quiet = 0
		}
		if time.Now().After(deadline) {
			t.Fatal("creates go on asking the engine")
		}
	}
	if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"i0","pk":"p"}`)}); status.CodeOf(
		err) != status.Conflict {
		t.Errorf("a second i0: %v", err)
	}
}
