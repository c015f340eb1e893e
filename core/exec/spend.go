package exec

import "github.com/orrerydb/orrery/core/store"

// visit notes which physical partitions the query reads. It refuses the query when one of them has no request units:
// once, and not again when the query takes a new view. A query in a transaction isn't refused, because the transaction
// wasn't.
func (r *Rows) visit(c *store.Container, spans []span) error {
	if len(spans) == 0 {
		return nil
	}
	r.first = spans[0].slot.Slot
	m, partitions := c.Slots().Map(), 1
	if len(spans) > 1 && len(m.Partitions) > 1 {
		last := m.Partition(spans[0].slot.Min())
		for i := 1; i < len(spans); i++ {
			if p := m.PartitionFrom(last, spans[i].slot.Min()); p != last {
				partitions, last = partitions+1, p
			}
		}
	}
	r.visits = nil
	if partitions > 1 {
		r.visits = make([]*store.Slot, 0, len(spans))
		for i := range spans {
			r.visits = append(r.visits, spans[i].slot.Slot)
		}
	}
	if r.visited {
		return nil
	}
	if r.visited = true; r.given.Continuation == "" {
		r.stats.Begun = partitions
	}
	if r.given.tx != nil {
		return nil
	}
	return r.Admit()
}

// Admit refuses to read on when a physical partition that the query reads has no request units. Open calls it. Readers
// that serve several requests from the same rows call it for each.
func (r *Rows) Admit() error {
	switch {
	case !r.of.Throttled() || r.first == nil:
		return nil
	case r.visits == nil:
		return r.of.Admit(r.first.Min())
	}
	return r.of.AdmitIn(r.visits)
}

// Spend counts what was read since the last call, in equal parts in the physical partitions that the query reads, and
// returns that charge. Close calls it.
func (r *Rows) Spend() (charge float64) {
	if r.first == nil || r.stats.Charge() == r.spent {
		return 0
	}
	charge = r.stats.Charge() - r.spent
	r.spent += charge
	if r.visits == nil {
		r.of.Spend(r.first.Min(), charge)
	} else {
		r.of.SpendIn(r.visits, charge)
	}
	return charge
}
