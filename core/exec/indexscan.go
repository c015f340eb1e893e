package exec

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// indexScan gives the items that the entries of one leaf name, unit by unit, in the order of (value, number). A unit is
// a slot, or after a position what the position's slot has become: see units.go. If a path has array elements, an item
// has several entries and is given at the least of them.
type indexScan struct {
	b       *builder
	leaf    leaf
	e       entries    // with the unit's next entry
	others  []*entries // the unit's other slots, each on an entry
	i, upto int        // spans [i, upto) are in the current unit
	from    *position
	opened  bool
	many    bool         // items may have several entries in this unit
	peek    bool         // e is on an entry that was not given
	terms   *index.Terms // with many
	mem     store.Mem
	cover   *cover // nil: items are fetched
	far     *ahead // fetches them in chunks; nil: one by one
	ahead   slotsAhead[begunWalk]
	repeat  bool   // rows of one value are given as one
	value   []byte // memory of repeats
}

// newIndexScan makes the source of one leaf, which the index can answer.
func newIndexScan(b *builder, p *access.Pred, from *position) *indexScan {
	i, from := unitFrom(b, from)
	l, _ := newLeaf(b, p)
	s := &indexScan{b: b, leaf: l, i: i, upto: i, from: from}
	s.e = entries{b: b, leaf: &s.leaf}
	s.e.use(make([]byte, entryMem))
	return s
}

// first returns the least of an item's entries.
func (s *indexScan) first(it *store.Item) []byte {
	if s.terms == nil {
		s.terms = &index.Terms{}
	}
	return s.leaf.first(s.b.Policy(), s.terms, it)
}

func (s *indexScan) position() position {
	return position{kind: posIndex, unit: s.e.sps[0].places(), value: s.e.cur.Value, number: s.e.cur.Number}
}

func (s *indexScan) next(r *row) (bool, error) {
	if s.far == nil {
		s.far = s.b.readsAhead(s, s.cover)
	}
	if s.far != nil {
		return s.nextFar(r)
	}
	for {
		if ok, err := s.settle(); err != nil || !ok {
			return false, err
		}
		s.peek = false
		r.slot = s.e.sps[0].slot
		ok, err := s.b.entryRow(r, &s.e, s.cover, &s.mem)
		if err != nil {
			return false, err
		}
		if !ok || s.many && !r.covered && !bytes.Equal(s.first(&r.item), s.e.cur.Value) {
			continue
		}
		r.pos = s.position()
		if s.repeat && r.covered {
			return true, s.repeats(r)
		}
		return true, nil
	}
}

// nextFar does what next does, where items are fetched in chunks.
func (s *indexScan) nextFar(r *row) (bool, error) {
	for n := (nameOf{}); ; {
		if ok, err := s.far.next(r, &n); err != nil || !ok {
			return false, err
		}
		if !n.many || bytes.Equal(s.first(&r.item), n.value) {
			r.pos = position{kind: posIndex, unit: n.unit, value: n.value, number: n.number}
			return true, nil
		}
	}
}

// name implements namer.
func (s *indexScan) name(n *nameOf) (bool, error) {
	if ok, err := s.settle(); err != nil || !ok {
		return false, err
	}
	s.peek = false
	sp := &s.e.sps[0]
	*n = nameOf{slot: sp.slot, unit: sp.places(), number: s.e.cur.Number, value: s.e.cur.Value, name: s.e.cur.Name,
		many: s.many}
	return true, nil
}

// settle makes sure that e is on an entry that was not given. It returns false at the end.
func (s *indexScan) settle() (_ bool, err error) {
	for !s.peek {
		var ok bool
		if s.opened {
			ok, err = s.advance()
		} else {
			if s.i >= len(s.b.spans) {
				return false, nil
			}
			ok, err = s.beginUnit()
			s.opened = true
		}
		if err != nil {
			return false, err
		}
		if s.peek = ok; !ok {
			s.i, s.opened, s.from = s.upto, false, nil
		}
	}
	return true, nil
}

func (s *indexScan) follows() (bool, error) {
	if s.far != nil {
		return s.far.follows()
	}
	return s.settle()
}

func (s *indexScan) close() {
	s.e.close()
	s.ahead.close((*begunWalk).close)
	for _, e := range s.others {
		e.close()
	}
}

