package catalog

import (
	"bytes"
	"slices"
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

	// Gone has the boundaries that joins have removed, oldest first: see Former. Since is the least version that Former
	// knows.
	Gone  []Boundary `json:"gone,omitempty"`
	Since uint64     `json:"since,omitempty"`
}

// SlotDef is a slot of a map: all placements from Min up to the next slot's Min.
type SlotDef struct {
	Min []byte `json:"min,omitempty"` // placement bytes (core/epk); empty = the least
	ID  uint32 `json:"id"`
	// Born is the map version in which the boundary at Min appeared; 0: the container was created with it.
	Born uint64 `json:"born,omitempty"`
}

// Boundary is a boundary between two slots that no longer exists. The map's versions from Born to before Died had it.
type Boundary struct {
	Min  []byte `json:"min"`
	Born uint64 `json:"born,omitempty"`
	Died uint64 `json:"died"`
}

// maxGone is the number of former boundaries that a map keeps.
const maxGone = 4096

// PartitionDef is a physical partition of a map: adjacent slots.
type PartitionDef struct {
	ID      int   `json:"id"`
	First   int   `json:"first"` // number of its first slot in this map; it ends where the next partition begins
	Parents []int `json:"parents,omitempty"`
	BaseLSN int64 `json:"baseLsn,omitempty"` // the parent's LSN at the split
}

// firstMap is the version of a map before its first change.
const firstMap = 1

// newSlotMap returns the map of a new container. The partitions are equal shares of the hash, with the service's
// boundaries, whatever the number of their slots. The slots are equal shares of their partition, so the number of
// partitions must divide that of the slots.
func newSlotMap(kind epk.Kind, slots, partitions int) *SlotMap {
	m := &SlotMap{MapVersion: firstMap, Slots: make([]SlotDef, 0, slots), NextSlot: uint32(slots + 1),
		NextPartition: partitions}
	ends := append(epk.Split(kind, partitions), nil)
	var min []byte
	for p, max := range ends {
		m.Partitions = append(m.Partitions, PartitionDef{ID: p, First: len(m.Slots)})
		for _, at := range append([][]byte{min}, epk.Shares(kind, min, max, slots/partitions)...) {
			m.Slots = append(m.Slots, SlotDef{Min: at, ID: uint32(len(m.Slots) + 1)})
		}
		min = max
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

// PartitionFrom is Partition for a placement that isn't in a partition before p. Who looks at all slots in their order
// passes the partition of the last one, and needs one or two comparisons.
func (m *SlotMap) PartitionFrom(p int, place []byte) int {
	for p+1 < len(m.Partitions) && bytes.Compare(m.Slots[m.Partitions[p+1].First].Min, place) <= 0 {
		p++
	}
	return p
}

// Run returns the slots [from, to) of a physical partition.
func (m *SlotMap) Run(p int) (from, to int) {
	from, to = m.Partitions[p].First, len(m.Slots)
	if p+1 < len(m.Partitions) {
		to = m.Partitions[p+1].First
	}
	return from, to
}

// Former returns the placements [min, max) that the slot which began at min had in a version of the map; a nil max is
// open. ok is false when that version had no slot that began there, or when the map no longer knows that version.
//
// Example: version 1 has boundaries 00 and 80, version 2 has 40 too, and version 3 has lost 80. The slot that began at
// 00 ended at 80 in version 1, and at 40 in the others.
func (m *SlotMap) Former(version uint64, min []byte) (max []byte, ok bool) {
	if version < m.Since || version > m.MapVersion {
		return nil, false
	}
	see := func(at []byte) {
		switch c := bytes.Compare(at, min); {
		case c == 0:
			ok = true
		case c > 0 && (max == nil || bytes.Compare(at, max) < 0):
			max = at
		}
	}
	for i := range m.Slots {
		if m.Slots[i].Born <= version {
			see(m.Slots[i].Min)
		}
	}
	for i := range m.Gone {
		if g := &m.Gone[i]; g.Born <= version && version < g.Died {
			see(g.Min)
		}
	}
	if !ok {
		return nil, false
	}
	return max, true
}

// Split returns the next version of the map, in which two slots replace slot i. The second one begins at a placement
// inside of slot i. Both are in slot i's partition.
func (m *SlotMap) Split(i int, at []byte, left, right uint32) *SlotMap {
	next := m.next()
	next.Slots = slices.Insert(slices.Clone(m.Slots), i+1,
		SlotDef{Min: bytes.Clone(at), ID: right, Born: next.MapVersion})
	next.Slots[i].ID = left
	next.NextSlot = max(next.NextSlot, left+1, right+1)
	next.shift(i, 1)
	return next
}

// Join returns the next version of the map, in which one slot replaces the slots i and i+1 of one partition.
func (m *SlotMap) Join(i int, id uint32) *SlotMap {
	next := m.next()
	gone := m.Slots[i+1]
	next.Slots = slices.Delete(slices.Clone(m.Slots), i+1, i+2)
	next.Slots[i].ID = id
	next.NextSlot = max(next.NextSlot, id+1)
	next.Gone = append(slices.Clone(m.Gone), Boundary{Min: gone.Min, Born: gone.Born, Died: next.MapVersion})
	for len(next.Gone) > maxGone {
		next.Since, next.Gone = max(next.Since, next.Gone[0].Died), next.Gone[1:]
	}
	next.shift(i, -1)
	return next
}

// next returns a copy with the next version, which shares the lists with m.
func (m *SlotMap) next() *SlotMap {
	n := *m
	n.MapVersion++
	return &n
}

// shift moves the partitions that begin after slot i by a number of slots.
func (m *SlotMap) shift(i, by int) {
	m.Partitions = slices.Clone(m.Partitions)
	for p := range m.Partitions {
		if m.Partitions[p].First > i {
			m.Partitions[p].First += by
		}
	}
}

// PartitionBegins reports whether a physical partition begins at slot i.
func (m *SlotMap) PartitionBegins(i int) bool {
	return slices.ContainsFunc(m.Partitions, func(p PartitionDef) bool { return p.First == i })
}

// Same reports whether two maps have the same version, slots and partitions.
func (m *SlotMap) Same(o *SlotMap) bool {
	return m.MapVersion == o.MapVersion &&
		slices.EqualFunc(m.Slots, o.Slots, func(a, b SlotDef) bool {
			return a.ID == b.ID && bytes.Equal(a.Min, b.Min)
		}) &&
		slices.EqualFunc(m.Partitions, o.Partitions, func(a, b PartitionDef) bool {
			return a.ID == b.ID && a.First == b.First && a.BaseLSN == b.BaseLSN
		})
}

// IndexOf returns the number of the slot with an id; -1 when there is none.
func (m *SlotMap) IndexOf(id uint32) int {
	return slices.IndexFunc(m.Slots, func(s SlotDef) bool { return s.ID == id })
}
