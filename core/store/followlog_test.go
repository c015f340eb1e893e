package store

import (
	"context"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// A writer that holds a slot has its latch, and follows a newer definition before it commits. Whoever follows that
// definition meanwhile doesn't wait for the latch: the writer would wait for him.
func TestDefinitionIsFollowedBesideAHold(t *testing.T) {
	c := slottedOn(t, kvtest.NewShared(memkv.New(), 1).Engine())
	def := *c.Def()
	def.LogMinutes, def.Version = 60, def.Version+1
	if err := c.update(context.Background(), &def); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h, err := c.hold(ctx, c.slotList()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer h.end()
	newer := def
	newer.Version++
	if err := c.update(ctx, &newer); err != nil || !h.has.Load() {
		t.Errorf("%v; the hold has the latch: %v", err, h.has.Load())
	}
}
