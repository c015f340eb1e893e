package catalog

import (
	"bytes"
	"sort"

	"github.com/orrerydb/orrery/core/epk"
)

// SlotMap tells which slot holds a placement, and which physical partition a placement belongs to. Its value is never
// changed: a change of boundaries makes another SlotMap with a greater version. Code that uses the map of a container
// more than once takes one version and uses it throughout.
//
// A slot has an id, and its id always stands for the same placements: a slot that is cut in two is replaced by two
// slots with new ids. The numbers of slots and partitions in a map (0, 1, ..) are valid only in that map.
//
// Example: slots 1 to 8 begin at placements 00, 20, .. E0, and partitions 0 and 1 have four of them each. A cut of slot
// 3 at 50 gives version 2, with slots 9 (40 to 50) and 10 (50 to 60) in its place.
type SlotMap struct {
	MapVersion    uint64         `json:"slotMap,omitempty"` // goes up with every change; absent in older entries: 1
	Slots         []SlotDef      `json:"slots"`
	Partitions    []PartitionDef `json:"partitions"`
	NextPartition int            `json:"nextPartition"`
	NextSlot      uint32         `json:"nextSlot"`
}

// SlotDef is a slot of a map: all placements from Min up to the next slot's Min.
type SlotDef struct {
	Min []byte `json:"min,omitempty"` // placement bytes (core/epk); empty = the least
	ID  uint32 `json:"id"`
}

// PartitionDef is a physical partition of a map: adjacent slots.
type PartitionDef struct {
	ID      int   `json:"id"`
	First   int   `json:"first"` // number of its first slot in this map; it ends where the next partition begins
	Parents []int `json:"parents,omitempty"`
	BaseLSN int64 `json:"baseLsn,omitempty"` // the parent's LSN at the split
}

// firstMap is the version of a map before its first change.
const firstMap = 1

// newSlotMap returns the map of a new container. The slots are equal shares of the hash. The partitions are equal
// shares of the slots, so their number must divide that of the slots.
func newSlotMap(kind epk.Kind, slots, partitions int) *SlotMap {
	m := &SlotMap{MapVersion: firstMap, Slots: make([]SlotDef, slots), NextSlot: uint32(slots + 1),
		NextPartition: partitions}
	for i, min := range epk.Split(kind, slots) {
		m.Slots[i+1].Min = min
	}
	for i := range m.Slots {
		m.Slots[i].ID = uint32(i + 1)
	}
	for p := range partitions {
		m.Partitions = append(m.Partitions, PartitionDef{ID: p, First: p * slots / partitions})
	}
	return m
}

// verify checks what other code relies on: slots in order, beginning at the least placement, and partitions that begin
// at slots. It returns a description of the fault, "" for none.
func (m *SlotMap) verify() string {
	if m == nil || len(m.Slots) == 0 || len(m.Partitions) == 0 {
		return "no slot or partition"
	}
	for i := range m.Slots {
		if i == 0 && len(m.Slots[0].Min) > 0 || i > 0 && bytes.Compare(m.Slots[i-1].Min, m.Slots[i].Min) >= 0 {
			return "slots out of order"
		}
	}
	for i := range m.Partitions {
		first := m.Partitions[i].First
		if i == 0 && first != 0 || i > 0 && first <= m.Partitions[i-1].First || first >= len(m.Slots) {
			return "partitions out of order"
		}
	}
	return ""
}

// Slot returns the number of the slot that holds a placement.
func (m *SlotMap) Slot(place []byte) int {
	return sort.Search(len(m.Slots)-1, func(i int) bool { return bytes.Compare(m.Slots[i+1].Min, place) > 0 })
}

// Bounds returns the placements [min, max) of the slots [from, to); a nil max is open.
func (m *SlotMap) Bounds(from, to int) (min, max []byte) {
	if to < len(m.Slots) {
		max = m.Slots[to].Min
	}
	return m.Slots[from].Min, max
}

// Partition returns the number of the physical partition that a placement belongs to.
func (m *SlotMap) Partition(place []byte) int {
	return sort.Search(len(m.Partitions)-1, func(p int) bool {
		return bytes.Compare(m.Slots[m.Partitions[p+1].First].Min, place) > 0
	})
}

// Run returns the slots [from, to) of a physical partition.
func (m *SlotMap) Run(p int) (from, to int) {
	from, to = m.Partitions[p].First, len(m.Slots)
	if p+1 < len(m.Partitions) {
		to = m.Partitions[p+1].First
	}
	return from, to
}
