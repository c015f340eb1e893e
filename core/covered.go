package core

import "context"

// Settle waits until what Count, Size and Partitions have told before is durable: for answers that show it.
func (c *Container) Settle() error { return c.rt.Settle() }

// CountIn returns the number of items of a logical partition, exact and at the cost of one read; ok is false when pk is
// only the begin of a hierarchical key. Expired items that are not reaped yet count.
func (c *Container) CountIn(ctx context.Context, pk PartitionKey) (n int64, ok bool, err error) {
	v, err := c.rt.View(ctx)
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
