package store

import (
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core/catalog"
)

// A partition keeps its meter while the map changes around it. The meters of partitions that are gone are dropped, also
// when a reader still has an older map.
func TestMetersFollowTheMap(t *testing.T) {
	c := &Container{}
	version := func(ids ...int) *Slots {
		m := &catalog.SlotMap{}
		for _, id := range ids {
			m.Partitions = append(m.Partitions, catalog.PartitionDef{ID: id})
		}
		return &Slots{m: m}
	}
	unused, first, second := version(7, 8), version(0, 1), version(0, 2, 3)
	c.slots.Store(first)
	before := c.Meters(first)
	before[0].Add(1)
	c.slots.Store(second)
	after := c.Meters(second)
	if after[0] != before[0] || after[0].Total() != 1 {
		t.Error("partition 0 has another meter after partition 1 was split")
	}
	for range 2 {
		if old := c.Meters(first); old[1] != before[1] {
			t.Error("a reader of the former map has another meter of partition 1")
		}
		c.Meters(unused)
		var ids []int
		for id := range c.metered {
			ids = append(ids, id)
		}
		if slices.Sort(ids); !slices.Equal(ids, []int{0, 2, 3}) {
			t.Errorf("meters of the partitions %v", ids)
		}
	}
}
