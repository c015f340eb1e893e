package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/value"
)

// busySlot returns the container of two processes over one store. Until the test calls quiet the second process writes
// to its only slot all the time, and wrote counts its writes.
func busySlot(t *testing.T) (of, other *core.Container, wrote *atomic.Int64, quiet func()) {
	cs := startProcesses(t, 2, network).containers(core.ContainerSpec{})
	put(t, cs[0], core.Create, `{"id":"x","pk":"a","n":0}`)
	wrote = new(atomic.Int64)
	return cs[0], cs[1], wrote, busy(t, cs[1], wrote, "a")
}

// busy writes to logical partitions of a container all the time, until the test calls quiet, and counts its writes.
func busy(t *testing.T, c *core.Container, wrote *atomic.Int64, pks ...string) (quiet func()) {
	var stop atomic.Bool
	var writes sync.WaitGroup
	for _, pk := range pks {
		writes.Go(func() {
			for !stop.Load() {
				put(t, c, core.Upsert, `{"id":"x","pk":"`+pk+`","n":0}`)
				wrote.Add(1)
			}
		})
	}
	quiet = sync.OnceFunc(func() {
		stop.Store(true)
		writes.Wait()
	})
	t.Cleanup(quiet)
	return quiet
}

// A transaction that another process has overtaken holds the slot when it runs again. So it runs twice at most, however
// often the other one writes.
func TestHeldSlot(t *testing.T) {
	c, _, _, quiet := busySlot(t)
	defer quiet()
	for range 5 {
		runs := 0
		if _, err := c.WithTx(bg, core.PartitionKey{value.StringOf("a")}, func(tx *core.Tx) error {
			runs++
			if _, err := tx.Read(value.StringOf("x")); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond) // the other process writes many times
			_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"x","pk":"a","n":1}`)})
			return err
		}); err != nil || runs > 2 {
			t.Errorf("%d runs, %v", runs, err)
		}
	}
}

// overtaken is the store of a process whose commits take longer than the whole writes of another one.
type overtaken struct {
	*kvtest.Process
	other atomic.Int64 // writes of the other process
	lost  atomic.Int64 // races
}

func (o *overtaken) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	seen, until := o.other.Load(), time.Now().Add(50*time.Millisecond)
	for o.other.Load() < seen+2 && time.Now().Before(until) { // if the slot is held the other one waits
		time.Sleep(time.Millisecond)
	}
	w, err := o.Process.Write(ctx, b, pre)
	if errors.Is(err, kv.ErrConflict) {
		o.lost.Add(1)
	}
	return w, err
}

// So does a plain write: it loses one race, and not the next one.
func TestHeldSlotOfWrites(t *testing.T) {
	ps := startProcesses(t, 1, network)
	other := ps.containers(core.ContainerSpec{})[0]
	far := &overtaken{Process: ps.store.Engine()}
	c, err := opened(t, far, ps.options(0)).Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, core.Create, `{"id":"first","pk":"b"}`) // the process's own records have been written then
	quiet := busy(t, other, &far.other, "a")
	defer quiet()
	far.lost.Store(0)
	total := int64(0)
	for i := range 20 {
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"b"}`, i))
		lost := far.lost.Swap(0)
		if total += lost; lost > 1 {
			t.Errorf("write %d has lost %d races", i, lost)
		}
	}
	if total == 0 {
		t.Error("no write has lost a race")
	}
}

// So does a transaction over several slots.
func TestHeldSlotsOfTransactions(t *testing.T) {
	ps := startProcesses(t, 1, network)
	other := ps.containers(core.ContainerSpec{Throughput: core.Throughput{Manual: 30_000}})[0]
	far := &overtaken{Process: ps.store.Engine()}
	e := opened(t, far, ps.options(0))
	c, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	pks := []string{"a", "b", "c", "d", "e", "f"}
	slots := map[uint32]bool{}
	for _, pk := range pks {
		slots[put(t, c, core.Create, `{"id":"first","pk":"`+pk+`"}`).Slot.ID()] = true
	}
	if len(slots) != 3 {
		t.Fatalf("%d slots", len(slots))
	}
	quiet := busy(t, other, &far.other, pks...)
	defer quiet()
	far.lost.Store(0)
	total := int64(0)
	for i := range 10 {
		tx, err := e.Begin(bg, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, pk := range pks {
			w := core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"own","pk":%q,"n":%d}`, pk, i))}
			if _, err := tx.Write(bg, c, w); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tx.Commit(bg); err != nil {
			t.Fatal(err)
		}
		lost := far.lost.Swap(0)
		if total += lost; lost > 1 {
			t.Errorf("transaction %d has lost %d races", i, lost)
		}
	}
	if total == 0 {
		t.Error("no transaction has lost a race")
	}
}

// A function that doesn't end holds nobody up for long, neither in its process nor in others. It is overtaken then.
func TestHeldSlotIsFreed(t *testing.T) {
	c, other, wrote, quiet := busySlot(t)
	begun, late := make(chan bool, 10), make(chan bool)
	var tx sync.WaitGroup
	tx.Go(func() {
		runs := 0
		if _, err := c.WithTx(bg, core.PartitionKey{value.StringOf("a")}, func(tx *core.Tx) error {
			runs++
			if _, err := tx.Read(value.StringOf("x")); err != nil {
				return err
			}
			switch runs {
			case 1: // nothing is held yet, so the other process overtakes this one
				for seen := wrote.Load(); wrote.Load() < seen+2; {
					time.Sleep(time.Millisecond)
				}
			case 2:
				begun <- true
				<-late
			}
			_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"x","pk":"a","n":1}`)})
			return err
		}); err != nil || runs < 3 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
	<-begun
	quiet()
	for _, c := range []*core.Container{c, other} {
		at := time.Now()
		put(t, c, core.Upsert, `{"id":"x","pk":"a","n":2}`)
		if took := time.Since(at); took > 3*time.Second {
			t.Errorf("a write has waited for %v", took)
		}
	}
	close(late)
	tx.Wait()
}