// fetch reads the item with an identity in r.slot into r. It returns false when the item is absent or expired.
func (b *builder) fetch(r *row, ident []byte, m *store.Mem) (bool, error) {
	b.rows.stats.Items++
	ok, err := b.load(&r.item, r.slot, ident, m)
	if r.mem = m; ok {
		b.rows.stats.Bytes += len(r.item.Doc)
	}
	return ok, err
}

// fetchNamed reads the item with an entry's name in r.slot into r. It returns false when the item is absent or expired.
func (b *builder) fetchNamed(r *row, name []byte, m *store.Mem) (bool, error) {
	b.ident = b.layout.AppendIdentity(b.ident[:0], name)
	return b.fetch(r, b.ident, m)
}

// union gives the items that the entries of several leaves name, unit by unit, in the order of their numbers. A unit is
// a slot, or after a position what the position's slot has become: see units.go. A union holds at most window items and
// walks the leaves again for more.
//
// Example: with a window of 3 and numbers 9, 2, 7, 4, 5 in a slot, the first walk keeps 2, 4 and 5. After they are
// given, the second walk takes only numbers above 5 and gives 7 and 9.
type union struct {
	b       *builder
	leaves  []leaf
	e       []entries
	i, upto int               // spans [i, upto) are in the current unit
	slots   []*store.ViewSlot // of the unit
	opened  bool
	floor   uint64 // the numbers up to this one have been given
	above   bool   // floor is valid
	list    []named
	names   []byte
	at      int
	more    bool   // the unit has items with numbers above the list
	last    uint64 // if more: the last number of the list when it was gathered
	mem     store.Mem
	cover   *cover // of one leaf; nil: items are fetched
	far     *ahead // fetches them in chunks; nil: one by one
	ahead   slotsAhead[*union]
	most    int  // gather may stop at so many items; 0: it gathers all
	loose   bool // the list needn't be sorted: no item is named twice, and nothing continues after it

	also  []leaf // of an intersection: each leaf must name the items too
	alsoE []entries
	hit   []bool
}

// named is an item: its name is names[from:to] of the union, and the value of its entry names[to:end] where rows are
// made of that.
type named struct {
	number        uint64
	from, to, end uint32 // a window of names is far below 4 GB
	flag          byte
	slot          uint16 // index in the union's slots
}

// fewNames is the number of names for which a union reserves memory.
const fewNames = 16

// maxOpen is the largest number of leaves of a union that keep their iterators from slot to slot.
const maxOpen = 16

// window is the largest number of items that a union holds. It is a variable so that a test can reduce it.
var window = 1 << 16

func newUnion(b *builder, leaves []*access.Pred, from *position) *union {
	i, from := unitFrom(b, from)
	u := &union{b: b, i: i, upto: i, leaves: make([]leaf, 0, len(leaves))}
	if from != nil {
		u.floor, u.above = from.number, true
	}
	for _, p := range leaves {
		if l, ok := newLeaf(b, p); ok {
			u.leaves = append(u.leaves, l)
		}
	}
	u.e = make([]entries, len(u.leaves))
	for i := range u.e {
		u.e[i] = entries{b: b, leaf: &u.leaves[i]}
	}
	if len(u.e) == 1 {
		u.e[0].use(make([]byte, entryMem))
	}
	return u
}

func (u *union) next(r *row) (bool, error) {
	if u.far == nil {
		u.far = u.b.readsAhead(u, u.cover)
	}
	if u.far != nil {
		var n nameOf
		ok, err := u.far.next(r, &n)
		if ok {
			r.pos = position{kind: posIndex, unit: n.unit, number: n.number}
		}
		return ok, err
	}
	for {
		if ok, err := u.settle(); err != nil || !ok {
			return false, err
		}
		n := u.list[u.at]
		u.at++
		u.floor, u.above = n.number, true
		r.slot = u.slots[n.slot]
		r.covered = u.cover != nil && u.cover.row(
			r, &keys.IndexEntry{Value: u.names[n.to:n.end], Number: n.number, Name: u.names[n.from:n.to]}, n.flag)
		ok := r.covered
		if !ok {
			var err error
			if ok, err = u.b.fetchNamed(r, u.names[n.from:n.to], &u.mem); err != nil {
				return false, err
			}
		}
		if ok {
			r.pos = position{kind: posIndex, unit: u.b.spans[u.i].places(), number: n.number}
			return true, nil
		}
	}
}

