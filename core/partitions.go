package core

import (
	"context"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Partition is a physical partition: a range of hashes. SDKs say partition key range.
type Partition struct {
	ID       string
	Min, Max string   // effective partition keys as published, "" .. "FF"
	Parents  []string // the whole ancestry, oldest first
	LSN      int64    // greatest LSN of its slots
	Items    int64
	Bytes    int64
}

// Partitions returns the live physical partitions in the order of their ranges; they are contiguous. It fails where
// Count does.
func (c *Container) Partitions(ctx context.Context) ([]Partition, error) {
	if err := c.fresh(ctx); err != nil {
		return nil, err
	}
	return c.Known(), nil
}

// Known returns the physical partitions as this process knows them, without a look at the store. Their LSNs are at
// least those of everything that its requests have read or written until now, which is what a session token says.
func (c *Container) Known() []Partition {
	slots := c.rt.Slots()
	out := make([]Partition, len(slots.Map().Partitions))
	for i := range out {
		out[i] = c.partition(slots, i)
	}
	return out
}

// Newest returns the one of the Known partitions that has the greatest LSN, the first one of several.
func (c *Container) Newest() Partition {
	slots := c.rt.Slots()
	best, greatest := 0, int64(-1)
	for i := range slots.Map().Partitions {
		if lsn := max(slots.Map().Partitions[i].BaseLSN, store.StatsOf(slots.In(i)).LSN); lsn > greatest {
			best, greatest = i, lsn
		}
	}
	return c.partition(slots, best)
}

func (c *Container) partition(slots *store.Slots, i int) Partition {
	p := partitionOf(c.rt.Def().PartitionKey.EPKKind(), slots.Map(), i)
	p.add(store.StatsOf(slots.In(i)))
	return p
}

// add adds the contents of slots to the partition.
func (p *Partition) add(s store.Stats) {
	p.LSN, p.Items, p.Bytes = max(p.LSN, s.LSN), p.Items+s.Items, p.Bytes+s.Bytes
}

// partitionOf returns the physical partition of a slot map as clients see it.
func partitionOf(kind epk.Kind, m *catalog.SlotMap, i int) Partition {
	d := &m.Partitions[i]
	p := Partition{ID: strconv.Itoa(d.ID), Min: "", Max: "FF", LSN: d.BaseLSN}
	min, max := m.Bounds(m.Run(i))
	if len(min) > 0 {
		p.Min = epk.BoundaryText(kind, min)
	}
	if max != nil {
		p.Max = epk.BoundaryText(kind, max)
	}
	for _, n := range d.Parents {
		p.Parents = append(p.Parents, strconv.Itoa(n))
	}
	return p
}

// PartitionOf returns the physical partition that holds a partition key.
func (c *Container) PartitionOf(pk PartitionKey) (Partition, error) {
	place, _, _, err := c.rt.Place(pk)
	if err != nil {
		return Partition{}, err
	}
	slots := c.rt.Slots()
	return c.partition(slots, slots.Map().Partition(place)), nil
}

// SessionOf returns the content of a session token after a write or read in a slot: the partition's id and its LSN. It
// doesn't look up text boundaries.
func (c *Container) SessionOf(slot *Slot) (id int, lsn int64) {
	slots := c.rt.Slots()
	i := slots.Map().Partition(slot.Min())
	p := &slots.Map().Partitions[i]
	return p.ID, max(store.StatsOf(slots.In(i)).LSN, p.BaseLSN)
}

// SplitPartition replaces a physical partition by two. They get new ids, and the old id is among their parents. The
// second one begins at the slot boundary that is nearest to the middle of the partition's hashes. If the partition has
// one slot, it is split in the middle. Requests of all kinds go on meanwhile; those that name the old id get Gone
// afterwards, sub-status 1002. NotFound when there is no partition with the id.
func (c *Container) SplitPartition(ctx context.Context, id string) error {
	return c.retried(ctx, func() error {
		m := c.rt.Slots().Map()
		p, err := numberOf(m, id)
		if err != nil {
			return err
		}
		at, ok := m.Middle(c.rt.Def().PartitionKey.EPKKind(), p)
		if !ok {
			return errOneHash(m.Partitions[p].ID)
		}
		return c.splitAt(ctx, m.Partitions[p].ID, at)
	})
}

// splitAt splits a partition at a placement. If no slot begins there, the slot that holds the placement is split first,
// which copies its items.
func (c *Container) splitAt(ctx context.Context, id int, at []byte) error {
	if m := c.rt.Slots().Map(); m.Full() {
		return status.New(status.BadRequest, "The container has %d physical partitions, and can't have more.",
			len(m.Partitions))
	}
	if err := c.SplitSlot(ctx, at); err != nil {
		return err
	}
	return c.moved(nil, c.rt.SplitPartition(ctx, id, at))
}

// MergePartitions replaces a physical partition, and the one whose hashes follow, by one with a new id. If that has
// more slots than a partition of a new container, they are joined. Requests go on as with SplitPartition. NotFound when
// there is no partition with the id, BadRequest when it is the last one, or when the throughput needs them all.
func (c *Container) MergePartitions(ctx context.Context, id string) error {
	var min []byte
	err := c.retried(ctx, func() error {
		m := c.rt.Slots().Map()
		p, err := numberOf(m, id)
		if err != nil {
			return err
		}
		if p+1 == len(m.Partitions) {
			return status.New(status.BadRequest, "No physical partition follows %s. Name the one before it.", id)
		}
		def := c.rt.Def()
		if n := c.e.cat.PartitionsFor(&def.Spec); len(m.Partitions) <= n {
			return status.New(status.BadRequest, "%d RU/s need %d physical partitions, and the container has %d. "+
				"Lower its throughput first.", def.Throughput.Max(), n, len(m.Partitions))
		}
		min, _ = m.Bounds(m.Run(p))
		return c.moved(nil, c.rt.MergePartitions(ctx, m.Partitions[p].ID))
	})
	if err == nil {
		err = c.joinIn(ctx, min)
	}
	c.e.resizeLater(c.rt.Def()) // the throughput may have been raised meanwhile
	return err
}

// joinIn joins slots of the partition that holds a placement until it has no more than those of a new container have,
// because a query visits every slot. The smallest neighbours come first.
func (c *Container) joinIn(ctx context.Context, place []byte) error {
	for {
		slots := c.rt.Slots()
		m := slots.Map()
		all := slots.In(m.Partition(place))
		if len(all) <= c.e.cat.SlotsOf(len(m.Partitions)) {
			return nil
		}
		best, least := 1, int64(math.MaxInt64)
		for i := 1; i < len(all); i++ {
			if n := store.StatsOf(all[i-1 : i+1]).Bytes; n < least {
				best, least = i, n
			}
		}
		if err := c.JoinSlots(ctx, all[best].Min()); err != nil {
			return err
		}
	}
}

func errOneHash(id int) error {
	return status.New(status.BadRequest, "The physical partition %d holds one hash only and can't be split.", id)
}

// maxMapChanges is how often a change of partitions is begun again because the slot map has changed meanwhile.
const maxMapChanges = 100

// retried calls f again while the slot map changes under it. Before each call it takes over what other processes have
// changed.
func (c *Container) retried(ctx context.Context, f func() error) (err error) {
	for range maxMapChanges {
		if err = c.rt.Refresh(ctx); err == nil {
			err = f()
		}
		if !status.Is(err, status.RetryWith) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// numberOf returns the number of the partition with an id in a map.
func numberOf(m *catalog.SlotMap, id string) (int, error) {
	n, err := strconv.Atoi(id)
	p := -1
	if err == nil {
		p = m.PartitionByID(n)
	}
	if p < 0 {
		return 0, status.New(status.NotFound, "There is no physical partition %q.", id)
	}
	return p, nil
}
