package store

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// SplitPartition replaces the physical partition with an id by two, the second of which begins at a slot's first
// placement. No data moves. NotFound when there is no such partition or no slot of it begins there.
func (c *Container) SplitPartition(ctx context.Context, id int, at []byte) error {
	return c.repartition(ctx, func(m *catalog.SlotMap) (parted, error) {
		p := m.PartitionByID(id)
		slot, ok := m.SlotAt(at)
		if p < 0 || !ok || m.Partition(at) != p || slot == m.Partitions[p].First {
			return parted{}, errNoPartition()
		}
		return parted{p, p + 1, func(base int64) *catalog.SlotMap { return m.SplitPartition(p, slot, base) }}, nil
	})
}

// MergePartitions replaces the physical partition with an id, and the one after it, by one. No data moves. NotFound
// when there is no such partition, or none after it.
func (c *Container) MergePartitions(ctx context.Context, id int) error {
	return c.repartition(ctx, func(m *catalog.SlotMap) (parted, error) {
		p := m.PartitionByID(id)
		if p < 0 || p+1 == len(m.Partitions) {
			return parted{}, errNoPartition()
		}
		return parted{p, p + 2, func(base int64) *catalog.SlotMap { return m.MergePartitions(p, base) }}, nil
	})
}

func errNoPartition() error {
	return status.New(status.NotFound, "There is no such physical partition.")
}

// parted is a change of the partitions [from, to) of a map.
type parted struct {
	from, to int
	next     func(base int64) *catalog.SlotMap // base is the greatest LSN in them
}

// repartition changes the physical partitions. The latches of their slots are held while the map is stored, so that no
// commit can have an LSN between the base of the new partitions and the moment in which they are visible. plan may be
// called more than once.
func (c *Container) repartition(ctx context.Context, plan func(*catalog.SlotMap) (parted, error)) error {
	for range mapChanges {
		done, err := c.repartitionOnce(ctx, plan)
		if done || err != nil {
			return err
		}
	}
	return status.New(status.RetryWith, "The partitions of the container are changed too often by others.")
}

// repartitionOnce is one attempt. done is false if the map has changed meanwhile.
func (c *Container) repartitionOnce(ctx context.Context, plan func(*catalog.SlotMap) (parted, error)) (
	done bool, err error) {
	was := c.Slots()
	ch, err := plan(was.m)
	if err != nil {
		return false, err
	}
	from, _ := was.m.Run(ch.from)
	_, to := was.m.Run(ch.to - 1)
	slots := slices.Clone(was.all[from:to])
	slices.SortFunc(slots, func(a, b *Slot) int { return cmp.Compare(a.key.ID, b.key.ID) })
	base := int64(0)
	var heads []kv.Precondition // with a shared engine: no other process commits meanwhile
	for _, sl := range slots {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		if err := c.newestHead(ctx, sl); err != nil {
			return false, err
		}
		if base = max(base, sl.head.LSN); c.st.others {
			heads = append(heads, sl.asRead()...)
		}
	}
	if err := c.mapMu.LockUntil(ctx); err != nil {
		return false, err
	}
	defer c.mapMu.Unlock()
	err = c.changeMap(ctx, nil, func(m *catalog.SlotMap) (*catalog.SlotMap, *kv.Batch, []kv.Precondition, error) {
		if done = m == was.m; !done {
			return m, nil, nil, nil
		}
		return ch.next(base), nil, heads, nil
	})
	if errors.Is(err, kv.ErrConflict) {
		return false, nil
	}
	return done, err
}
