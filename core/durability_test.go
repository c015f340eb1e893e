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
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// drain reads a query to its end.
func drain(c *core.Container, q *exec.Query) error {
	r, err := c.Query(bg, q)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
	}
	return r.Err()
}

// A commit becomes visible before its writer has told the slot. A reader that sees the item at that moment must also
// wait until it is durable.
func TestReadersWaitForDurability(t *testing.T) {
	readers := map[string]func(c *core.Container) error{
		"read": func(c *core.Container) error {
			_, err := c.Read(bg, pk("a"), value.StringOf("1"))
			return err
		},
		"query": func(c *core.Container) error { return drain(c, &exec.Query{PK: pk("a")}) },
		"covered query": func(c *core.Container) error {
			return drain(c, &exec.Query{
				Pred: access.Exists(access.NewPath("n")), Needs: []access.Path{access.NewPath("n")}})
		},
		"covered query that sorts": func(c *core.Container) error {
			return drain(c, &exec.Query{
				Pred: access.Exists(access.NewPath("n")), Needs: []access.Path{access.NewPath("n"), access.ID},
				OrderBy: []exec.Order{{Path: access.ID}}, Compare: value.CompareCosmos})
		},
		"covered ends": func(c *core.Container) error {
			return drain(c, &exec.Query{
				Pred: access.Exists(access.NewPath("n")), Needs: []access.Path{access.NewPath("n")},
				Want: exec.WantEnds, Whole: true})
		},
		"items without a value": func(c *core.Container) error {
			return drain(c, &exec.Query{Needs: []access.Path{access.NewPath("m")}, Whole: true, Repeat: true})
		},
		"count of a logical partition": func(c *core.Container) error {
			_, _, err := c.CountIn(bg, pk("a"))
			return err
		},
		"transaction that only reads": func(c *core.Container) error {
			_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				_, err := tx.Read(value.StringOf("1"))
				return err
			})
			return err
		},
		"transaction that fails": func(c *core.Container) error {
			_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
				if _, err := tx.Read(value.StringOf("1")); err != nil {
					return err
				}
				return status.New(status.PreconditionFailed, "no")
			})
			if status.Is(err, status.PreconditionFailed) {
				return nil
			}
			return err
		},
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			e, h := hooked(t, core.Options{})
			c := newContainer(t, e, core.ContainerSpec{})
			put(t, c, core.Create, `{"id":"0","pk":"a","n":0}`)
			var durable atomic.Bool
			visible, sync, published := make(chan bool), make(chan bool), make(chan bool)
			h.set(func(h *hookSet) {
				h.visible = func() { visible <- true; <-published }
				h.wait = func() error { <-sync; durable.Store(true); return nil }
			})
			var wg waiter
			wg.Go(func() { put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`) })
			<-visible
			h.set(func(h *hookSet) { h.visible = nil })
			wg.Go(func() {
				if err := read(c); err != nil {
					t.Error(err)
				}
				if !durable.Load() {
					t.Error("showed an item whose commit is not durable")
				}
			})
			time.Sleep(20 * time.Millisecond) // time for the reader to find the item
			close(published)
			time.Sleep(20 * time.Millisecond)
			close(sync)
			wg.Wait()
		})
	}
}

type waiter struct{ sync.WaitGroup }

func (w *waiter) Go(f func()) {
	w.Add(1)
	go func() {
		defer w.Done()
		f()
	}()
}

// After a write with an unknown outcome the slot continues, whether the batch was applied or not.
func TestUnknownOutcome(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied %v", applied), func(t *testing.T) {
			e, h := hooked(t, core.Options{})
			c := newContainer(t, e, core.ContainerSpec{})
			put(t, c, core.Create, `{"id":"1","pk":"a"}`)
			once := func() func() error {
				done := false
				return func() error {
					if done {
						return nil
					}
					done = true
					return kv.ErrUnknownOutcome
				}
			}
			h.set(func(h *hookSet) {
				if applied {
					h.unsure = once()
				} else {
					h.fail = once()
				}
			})
			_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)})
			wantCode(t, err, status.UnknownOutcome, 0)
			_, err = c.Read(bg, pk("a"), value.StringOf("2"))
			if applied != (err == nil) {
				t.Errorf("read after the unknown outcome: %v", err)
			}
			put(t, c, core.Upsert, `{"id":"2","pk":"a","n":2}`)
			put(t, c, core.Create, `{"id":"3","pk":"a"}`)
			if counted(c) != 3 {
				t.Errorf("count is %d", counted(c))
			}
		})
	}
}

// A catalog change with an unknown outcome must not lead to two containers of one generation.
func TestUnknownOutcomeInCatalog(t *testing.T) {
	e, h := hooked(t, core.Options{})
	a := newContainer(t, e, core.ContainerSpec{ID: "a"})
	h.set(func(h *hookSet) { h.unsure = func() error { return kv.ErrUnknownOutcome } })
	if _, err := e.CreateContainer(bg, "db",
		core.ContainerSpec{ID: "b", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); !status.Is(
		err, status.UnknownOutcome) {
		t.Fatalf("error is %v", err)
	}
	h.set(func(h *hookSet) { h.unsure = nil })
	c := newContainer(t, e, core.ContainerSpec{ID: "c"})
	b, err := e.Container("db", "b") // the change was applied
	if err != nil {
		t.Fatal(err)
	}
	if a.RID() == b.RID() || b.RID() == c.RID() {
		t.Error("two containers have one _rid")
	}
	put(t, b, core.Create, `{"id":"1","pk":"a"}`)
	if counted(c) != 0 {
		t.Error("two containers share their items")
	}
}

// A commit that is refused after its items got a later time releases its terms only once: later commits have their own.
func TestRefusedCommitGivesItsTermsBackOnce(t *testing.T) {
	onEngines(t, core.Options{MaxLogicalPartition: 500}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		var wg waiter
		for w := range 4 {
			wg.Go(func() {
				for i := range 100 {
					d := mustDoc(t, fmt.Sprintf(`{"id":"%d-%d","pk":"p%d","n":%d,"s":"some text %d"}`, w, i, w, i, i))
					_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d})
					if err != nil && !status.Is(err, status.Forbidden) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}
