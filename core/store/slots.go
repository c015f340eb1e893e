package store

import (
	"bytes"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/ru"
)

// Slots is one version of a container's slot map with the run-time state of its slots. It never changes.
// Container.Slots returns the current version. Code that looks for more than one slot takes one version and uses it
// throughout, so that its slots fit together. It passes slots on as *Slot: a Slot is the same in every version that has
// it.
//
// A reader's View has one version. A writer finds its slot without a latch. If the map has another version when the
// writer has the latch, it finds the slot again: see Container.current.
type Slots struct {
	m   *catalog.SlotMap
	all []*Slot // in the order of m

	meters atomic.Pointer[[]*ru.Meter] // of the partitions of m; nil until the first use: see Container.Meters
}

// Slots returns the current version of the container's slots.
func (c *Container) Slots() *Slots { return c.slots.Load() }

// slotList returns the current slots, in the order of their placements.
func (c *Container) slotList() []*Slot { return c.slots.Load().all }

// Map returns the slot map of this version.
func (s *Slots) Map() *catalog.SlotMap { return s.m }

// All returns the slots in the order of their placements. They must not be changed.
func (s *Slots) All() []*Slot { return s.all }

// In returns the slots of a physical partition of Map.
func (s *Slots) In(partition int) []*Slot {
	from, to := s.m.Run(partition)
	return s.all[from:to]
}

// at returns the slot of a placement.
func (s *Slots) at(place []byte) *Slot { return s.all[s.m.Slot(place)] }

// within returns the slots that may have placements in [lo, hi), at least one; a nil hi is open.
func (s *Slots) within(lo, hi []byte) []*Slot {
	from, to := s.m.Slot(lo), len(s.all)
	for hi != nil && to > from+1 && bytes.Compare(s.all[to-1].min, hi) >= 0 {
		to--
	}
	return s.all[from:to]
}

// relocate finds the slot of an item in the current version of the map.
func (c *Container) relocate(id *identity) {
	s := c.Slots()
	id.slot, id.version = s.at(id.place), s.m.MapVersion
}

// current reports whether a change was made for its slot as the slot is now: it was found in the current version of the
// map, and its terms follow the slot's upkeep. The caller holds the slot's latch, and while it is held the slot stays
// in the map, unless another process replaces it: then its head says so, or the commit fails. Every commit of items
// calls it. If the result is false the write begins again, with relocate.
func (c *Container) current(ch *change) bool {
	h := &ch.id.slot.head
	return ch.id.version == c.Slots().m.MapVersion && ch.upkeep == h.upkeep() && !h.Moved
}

// allCurrent reports whether all of a slot's changes are current.
func (c *Container) allCurrent(chs []change) bool {
	for i := range chs {
		if !c.current(&chs[i]) {
			return false
		}
	}
	return true
}

// left reports whether the map has changed since an identity was located. Then what was read of the slot may be old, or
// removed: a result that depends on it must not be returned.
func (c *Container) left(id *identity) bool { return id.version != c.Slots().m.MapVersion }

// has reports whether this version of the map has a slot.
func (s *Slots) has(sl *Slot) bool { return s.at(sl.min) == sl }

// holds reports whether a placement belongs to the slot.
func (s *Slot) holds(place []byte) bool {
	return bytes.Compare(place, s.min) >= 0 && (s.max == nil || bytes.Compare(place, s.max) < 0)
}

// Key returns the slot's name in the key space.
func (s *Slot) Key() keys.Slot { return s.key }

// ID returns the slot's id, which no other slot of the container ever has.
func (s *Slot) ID() uint32 { return s.key.ID }

// Min returns the least placement of the slot.
func (s *Slot) Min() []byte { return s.min }

// Max returns the placement after the slot's greatest one; nil: there is none.
func (s *Slot) Max() []byte { return s.max }

// Stats returns the contents of the slot. Its LSN is the greatest durable one. A client must not see an LSN that a
// crash can undo, so commits that are not durable yet don't count.
func (s *Slot) Stats() Stats { return Stats{s.durable.Load(), s.items.Load(), s.bytes.Load()} }

// Items returns the number of the slot's items, including expired ones that are not reaped yet.
func (s *Slot) Items() int64 { return s.items.Load() }

// StatsOf returns the contents of several slots: their greatest LSN, and the sums of the other fields.
func StatsOf(slots []*Slot) (st Stats) {
	for _, s := range slots {
		st.add(s.Stats())
	}
	return st
}

// add adds the contents of another slot.
func (st *Stats) add(o Stats) {
	*st = Stats{max(st.LSN, o.LSN), st.Items + o.Items, st.Bytes + o.Bytes}
}
