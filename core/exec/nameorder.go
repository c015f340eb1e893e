package exec

import (
	"bytes"
	"container/heap"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// nameOrder gives the items that an index names in the order of their partition key and id, which make up their names.
// It gathers the names from the index entries of all slots in a heap. It reads only the items that it gives, and orders
// only their names.
//
// Example: the first page of 20 entities of a table with 500 whose Total is above 90. It walks 500 entries and reads 20
// items. A sort would read 500 items.
type nameOrder struct {
	b     *builder
	list  []nameIn // a heap
	names []byte
	mem   store.Mem
	far   *ahead // fetches the items in chunks; nil: one by one
}

// nameIn is an item of a slot: its name is names[from:to].
type nameIn struct {
	slot     *store.ViewSlot
	from, to uint32
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *nameOrder) Len() int { return len(s.list) }

func (s *nameOrder) Less(i, j int) bool {
	return bytes.Compare(s.bytes(&s.list[i]), s.bytes(&s.list[j])) < 0
}
func (s *nameOrder) Swap(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] }
func (s *nameOrder) Push(x any)    { s.list = append(s.list, x.(nameIn)) }

// Pop removes the last name and returns nothing: next has taken it.
func (s *nameOrder) Pop() any {
	s.list = s.list[:len(s.list)-1]
	return nil
}

func (s *nameOrder) bytes(n *nameIn) []byte { return s.names[n.from:n.to] }

var textLead = keys.AppendExact(nil, value.StringOf("x"))[0]

// nameOrder gives the names that the planner has gathered.
func (b *builder) nameOrder(*plan.Node, *position) (source, error) {
	b.rows.stats.Sorted = true
	return b.names, nil
}

// nameAfter returns the name of the position's item, nil at the start.
func (b *builder) nameAfter() (after []byte) {
	if b.from != nil {
		for _, v := range b.from.keys {
			after = keys.AppendExact(after, v)
		}
	}
	return after
}

// sortNames gathers and sorts the names after one that an index gives. It returns nil if there are more than most, or
// if some keys or ids aren't strings: then the names don't sort as the keys and ids do.
func (b *builder) sortNames(p *access.Plan, most int, after []byte) (*nameOrder, error) {
	u := b.namesOf(p)
	defer u.close()
	s, walked := &nameOrder{b: b}, 0
	for u.i < len(b.spans) {
		if u.most = 0; len(u.also) == 0 {
			u.most = most - walked + 1
		}
		u.loose = u.namesOnce(b.spans[u.i].slot)
		if err := u.gather(); err != nil {
			return nil, err
		}
		if walked += len(u.list); walked > most || u.more {
			return nil, nil
		}
		for _, n := range u.list {
			name := u.names[n.from:n.to]
			if !textName(name) {
				return nil, nil
			}
			if after == nil || bytes.Compare(name, after) > 0 {
				at := uint32(len(s.names))
				s.names = append(s.names, name...)
				s.list = append(s.list, nameIn{b.spans[u.i].slot, at, uint32(len(s.names))})
			}
		}
		u.i, u.above = u.upto, false
	}
	heap.Init(s)
	return s, nil
}

// namesOnce reports whether the entries in a slot name each item once.
func (u *union) namesOnce(slot *store.ViewSlot) bool {
	if len(u.leaves) != 1 || len(u.also) > 0 {
		return false
	}
	l := &u.leaves[0]
	return l.pred.Op != access.OpSpatial && (l.pred.Comp == nil || l.pred.Comp.Index.Array == nil) &&
		!l.several(u.b, slot)
}

// textName reports whether a partition key of one value and an id are strings.
func textName(name []byte) bool {
	if name[0] != textLead {
		return false
	}
	id, err := keys.SkipExact(name)
	return err == nil && len(id) > 0 && id[0] == textLead
}

func (s *nameOrder) next(r *row) (bool, error) {
	if s.far == nil {
		s.far = s.b.readsAhead(s, nil)
	}
	if s.far != nil {
		var n nameOf
		ok, err := s.far.next(r, &n)
		if ok {
			r.pos = position{kind: posSort, number: s.b.rank(&r.item)}
		}
		return ok, err
	}
	for len(s.list) > 0 {
		n := s.list[0]
		heap.Pop(s)
		r.slot = n.slot
		ok, err := s.b.fetchNamed(r, s.bytes(&n), &s.mem)
		if err != nil {
			return false, err
		}
		if ok {
			r.pos = position{kind: posSort, number: s.b.rank(&r.item)}
			return true, nil
		}
	}
	return false, nil
}

// name implements namer.
func (s *nameOrder) name(n *nameOf) (bool, error) {
	if len(s.list) == 0 {
		return false, nil
	}
	it := s.list[0]
	heap.Pop(s)
	*n = nameOf{slot: it.slot, name: s.bytes(&it)}
	return true, nil
}

func (s *nameOrder) follows() (bool, error) {
	if s.far != nil {
		return s.far.follows()
	}
	return len(s.list) > 0, nil
}

func (s *nameOrder) close() {}
