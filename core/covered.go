package core

import (
	"context"

	"github.com/orrerydb/orrery/core/store"
)

// Settle waits until everything that Count, Size and Partitions have returned is durable. It is for answers that show
// these values.
func (c *Container) Settle() error { return c.rt.Settle() }

// CountIn returns the exact number of items of a logical partition, including expired ones that are not reaped yet. It
// costs one read. ok is false when pk is only the beginning of a hierarchical key.
func (c *Container) CountIn(ctx context.Context, pk PartitionKey) (n int64, ok bool, err error) {
	err = store.Again(func() error {
		n, ok, err = c.countIn(ctx, pk)
		return err
	})
	return n, ok, err
}

func (c *Container) countIn(ctx context.Context, pk PartitionKey) (n int64, ok bool, err error) {
	lo, hi := c.rt.Within(pk)
	v, err := c.rt.ViewIn(ctx, lo, hi)
	if err != nil {
		return 0, false, err
	}
	defer v.Close()
	slot, place, tuple, complete, err := v.Locate(pk)
	if err != nil || !complete {
		return 0, false, err
	}
	if n, err = v.LogicalItems(slot, place, tuple); err != nil {
		return 0, false, err
	}
	return n, true, v.SettleSlot(ctx, slot)
}
