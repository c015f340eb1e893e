package store

import (
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
)

// Slots is one version of a container's slot map with the run-time state of its slots. It never changes;
// Container.Slots gives the present one. Who looks for more than one slot takes it once and stays with it, so that the
// slots it has fit together, and hands slots on as *Slot: they stay what they are in every version that has them.
//
// A reader's View is of one version. A writer finds its slot without a latch, and finds it again when the map has
// another version under the latch: see Container.current.
type Slots struct {
	m   *catalog.SlotMap
	all []*Slot // as they stand in m
}

// Slots returns the present version of the container's slots.
func (c *Container) Slots() *Slots { return c.slots.Load() }

// slotList returns the present slots, in the order of their placements.
func (c *Container) slotList() []*Slot { return c.slots.Load().all }

// Map returns the version of the map that the slots are of.
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

// relocate finds the slot of an item in the present version of the map.
func (c *Container) relocate(id *identity) {
	s := c.Slots()
	id.slot, id.version = s.at(id.place), s.m.MapVersion
}

// current reports whether a change was made for its slot as that is now: found under the present version of the map,
// with terms as the slot's index entries are kept. The caller holds the slot's latch: while it is held the slot stays
// in the map. Every commit of items asks. When the answer is no the write begins again, with relocate.
func (c *Container) current(ch *change) bool {
	return ch.id.version == c.Slots().m.MapVersion && ch.upkeep == ch.id.slot.head.upkeep()
}

// allCurrent reports whether all of a slot's changes are.
func (c *Container) allCurrent(chs []change) bool {
	for i := range chs {
		if !c.current(&chs[i]) {
			return false
		}
	}
	return true
}

// Key returns the slot's name in the key space.
func (s *Slot) Key() keys.Slot { return s.key }

// ID returns the slot's id, which no other slot of the container ever has.
func (s *Slot) ID() uint32 { return s.key.ID }

// Min returns the least placement of the slot.
func (s *Slot) Min() []byte { return s.min }

// Max returns the placement behind the slot's greatest; nil: there is none.
func (s *Slot) Max() []byte { return s.max }

// Stats returns what the slot holds. Its LSN is the greatest durable one: what a client is shown must not be taken back
// by a crash, so commits on their way to being durable don't count in it.
func (s *Slot) Stats() Stats { return Stats{s.durable.Load(), s.items.Load(), s.bytes.Load()} }

// Items returns the number of the slot's items; expired ones that are not reaped yet count.
func (s *Slot) Items() int64 { return s.items.Load() }

// StatsOf returns what slots hold together: their greatest LSN, and the sums of the others.
func StatsOf(slots []*Slot) (st Stats) {
	for _, s := range slots {
		st.add(s.Stats())
	}
	return st
}

// add adds what another slot holds.
func (st *Stats) add(o Stats) {
	*st = Stats{max(st.LSN, o.LSN), st.Items + o.Items, st.Bytes + o.Bytes}
}
