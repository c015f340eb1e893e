package core

import (
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// SplitSlot replaces the slot that holds a placement by two slots, the second of which begins at the placement. Both
// are in the slot's physical partition. It returns when it is done and durable. Requests continue during the copy. If a
// slot begins at the placement, nothing is done.
//
// If the container's index is being rebuilt, or other slots are being split or joined, it waits for their end. When ctx
// ends, or after an error, the container has its former slots.
func (c *Container) SplitSlot(ctx context.Context, at []byte) error {
	rest, err := c.rt.SplitSlot(ctx, at)
	return c.moved(rest, err)
}

// JoinSlots replaces the two adjacent slots on both sides of a boundary by one. They must be in one physical partition.
// Otherwise it does what SplitSlot does.
func (c *Container) JoinSlots(ctx context.Context, at []byte) error {
	rest, err := c.rt.JoinSlots(ctx, at)
	return c.moved(rest, err)
}

// Median returns a placement that divides the bytes of the placements [min, max) into about equal halves, between two
// logical partitions; a nil max is open. ok is false when there is only one logical partition.
func (c *Container) Median(ctx context.Context, min, max []byte) (at []byte, ok bool, err error) {
	return c.rt.Median(ctx, min, max)
}

// ChangeMap replaces the container's slot map with the result of f, which gets the current map. f may change physical
// partitions, but not slots. It may run again if the map changes in between.
func (c *Container) ChangeMap(ctx context.Context, f func(*catalog.SlotMap) (*catalog.SlotMap, error)) error {
	return c.moved(nil, c.rt.ChangeMap(ctx, f))
}

// moved has the keys of slots removed in the background that a change of the slot map has left. If it isn't known
// whether the map was changed, the background finds that out too, and rest are the slots of both maps. It returns err.
func (c *Container) moved(rest []keys.Slot, err error) error {
	d := dropped{slots: rest}
	if status.Is(err, status.UnknownOutcome) {
		d.of = c.rt
	}
	if len(rest) > 0 || d.of != nil {
		c.e.dropLater(d)
	}
	return err
}
