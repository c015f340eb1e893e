package exec

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// nameOrder gives the items that an index names in the order of their partition key and id, which make up their names.
// It gathers the names from the index entries of all slots and sorts them. It reads only the items that it gives.
//
// Example: the first page of 20 entities of a table with 500 whose Total is above 90. It walks 500 entries and reads 20
// items. A sort would read 500 items.
type nameOrder struct {
	b     *builder
	list  []nameIn
	names []byte
	at    int
	mem   store.Mem
}

// nameIn is an item of a slot: its name is names[from:to].
type nameIn struct {
	slot     *store.ViewSlot
	from, to int
}

var textLead = keys.AppendExact(nil, value.StringOf("x"))[0]

// nameOrder gives the names that the planner has gathered.
func (b *builder) nameOrder(*plan.Node, *position) (source, error) {
	b.rows.stats.Sorted = true
	return b.names, nil
}

// sortNames gathers and sorts the names that an index gives. It returns nil if there are more than most, or if some
// keys or ids aren't strings: then the names don't sort as the keys and ids do.
func (b *builder) sortNames(p *access.Plan, most int) (*nameOrder, error) {
	var after []byte
	if b.from != nil {
		for _, v := range b.from.keys {
			after = keys.AppendExact(after, v)
		}
	}
	u := b.namesOf(p)
	defer u.close()
	s, walked := &nameOrder{b: b}, 0
	for u.i < len(b.spans) {
		if u.most = 0; len(u.also) == 0 {
			u.most = most - walked + 1
		}
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
				at := len(s.names)
				s.names = append(s.names, name...)
				s.list = append(s.list, nameIn{b.spans[u.i].slot, at, len(s.names)})
			}
		}
		u.i, u.above = u.upto, false
	}
	slices.SortFunc(s.list, func(x, y nameIn) int { return bytes.Compare(s.names[x.from:x.to], s.names[y.from:y.to]) })
	return s, nil
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
	for s.at < len(s.list) {
		n := s.list[s.at]
		s.at++
		r.slot = n.slot
		ok, err := s.b.fetchNamed(r, s.names[n.from:n.to], &s.mem)
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

func (s *nameOrder) empty() bool { return s.at >= len(s.list) }

func (s *nameOrder) close() {}
