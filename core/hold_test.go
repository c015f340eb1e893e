package core_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// busySlot returns the container of two processes over one store. Until the test calls quiet the second process writes
// to its only slot all the time.
func busySlot(t *testing.T) (of, other *core.Container, quiet func()) {
	cs := startProcesses(t, 2, network).containers(core.ContainerSpec{})
	of, other = cs[0], cs[1]
	put(t, of, core.Create, `{"id":"x","pk":"a","n":0}`)
	var stop atomic.Bool
	var writes sync.WaitGroup
	writes.Go(func() {
		for !stop.Load() {
			put(t, other, core.Upsert, `{"id":"x","pk":"a","n":0}`)
		}
	})
	quiet = sync.OnceFunc(func() {
		stop.Store(true)
		writes.Wait()
	})
	t.Cleanup(quiet)
	return of, other, quiet
}

// A transaction that another process has overtaken holds the slot when it runs again. So it runs twice at most, however
// often the other one writes.
func TestHeldSlot(t *testing.T) {
	c, _, quiet := busySlot(t)
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

// A function that doesn't end holds nobody up for long, neither in its process nor in others. It is overtaken then.
func TestHeldSlotIsFreed(t *testing.T) {
	c, other, quiet := busySlot(t)
	begun, late := make(chan bool, 10), make(chan bool)
	var tx sync.WaitGroup
	tx.Go(func() {
		runs := 0
		if _, err := c.WithTx(bg, core.PartitionKey{value.StringOf("a")}, func(tx *core.Tx) error {
			runs++
			if _, err := tx.Read(value.StringOf("x")); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
			if runs == 2 {
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
