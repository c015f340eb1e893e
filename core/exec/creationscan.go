package exec

import (
	"bytes"
	"container/heap"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// creationScan walks number entries first and then sorts the remaining items. plan.Tree.Walked tells how many items
// it walks.
type creationScan struct {
	c    *created
	g    *stretch
	walk walker  // nil: only a sort
	sort *sorter // nil: not begun
	left int64   // items that may still be walked; below 0: all
}

// walker gives items in creation order.
type walker interface {
	source
	// position is after the last item that was given.
	position() *position
}

// scan makes the source of a group that is scanned.
func (c *created) scan(g *stretch) (source, error) {
	b := c.b.of(g)
	s := &creationScan{c: c, g: g, left: b.tree.Walked(plan.Stretch{Size: g.size, Slots: len(g.spans),
		Numbered: b.view.Numbered()})}
	if s.left == 0 {
		return s, s.turn(g.from)
	}
	if len(g.spans) == 1 && g.spans[0].full {
		leaf := b.keyLeaf()
		if leaf == nil {
			return s, s.turn(g.from)
		}
		s.walk = newKeyWalk(b, leaf, b.q.Shown == Newest)
		return s, nil
	}
	w, err := newNumberWalk(b, b.q.Shown == Newest)
	if err != nil {
		return nil, err
	}
	s.walk = w
	return s, nil
}

// turn ends the walk and begins the sort after a position.
func (s *creationScan) turn(from *position) (err error) {
	if s.walk != nil {
		s.walk.close()
		s.walk = nil
	}
	rest := *s.g
	rest.from = from
	s.sort, err = s.c.sorted(&rest)
	return err
}

// sorts reports whether the next row comes from the sort.
func (s *creationScan) sorts() bool { return s.walk == nil || s.left == 0 }

func (s *creationScan) next(r *row) (bool, error) {
	if s.walk != nil && s.left == 0 {
		if err := s.turn(s.walk.position()); err != nil {
			return false, err
		}
	}
	if s.walk == nil {
		return s.sort.next(r)
	}
	s.left--
	return s.walk.next(r)
}

func (s *creationScan) follows() (bool, error) {
	if s.walk != nil {
		return s.walk.follows()
	}
	return s.sort.follows()
}

func (s *creationScan) close() {
	if s.walk != nil {
		s.walk.close()
	}
	if s.sort != nil {
		s.sort.close()
		s.sort.clear()
	}
}

// numberWalk merges the number entries of slots by counter and reads the items that they name.
type numberWalk struct {
	b      *builder
	newest bool
	heap   []*numbers
	top    bool // the first stream of the heap has given its entry
	mem    store.Mem
	far    *ahead // fetches items in chunks; nil: one by one
	last   place
}

// place is where a walk continues.
type place struct {
	begun   bool
	counter uint64
}

// placeOf is the place of a position, which may be nil.
func placeOf(p *position) place {
	if p == nil {
		return place{}
	}
	return place{true, p.number}
}

func (p place) position() *position {
	if !p.begun {
		return nil
	}
	return &position{kind: posCreation, number: p.counter}
}

// numbers are the number entries of one slot.
type numbers struct {
	sps     []span
	it      kv.Iterator
	counter uint64
}

func newNumberWalk(b *builder, newest bool) (*numberWalk, error) {
	w := &numberWalk{b: b, newest: newest, last: placeOf(b.from)}
	all := make([]numbers, 0, len(b.spans))
	for i := 0; i < len(b.spans); {
		var sps []span
		sps, i = b.slotOf(i)
		all = append(all, numbers{sps: sps})
	}
	err := w.beginAll(all)
	w.heap = make([]*numbers, 0, len(all))
	for i := range all {
		if all[i].it != nil {
			w.heap = append(w.heap, &all[i])
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	heap.Init(w)
	return w, nil
}

// beginAll moves the streams to their first entries: in parallel on an engine over a network.
func (w *numberWalk) beginAll(all []numbers) error {
	if w.b.view.Remote() {
		if _, err := w.b.view.Head(all[0].sps[0].slot); err != nil { // reads the heads of all slots
			return err
		}
		return w.b.beside(remoteAtOnce, len(all), func(own *builder, i, _ int) error {
			return w.begin(own, &all[i], len(all))
		})
	}
	for i := range all {
		if err := w.begin(w.b, &all[i], len(all)); err != nil {
			return err
		}
	}
	return nil
}

// begin moves one of several streams to its first entry.
func (w *numberWalk) begin(b *builder, n *numbers, streams int) error {
	lo, hi, err := w.bounds(n.sps[0].slot)
	if err != nil {
		return err
	}
	if n.it, err = b.iter(lo, hi); err != nil {
		return err
	}
	if b.view.Remote() {
		n.it.Ahead(b.wantedOf(streams))
	}
	return w.settled(b, n, w.newest && n.it.Last() || !w.newest && n.it.First())
}

// bounds returns the bounds of the slot's number entries that come next. They begin at the lowest number of the slot:
// below it there may be many removed entries, which would be slow to skip.
func (w *numberWalk) bounds(slot *store.ViewSlot) (lo, hi []byte, err error) {
	key := slot.Key()
	_, hi = keys.KindBounds(key, keys.KindNumber)
	from := w.b.from
	if from != nil && !w.newest {
		return keys.After(keys.AppendNumber(nil, key, from.number)), hi, nil
	}
	h, err := w.b.view.Head(slot)
	if err != nil {
		return nil, nil, err
	}
	lo = keys.AppendNumber(nil, key, h.Lowest)
	if from != nil {
		hi = keys.AppendNumber(nil, key, max(from.number, h.Lowest))
	}
	return lo, hi, nil
}

// settled moves to the next entry that lies in the spans, beginning with the current one. At the end it sets the
// iterator to nil.
func (w *numberWalk) settled(b *builder, n *numbers, ok bool) error {
	for ; ok; ok = w.newest && n.it.Prev() || !w.newest && n.it.Next() {
		if err := b.poll(); err != nil {
			return err
		}
		if b.inSlot(n.sps, n.it.Value()) {
			n.counter, _ = keys.NumberCounter(n.it.Key())
			return nil
		}
	}
	err := n.it.Err()
	b.rest(n.it)
	n.it = nil
	return err
}

// inSlot reports whether an item suffix lies in one of the spans of its slot.
func (b *builder) inSlot(sps []span, suffix []byte) bool {
	if sps[0].whole() {
		return true
	}
	size := b.view.Container().PlaceLen()
	for i := range sps {
		if sps[i].contains(suffix[:size], suffix[size:]) {
			return b.inTexts(suffix[size:])
		}
	}
	return false
}

func (w *numberWalk) next(r *row) (bool, error) {
	if w.far == nil {
		w.far = w.b.readsAhead(w, nil)
	}
	if w.far != nil {
		var n nameOf
		ok, err := w.far.next(r, &n)
		if ok {
			w.last = place{true, n.number}
		}
		return ok, err
	}
	for {
		if err := w.settle(); err != nil || len(w.heap) == 0 {
			return false, err
		}
		n := w.heap[0]
		w.top = true
		w.last = place{true, n.counter}
		r.slot, r.covered = n.sps[0].slot, false
		if ok, err := w.b.fetchSuffix(r, n.it.Value(), &w.mem); err != nil || ok {
			return ok, err
		}
	}
}

// name implements namer. The number is the counter.
func (w *numberWalk) name(n *nameOf) (bool, error) {
	if err := w.settle(); err != nil || len(w.heap) == 0 {
		return false, err
	}
	e := w.heap[0]
	w.top = true
	*n = nameOf{slot: e.sps[0].slot, number: e.counter, name: e.it.Value(), suffix: true}
	return true, nil
}

// settle moves the stream whose entry was given.
func (w *numberWalk) settle() error {
	if !w.top {
		return nil
	}
	w.top = false
	n := w.heap[0]
	if err := w.settled(w.b, n, w.newest && n.it.Prev() || !w.newest && n.it.Next()); err != nil {
		return err
	}
	if n.it == nil {
		heap.Pop(w)
	} else {
		heap.Fix(w, 0)
	}
	return nil
}

func (w *numberWalk) position() *position { return w.last.position() }

func (w *numberWalk) follows() (bool, error) {
	if w.far != nil {
		return w.far.follows()
	}
	err := w.settle()
	return err == nil && len(w.heap) > 0, err
}

func (w *numberWalk) close() {
	for _, n := range w.heap {
		if n.it != nil {
			w.b.rest(n.it)
			n.it = nil
		}
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (w *numberWalk) Len() int { return len(w.heap) }

func (w *numberWalk) Less(i, j int) bool {
	return w.heap[i].counter < w.heap[j].counter != w.newest
}
func (w *numberWalk) Swap(i, j int) { w.heap[i], w.heap[j] = w.heap[j], w.heap[i] }
func (w *numberWalk) Push(x any)    { w.heap = append(w.heap, x.(*numbers)) }
func (w *numberWalk) Pop() any {
	n := w.heap[len(w.heap)-1]
	w.heap = w.heap[:len(w.heap)-1]
	return n
}

// fetchSuffix reads the item with a suffix in r.slot into r. It returns false when the item is expired.
func (b *builder) fetchSuffix(r *row, suffix []byte, m *store.Mem) (bool, error) {
	b.rows.stats.Items++
	ok, err := b.timed(func() (bool, error) { return b.view.FetchSuffix(&r.item, r.slot, suffix, m) })
	if ok {
		b.rows.stats.Bytes += len(r.item.Doc)
	}
	return ok, err
}

// keyWalk walks the entries of one logical partition in an index on a path of the partition key. Their numbers begin
// with the place of the key, so the entries are in creation order.
type keyWalk struct {
	b    *builder
	leaf leaf
	e    entries
	peek bool
	mem  store.Mem
	far  *ahead // fetches items in chunks; nil: one by one
	last place
}

// keyLeaf is plan.KeyLeaf for the only logical partition.
func (b *builder) keyLeaf() *access.Pred {
	pk, err := b.view.Container().DecodeKey(b.spans[0].tuple)
	if err != nil || b.layout.ByID { // a partition of one item
		return nil
	}
	return plan.KeyLeaf(b, pk)
}

// newKeyWalk makes the walk of the leaf that plan.KeyLeaf has found.
func newKeyWalk(b *builder, p *access.Pred, newest bool) *keyWalk {
	sp := &b.spans[0]
	l, _ := newLeaf(b, p)
	l.ivs = slices.DeleteFunc(l.ivs, func(iv access.Interval) bool { return !iv.Touches(sp.slot.Classes()) })
	w := &keyWalk{b: b, leaf: l, last: placeOf(b.from)}
	w.e = entries{b: b, leaf: &w.leaf, desc: newest}
	var after *position
	if p := b.from; p != nil {
		lead := b.view.Container().NumberPrefix(sp.base[:len(sp.base)-len(sp.tuple)])
		after = &position{value: bytes.Clone(l.ivs[0].Lo),
			number: uint64(lead[0])<<56 | uint64(lead[1])<<48 | uint64(lead[2])<<40 | p.number}
	}
	w.e.start(b.spans, after)
	return w
}

func (w *keyWalk) next(r *row) (bool, error) {
	if w.far == nil {
		w.far = w.b.readsAhead(w, nil)
	}
	if w.far != nil {
		var n nameOf
		ok, err := w.far.next(r, &n)
		if ok {
			w.last = place{true, store.Counter(n.number)}
		}
		return ok, err
	}
	for {
		if ok, err := w.settle(); err != nil || !ok {
			return false, err
		}
		w.peek = false
		w.last = place{true, store.Counter(w.e.cur.Number)}
		r.slot, r.covered = w.e.sps[0].slot, false
		if ok, err := w.b.fetchNamed(r, w.e.cur.Name, &w.mem); err != nil || ok {
			return ok, err
		}
	}
}

// name implements namer.
func (w *keyWalk) name(n *nameOf) (bool, error) {
	if ok, err := w.settle(); err != nil || !ok {
		return false, err
	}
	w.peek = false
	*n = nameOf{slot: w.e.sps[0].slot, number: w.e.cur.Number, name: w.e.cur.Name}
	return true, nil
}

func (w *keyWalk) settle() (ok bool, err error) {
	if !w.peek {
		w.peek, err = w.e.next()
	}
	return w.peek, err
}

func (w *keyWalk) position() *position { return w.last.position() }

func (w *keyWalk) follows() (bool, error) {
	if w.far != nil {
		return w.far.follows()
	}
	return w.settle()
}

func (w *keyWalk) close() { w.e.close() }
