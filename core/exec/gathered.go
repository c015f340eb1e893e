package exec

import (
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// gathered gives the items that an index names in creation order. It gathers the entries of all slots first, as union
// does for one slot. It holds at most window of them and walks the index again for more.
type gathered struct {
	b      *builder // own
	own    builder
	newest bool
	u      *union // for one slot at a time
	cover  *cover // nil: items are fetched
	list   []namedIn
	names  []byte
	at     int
	from   uint64 // the counters up to this one (or from this one on, newest first) have been given
	begun  bool   // from is valid
	more   bool   // there are items beyond the list
	last   uint64 // if more: the last counter of the list
	mem    store.Mem
	far    *ahead // fetches the items in chunks; nil: one by one
}

// namedIn is an item of a slot.
type namedIn struct {
	named
	slot *store.ViewSlot
}

// counter is the item's place in the order of creation.
func (n *namedIn) counter() uint64 { return store.Counter(n.number) }

// gather makes the source of a stretch that an index answers. If there are more entries than limit, it holds at least
// limit+1 of them, and can't be used as a source.
func (b *builder) gather(g *stretch, p *access.Plan, limit int) (*gathered, error) {
	s, again := b.gathering.idle, true
	if s == nil {
		s, again = &gathered{newest: b.q.Shown == Newest}, false
	}
	ident := s.own.ident
	b.gathering.idle, s.own, s.b = nil, *b, &s.own
	b = s.b
	b.spans, b.from, b.ident = g.spans, nil, ident
	if again {
		s.u.move(b)
	} else if s.u = b.namesOf(p); p.Covered {
		s.cover = newCover(b, p.Leaf)
		s.u.cover = s.cover
	}
	if s.begun = g.from != nil; s.begun {
		s.from = g.from.number
	}
	err := s.fill(limit)
	if err != nil || !s.more {
		s.u.close() // another stretch can use its iterator
	}
	return s, err
}

// move makes the union gather for another stretch.
func (u *union) move(b *builder) {
	u.b = b
	for _, es := range [][]entries{u.e, u.alsoE} {
		for i := range es {
			es[i].b = b
		}
	}
}

// namesOf makes the union or intersection that gathers the names which an index plan gives.
func (b *builder) namesOf(p *access.Plan) *union {
	switch {
	case p.Both != nil:
		return newIntersection(b, p.Both, nil)
	case p.Leaf != nil:
		return newUnion(b, []*access.Pred{p.Leaf}, nil)
	}
	return newUnion(b, p.Union, nil)
}

// fill gathers the next entries.
func (s *gathered) fill(limit int) error {
	s.list, s.names, s.at, s.more = s.list[:0], s.names[:0], 0, false
	u := s.u
	u.i, u.above = 0, false
	before, named := s.b.rows.stats.Entries, 0
	for u.i < len(s.b.spans) {
		if u.most = 0; limit < noLimit && len(u.also) == 0 {
			u.most = limit - len(s.list) + 1
		}
		if err := u.gather(); err != nil {
			return err
		}
		named += len(u.list)
		s.take()
		if len(s.list) > limit {
			if s.continues() {
				s.b.rows.stats.owed.entries += s.b.rows.stats.Entries - before
			}
			return nil
		}
		if u.more {
			u.floor, u.above = u.last, true
		} else {
			u.i, u.above = u.upto, false
		}
	}
	s.sort()
	s.trim()
	read := s.b.rows.stats.Entries - before
	if !s.continues() {
		read = min(read, named) // the others belong to no item
	}
	s.b.rows.stats.owed.entries += read
	return nil
}

// continues reports whether the first page of the query has been charged with what this page reads of the index.
func (s *gathered) continues() bool { return s.begun || s.b.rows.given.Continuation != "" }

// pay charges the entry of an item that is given.
func (s *gathered) pay() { s.b.rows.stats.pay(owed{entries: 1}) }

// fewNamed is a number of items of a slot. Up to it memory is reserved for those of several slots.
const fewNamed = 64

// take adds the names that the union has gathered.
func (s *gathered) take() {
	slot := s.b.spans[s.u.i].slot
	if n := len(s.u.list); s.list == nil && n > 0 {
		slots := 1
		if n <= fewNamed { // the other slots have about as many
			slots = min(4, len(s.b.spans))
		}
		s.list, s.names = make([]namedIn, 0, slots*n), make([]byte, 0, slots*len(s.u.names))
	}
	for _, n := range s.u.list {
		if s.begun && s.passed(store.Counter(n.number)) {
			continue
		}
		s.names = n.moved(s.names, s.u.names)
		if s.list = append(s.list, namedIn{n, slot}); len(s.list) >= 2*window {
			s.sort()
			s.trim()
		}
	}
}

func (s *gathered) passed(counter uint64) bool {
	return !s.newest && counter <= s.from || s.newest && counter >= s.from
}

func (s *gathered) sort() {
	slices.SortFunc(s.list, func(x, y namedIn) int {
		if s.newest {
			x, y = y, x
		}
		return cmp.Compare(x.counter(), y.counter())
	})
}

// trim cuts the list to the window.
func (s *gathered) trim() {
	if len(s.list) <= window {
		return
	}
	s.list, s.more = s.list[:window], true
	s.last = s.list[window-1].counter()
	var kept []byte
	for i := range s.list {
		kept = s.list[i].moved(kept, s.names)
	}
	s.names = kept
}

func (s *gathered) next(r *row) (bool, error) {
	if s.far == nil {
		s.far = s.b.readsAhead(s, s.cover)
	}
	if s.far != nil {
		var n nameOf
		return s.far.next(r, &n)
	}
	for {
		if ok, err := s.settle(); err != nil || !ok {
			return false, err
		}
		n := &s.list[s.at]
		s.at++
		s.pay()
		name := s.names[n.from:n.to]
		r.slot = n.slot
		e := keys.IndexEntry{Value: s.names[n.to:n.end], Number: n.number, Name: name}
		r.covered = s.cover != nil && s.cover.row(r, &e, n.flag)
		if r.covered {
			return true, nil
		}
		if ok, err := s.b.fetchNamed(r, name, &s.mem); err != nil || ok {
			return ok, err
		}
	}
}

// name implements namer.
func (s *gathered) name(n *nameOf) (bool, error) {
	if ok, err := s.settle(); err != nil || !ok {
		return false, err
	}
	it := &s.list[s.at]
	s.at++
	s.pay()
	*n = nameOf{slot: it.slot, number: it.number, name: s.names[it.from:it.to]}
	return true, nil
}

// settle makes sure that there is a next item in the list. It returns false at the end.
func (s *gathered) settle() (bool, error) {
	for s.at >= len(s.list) {
		if !s.more {
			return false, nil
		}
		s.from, s.begun = s.last, true
		if err := s.fill(noLimit); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *gathered) follows() (bool, error) {
	if s.far != nil {
		return s.far.follows()
	}
	return s.settle()
}

func (s *gathered) close() { s.u.close() }
