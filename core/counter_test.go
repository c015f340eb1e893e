package core_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/race"
)

// lateCounters is an engine on which reservations of numbers become durable late: after a number of further writes.
type lateCounters struct {
	kv.Engine
	late         atomic.Bool
	done         atomic.Int64 // writes of the test
	reservations atomic.Int64
	stuck        atomic.Bool
	fail         atomic.Int64 // number of reservations that still fail
}

func (e *lateCounters) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	counter := b.Len() == 1 && bytes.HasPrefix(b.Op(0).Key, keys.AppendMeta(nil, keys.MetaCounter, 0, "")[:2])
	if counter && e.fail.Add(-1) >= 0 {
		return nil, fmt.Errorf("%w: no reservation now", kv.ErrUnknownOutcome)
	}
	cm, err := e.Engine.Write(ctx, b, pre)
	if err != nil || !counter {
		return cm, err
	}
	e.reservations.Add(1)
	if !e.late.Load() {
		return cm, nil
	}
	return hookCommit{cm, func() error {
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
			switch {
			case e.done.Load() >= 500:
				e.done.Store(0)
				return nil
			case time.Now().After(end):
				e.stuck.Store(true)
				return nil
			}
		}
	}}, nil
}

// No write waits for a reservation of LSNs or numbers: the next block is reserved before the current one is used up.
func TestReservationsAreAhead(t *testing.T) {
	race.Alone(t)
	for name, write := range map[string]func(t *testing.T, c *core.Container, e *lateCounters){
		"numbers": func(t *testing.T, c *core.Container, e *lateCounters) {
			for n := range 250 {
				putMany(t, c, 100, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"%d"}`, n*100+i, i%5) })
				e.done.Add(100)
			}
		},
		"LSNs": func(t *testing.T, c *core.Container, e *lateCounters) {
			ws := make([]core.Write, 64)
			for i := range ws {
				ws[i] = core.Write{Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i))}
			}
			for range 1200 {
				for _, o := range c.WriteMany(bg, ws, true) {
					if o.Err != nil {
						t.Fatal(o.Err)
					}
				}
				e.done.Add(64)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			le := &lateCounters{Engine: kv.Checked(memkv.New())}
			e, err := core.Open(bg, le, core.Options{MinSlots: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			defer clean(t, e) // no number was assigned twice
			spec := core.ContainerSpec{IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)}
			c := newContainer(t, e, spec)
			put(t, c, core.Create, `{"id":"first","pk":"a"}`)
			le.late.Store(true)
			write(t, c, le)
			if le.stuck.Load() {
				t.Error("a write has waited for a reservation")
			}
			if le.reservations.Load() < 2 {
				t.Errorf("%d reservations: the test writes too little", le.reservations.Load())
			}
			le.late.Store(false)
		})
	}
}

// A failed reservation is tried again. Only a writer without a number gets the error, and the next writer gets a
// number.
func TestReservationFails(t *testing.T) {
	race.Alone(t)
	le := &lateCounters{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, le, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	defer clean(t, e)
	c := newContainer(t, e, core.ContainerSpec{})
	le.fail.Store(1)
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
	if !status.Is(err, status.Unavailable) {
		// the outcome of the reservation is unknown, but nothing of the write was applied
		t.Errorf("a write without a number: %v", err)
	}
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	le.fail.Store(3)
	for n := range 200 {
		putMany(t, c, 100, func(i int) string { return fmt.Sprintf(`{"id":"a%d","pk":"%d"}`, n*100+i, i%5) })
	}
	if le.fail.Load() >= 0 {
		t.Error("the test meets no failure")
	}
}
