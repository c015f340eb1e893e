package store

import (
	"context"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// A writer holds its slot, and finds that a copy in another process asks writers to wait. While it waits the copy can
// replace the head.
func TestHoldersMakeWay(t *testing.T) {
	ctx := context.Background()
	for name, write := range map[string]func(c *Container) error{
		"a write": func(c *Container) error {
			_, err := c.Write(ctx, &Write{Kind: Upsert, Doc: counted(t, "a", 1)})
			return err
		},
		"a transaction": func(c *Container) error {
			_, _, err := c.WithTx(ctx, PartitionKey{value.StringOf("a")}, func(tx *Tx) error {
				_, err := tx.Write(&Write{Kind: Upsert, Doc: counted(t, "a", 1)})
				return err
			})
			return err
		},
		"a transaction over several slots": func(c *Container) error {
			tx, err := c.st.Begin(ctx, time.Minute)
			if err != nil {
				return err
			}
			if _, err = tx.Write(ctx, c, &Write{Kind: Upsert, Doc: counted(t, "a", 1)}); err != nil {
				return err
			}
			_, err = tx.Commit(ctx, nil, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := kvtest.NewShared(memkv.New(), 1)
			c, other := slottedOn(t, kv.Checked(store.Engine())), store.Engine()
			at, err := c.locate(nil, PartitionKey{value.StringOf("a")}, value.StringOf("i"))
			if err != nil {
				t.Fatal(err)
			}
			ask := func(held bool) { // as the last round of a copy does
				t.Helper()
				was, err := other.Get(ctx, nil, at.slot.headKey[:])
				var h Head
				if err == nil {
					err = h.parse(was, new(indexFlags))
				}
				if err != nil {
					t.Fatal(err)
				}
				if h.Move, h.Moving, h.Held = 0, false, held; held {
					h.Move, h.Moving = 1, true
				}
				var b kv.Batch
				b.Put(at.slot.headKey[:], h.append(nil))
				pre := []kv.Precondition{{Key: at.slot.headKey[:], Expect: kv.Equal, Value: was}}
				if _, err := other.Write(ctx, &b, pre); err != nil {
					t.Error(err)
				}
			}
			ask(true)
			at.slot.rivals.Store(rivalCommits) // so the next writer holds the slot
			done := make(chan error)
			go func() { done <- write(c) }()
			for since := time.Now(); time.Since(since) < 50*time.Millisecond; time.Sleep(time.Millisecond) {
				if !at.slot.mu.held.Load() { // until it has had the latch for so long, it isn't waiting
					since = time.Now()
				}
			}
			begun := time.Now()
			ask(false)
			if took := time.Since(begun); took > 100*time.Millisecond {
				t.Errorf("the copy has waited for %v", took)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if b, err := other.Get(ctx, nil, at.itemKey()); err != nil || len(b) == 0 {
				t.Errorf("nothing was written: %v", err)
			}
		})
	}
}
