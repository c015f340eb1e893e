package core

import (
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// A physical partition that reaches its storage limit is split between two logical partitions, so that both halves have
// about the same size. A partition that holds one logical partition only is left as it is: the limit of a logical
// partition is below that of a physical one by default, and gives its own error.

// sizeTurn is the interval at which the sizes of partitions are compared with their limit.
const sizeTurn = time.Second

// defaultPartitionBytes is the storage limit of a physical partition, as in the service.
const defaultPartitionBytes = 50 << 30

// oversize finds the partitions that have reached the storage limit.
type oversize struct {
	limit int64

	mu    sync.Mutex
	alone map[partitionID]int64 // partitions of one logical partition, with the size at which that was found out
}

// partitionID names a partition of a container generation.
type partitionID struct {
	gen uint32
	id  int
}

// of returns the first partition of a map that is to be split because of its size, -1 when there is none.
func (o *oversize) of(gen uint32, m *catalog.SlotMap, bytes func(p int) int64) int {
	for p := range m.Partitions {
		if n := bytes(p); n >= o.limit && !o.known(partitionID{gen, m.Partitions[p].ID}, n) {
			return p
		}
	}
	return -1
}

// known reports whether a partition of this size is known to hold one logical partition. It must be found out again
// when the partition has grown by a tenth.
func (o *oversize) known(id partitionID, bytes int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.alone[id]
	return ok && bytes-at < at/10
}

// found records that a partition holds one logical partition.
func (o *oversize) found(id partitionID, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alone[id] = bytes
}

// forget removes what is known of containers that are not in use.
func (o *oversize) forget(used map[uint32]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.alone {
		if !used[id.gen] {
			delete(o.alone, id)
		}
	}
}

// watchSizes has partitions split that have reached the limit.
func (e *Engine) watchSizes() {
	for e.work.Sleep(sizeTurn) {
		used := map[uint32]bool{}
		for _, c := range e.store.Opened() {
			if c.Bytes() < e.sizes.limit {
				continue
			}
			used[c.Def().Gen] = true
			if p, _ := e.tooLarge(c); p >= 0 {
				e.resizeSoon(c.Def().RID())
			}
		}
		e.sizes.forget(used)
	}
}

// tooLarge returns the first partition of a container that has reached the limit, -1 for none, in a version of its map.
func (e *Engine) tooLarge(c *store.Container) (int, *store.Slots) {
	slots := c.Slots()
	return e.sizes.of(c.Def().Gen, slots.Map(), func(p int) int64 { return store.StatsOf(slots.In(p)).Bytes }), slots
}

// splitLarge splits a partition that has reached the storage limit. done is true when there is none.
func (c *Container) splitLarge(ctx context.Context) (done bool, err error) {
	p, slots := c.e.tooLarge(c.rt)
	if p < 0 {
		return true, nil
	}
	m := slots.Map()
	id := m.Partitions[p].ID
	bytes := store.StatsOf(slots.In(p)).Bytes // before the median is looked for: what is written meanwhile isn't in it
	min, max := m.Bounds(m.Run(p))
	at, ok, err := c.Median(ctx, min, max)
	if err != nil {
		return false, err
	}
	if !ok {
		c.e.sizes.found(partitionID{c.rt.Def().Gen, id}, bytes)
		return false, nil
	}
	err = c.splitAt(ctx, id, at)
	if status.Is(err, status.NotFound) && c.rt.Slots() != slots { // it has been split or merged meanwhile
		err = nil
	}
	return false, err
}