// name implements namer.
func (u *union) name(n *nameOf) (bool, error) {
	if ok, err := u.settle(); err != nil || !ok {
		return false, err
	}
	it := &u.list[u.at]
	u.at++
	u.floor, u.above = it.number, true
	*n = nameOf{slot: u.slots[it.slot], unit: u.b.spans[u.i].places(), number: it.number,
		name: u.names[it.from:it.to]}
	return true, nil
}

func (u *union) settle() (bool, error) {
	for u.i < len(u.b.spans) {
		if u.opened && u.at < len(u.list) {
			return true, nil
		}
		if !u.opened || u.more {
			if u.opened {
				u.floor, u.above = u.last, true
			}
			if err := u.gather(); err != nil {
				return false, err
			}
			u.opened = true
			continue
		}
		u.i, u.opened, u.above = u.upto, false, false
	}
	return false, nil
}

// gatherUnit gathers the items of a unit that wasn't begun ahead.
func (u *union) gatherUnit() error {
	u.upto = u.b.unitOf(u.i)
	u.list, u.names, u.slots, u.at, u.more = u.list[:0], u.names[:0], u.slots[:0], 0, false
	for at := u.i; at < u.upto; {
		var sps []span
		sps, at = u.b.slotOf(at)
		u.slots = append(u.slots, sps[0].slot)
		for i := range u.e {
			if full, err := u.gatherLeaf(&u.e[i], sps); err != nil || full {
				return err
			}
		}
	}
	if !u.loose || len(u.list) > window {
		u.trim()
	}
	if u.more {
		u.last = u.list[len(u.list)-1].number
	}
	return u.intersect()
}

// gatherLeaf adds the items that a leaf's entries name in the last of the slots. full is true when there are enough.
func (u *union) gatherLeaf(e *entries, sps []span) (full bool, err error) {
	e.start(sps, nil)
	for {
		ok, err := e.next()
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		n := e.cur.Number
		if u.above && n <= u.floor || u.more && n >= u.list[window-1].number && len(u.list) >= window {
			continue
		}
		if u.list == nil { // in most cases there are few
			u.list, u.names = make([]named, 0, fewNames), make([]byte, 0, fewNames*32)
		}
		from := uint32(len(u.names))
		u.names = append(u.names, e.cur.Name...)
		to := uint32(len(u.names))
		if u.cover != nil {
			u.names = append(u.names, e.cur.Value...)
		}
		u.list = append(u.list, named{n, from, to, uint32(len(u.names)), e.flag, uint16(len(u.slots) - 1)})
		if u.most > 0 && len(u.list) >= u.most {
			return true, nil
		}
		if len(u.list) >= 2*window {
			u.trim()
		}
	}
	if len(u.e) > maxOpen {
		e.close()
	}
	return false, nil
}

// trim sorts the list, removes duplicates and cuts it to the window. The first window items stay sorted at the front.
// So the last of them bounds which items may still be added.
func (u *union) trim() {
	slices.SortFunc(u.list, func(a, b named) int { return cmp.Compare(a.number, b.number) })
	u.list = slices.CompactFunc(u.list, func(a, b named) bool { return a.number == b.number })
	if len(u.list) <= window {
		return
	}
	u.list, u.more = u.list[:window], true
	var kept []byte
	for i := range u.list {
		kept = u.list[i].moved(kept, u.names)
	}
	u.names = kept
}

// moved appends the bytes of n, which are in names, to another list of names. n is then an item of that.
func (n *named) moved(to, names []byte) []byte {
	at := uint32(len(to))
	to = append(to, names[n.from:n.end]...)
	n.from, n.to, n.end = at, at+n.to-n.from, uint32(len(to))
	return to
}

func (u *union) follows() (bool, error) {
	if u.far != nil {
		return u.far.follows()
	}
	return u.settle()
}

func (u *union) close() {
	for i := range u.e {
		u.e[i].close()
	}
	for i := range u.alsoE {
		u.alsoE[i].close()
	}
}
