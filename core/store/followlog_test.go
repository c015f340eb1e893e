package store

import (
	"context"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A writer that holds a slot has its latch, and follows a newer definition before it commits. Whoever begins or ends
// the slots' logs waits for that latch, and the writer doesn't wait for him, nor does it begin or end them itself.
func TestDefinitionIsFollowedBesideAHold(t *testing.T) {
	c := slottedOn(t, kvtest.NewShared(memkv.New(), 1).Engine())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h, err := c.hold(ctx, c.slotList()[0])
	if err != nil {
		t.Fatal(err)
	}
	next := func(minutes int64) *catalog.Container {
		def := *c.Def()
		def.LogMinutes, def.Version = minutes, def.Version+1
		return &def
	}
	begun := make(chan error)
	go func() {
		_, err := c.Redefine(ctx, func(catalog.InUse) (*catalog.Container, error) { return next(60), nil })
		begun <- err
	}()
	for !c.LogOn() {
		time.Sleep(time.Millisecond)
	}
	for _, minutes := range []int64{0, 60} {
		if err := c.update(ctx, next(minutes)); err != nil || !h.has.Load() {
			t.Errorf("%d minutes: %v; the hold has the latch: %v", minutes, err, h.has.Load())
		}
	}
	h.end()
	if err := <-begun; err != nil {
		t.Error(err)
	}
	if logged, err := c.allLogged(ctx, c.Slots().all); err != nil || !logged {
		t.Errorf("logged: %v (%v)", logged, err)
	}
}
