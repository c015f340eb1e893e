package exec

import (
	"bytes"
	"cmp"
	"container/heap"
	"reflect"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// A sort holds items in memory up to sortItems bytes and up to its share of the budget of all requests. Beyond that it
// writes its rows to files (sortspill.go). If it may write no files, it keeps only keys and identities, and items are
// read again when they are given. If there is no budget either, it refuses at sortKeys bytes of keys and identities.
const (
	sortItems = 32 << 20
	sortKeys  = 256 << 20
)

// Memory of a row in addition to the bytes that it points to: the row itself, its place in a list that grows by
// doubling, a key, an item.
var (
	rowSize  = int(reflect.TypeFor[sorted]().Size()) + 24
	keySize  = int(reflect.TypeFor[value.Value]().Size())
	itemSize = int(reflect.TypeFor[store.Item]().Size())
)

// sorter reads all candidates of its source at the first call. It keeps the rows that match and come after the
// position, and gives them in the wanted order. It maintains two invariants:
//
//   - list has the first rows after pos in the wanted order: all of them, or if more is set the first window of them.
//   - With a Limit it holds at most that many rows, with a Page at most the window.
//
// When a window has been given and there was more, the source is read again for the next window, which is twice as
// large.
//
// Example: keys 5, 1, 4, 2, 3 with a window of 2. The first pass keeps 1 and 2 and sees more. After they are given, the
// second pass with a window of 4 keeps 3, 4 and 5.
type sorter struct {
	b      *builder
	node   *plan.Node // of the candidates
	src    source     // nil after all candidates are read
	pos    *position
	window int  // rows held at a time; 0 = all
	more   bool // there are rows beyond the window
	list   []*sorted
	heap   topHeap
	at     int
	probe  sorted // the current candidate; with a bound most candidates are not kept
	mem    store.Mem
	acct   *budget.Account
	size   int  // of the items that are held
	keyB   int  // of the rows without the items
	thin   bool // no more items are held
	large  bool // some rows have no items
	began  bool // the source has been read
	disk   spilled
	err    error
	owes   account
	rings  *rings // of an order of distances: the candidates near the place
}

func newSorter(b *builder, n *plan.Node) *sorter {
	if b.rows.sort == nil {
		b.rows.sort = b.rows.bud.Open("sort")
	}
	s := &sorter{b: b, node: n, pos: b.from, acct: b.rows.sort}
	s.acct.OnSpill(s.makeRoom)
	if b.rows.space != nil {
		s.acct.Spills()
	}
	if b.q.Page > 0 && (s.pos == nil || !s.pos.cut) { // rows with the same cut keys must all be held
		s.window = plan.Window(b.q.Page)
	}
	return s
}

// bound is the largest number of rows that are held; 0 = all.
func (s *sorter) bound() int {
	if s.window == 0 || s.b.q.Limit > 0 && s.b.q.Limit <= s.window {
		return s.b.q.Limit
	}
	return s.window
}

type sorted struct {
	keys   []value.Value
	number uint64
	slot   *store.ViewSlot
	item   *store.Item // nil: it is read again by ident
	ident  []byte
}

// bytes is the memory of a row without its item.
func (x *sorted) bytes() int {
	n := rowSize + len(x.ident)
	for i := range x.keys {
		n += keySize + len(x.keys[i].Bytes())
	}
	return n
}

// held is the memory of a row's item, 0 if the item is not held.
func (x *sorted) held() int {
	if x.item == nil {
		return 0
	}
	return itemSize + len(x.item.Doc) + len(x.item.Identity())
}

// dropItems drops the items that are held, and stops holding further ones.
func (s *sorter) dropItems() {
	s.thin = true
	for _, rows := range [][]*sorted{s.list, s.heap.list} {
		for _, x := range rows {
			if x.item != nil {
				s.acct.Shrink(int64(x.held() - len(x.item.Identity())))
				s.size -= x.held()
				s.keyB += len(x.item.Identity())
				x.ident, x.item = bytes.Clone(x.item.Identity()), nil
				s.large = true
			}
		}
	}
}

// sortKey is the key of an item under one order.
func sortKey(o *Order, it *store.Item) value.Value {
	if o.Key != nil {
		return o.Key(it)
	}
	v := value.ObjectOf(it.Doc)
	for _, s := range o.Path.Segs {
		v = v.Get(s)
	}
	return v
}

// compare is the total order of the rows: the sort keys, then the order number, reversed when the first key descends. y
// may have fewer keys than x. Then only those keys are compared, and not the number.
func (b *builder) compare(x, y *sorted) int {
	if len(b.q.OrderBy) == 0 { // creation order
		if b.q.Shown == Newest {
			x, y = y, x
		}
		return cmp.Compare(x.number, y.number)
	}
	if c := b.compareKeys(x, y); c != 0 || len(y.keys) < len(x.keys) {
		return c
	}
	if b.q.OrderBy[0].Desc {
		return cmp.Compare(y.number, x.number)
	}
	return cmp.Compare(x.number, y.number)
}

// compareKeys compares the keys that y has.
func (b *builder) compareKeys(x, y *sorted) int {
	for i := range y.keys {
		if c := b.q.Compare(x.keys[i], y.keys[i]); c != 0 {
			if b.q.OrderBy[i].Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// topHeap is a heap with the last row of the wanted order at the top.
type topHeap struct {
	b    *builder
	list []*sorted
}

func (h *topHeap) Len() int           { return len(h.list) }
func (h *topHeap) Less(i, j int) bool { return h.b.compare(h.list[i], h.list[j]) > 0 }
func (h *topHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *topHeap) Push(x any)         { h.list = append(h.list, x.(*sorted)) }
func (h *topHeap) Pop() any {
	x := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return x
}

// fill reads all candidates.
func (s *sorter) fill() error {
	for s.src != nil {
		stats := &s.b.rows.stats
		s.owes.begin(stats, s.pos)
		s.err = s.drain()
		s.closeSource()
		s.owes.end(stats)
		if s.err == nil && s.disk.runs != nil {
			s.err = s.merge()
		}
		if s.began = true; s.err != nil || s.rings == nil || s.rings.enough(s) {
			break
		}
		s.rings.grow(s)
		s.clear()
		s.src, s.err = s.candidates()
	}
	return s.err
}

// candidates returns a source of all rows, or of the rows in the current ring.
func (s *sorter) candidates() (source, error) {
	if s.rings != nil && !s.rings.all {
		return newUnion(s.b, []*access.Pred{s.rings.leaf}, nil), nil
	}
	return s.b.run(s.node, nil)
}

// clear removes the rows that were gathered.
func (s *sorter) clear() {
	s.closeFiles()
	s.acct.Shrink(s.acct.Used())
	clear(s.list)
	s.list, s.at, s.more, s.size, s.keyB = s.list[:0], 0, false, 0, 0
	s.large = s.thin
}

func (s *sorter) drain() error {
	s.heap.b = s.b
	var r row
	for {
		if err := s.b.poll(); err != nil {
			return err
		}
		ok, err := s.b.rows.candidate(s.src, &r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		s.owes.candidate(&r.item)
		if s.b.q.Match != nil {
			keep, err := s.b.rows.match(&r.item)
			if err != nil {
				return err
			}
			if !keep {
				s.owes.skip(&r.item)
				continue
			}
		}
		if err := s.add(&r); err != nil {
			return err
		}
	}
	if s.disk.runs != nil { // merge does the rest
		s.spill()
		return s.disk.err
	}
	s.list = append(s.list, s.heap.list...)
	s.heap.list = nil
	if err := s.order(); err != nil {
		return err
	}
	s.resume()
	return nil
}

// order sorts the rows. It ends soon after the query's context.
func (s *sorter) order() (err error) {
	n := 0
	slices.SortFunc(s.list, func(x, y *sorted) int {
		if n++; n&8191 == 0 && err == nil {
			err = s.b.rows.expired()
		}
		if err != nil {
			return 0
		}
		return s.b.compare(x, y)
	})
	return err
}

// rank orders items with equal keys: by the number that orders index entries, or without sort keys by the counter.
func (b *builder) rank(it *store.Item) uint64 {
	if len(b.q.OrderBy) == 0 {
		return store.Counter(it.Number)
	}
	return b.layout.Order(it.Number)
}

func (s *sorter) add(r *row) error {
	q := s.b.q
	x := &s.probe
	x.number, x.slot, x.keys = s.b.rank(&r.item), r.slot, x.keys[:0]
	for i := range q.OrderBy {
		x.keys = append(x.keys, sortKey(&q.OrderBy[i], &r.item))
	}
	if s.pos != nil && !s.pos.cut && s.b.compare(x, &sorted{keys: s.pos.keys, number: s.pos.number}) <= 0 {
		return nil // it was given before
	}
	if s.b.rows.former != nil && s.b.rows.gaveBefore(r) {
		return nil
	}
	bound := s.bound()
	full := bound > 0 && len(s.heap.list) >= bound
	s.more = s.more || full && bound == s.window
	if full && s.b.compare(x, s.heap.list[0]) >= 0 {
		return nil
	}
	x = &sorted{number: x.number, slot: x.slot, keys: slices.Clone(x.keys)}
	for i := range x.keys {
		x.keys[i] = x.keys[i].Clone()
	}
	if err := cmp.Or(s.hold(x, r), s.disk.err); err != nil {
		return err
	}
	switch {
	case full && len(s.heap.list) > 0: // hold may have written the rows to a file
		old := s.heap.list[0]
		s.size -= old.held()
		s.keyB -= old.bytes()
		s.acct.Shrink(int64(old.held() + old.bytes()))
		s.heap.list[0] = x
		heap.Fix(&s.heap, 0)
	case bound > 0:
		heap.Push(&s.heap, x)
	default:
		s.list = append(s.list, x)
	}
	if s.keyB > sortKeys && s.acct == nil {
		return status.New(status.MemoryLimit, "The sort needs more memory than %d MB; add a limit or a range on the "+
			"sort path.", sortKeys>>20)
	}
	return nil
}

// hold gives a row its item, or its identity if there is no room for the item, and charges for the row.
func (s *sorter) hold(x *sorted, r *row) error {
	if !s.thin && (s.size < sortItems || s.disk.carries(s, r)) {
		x.item = r.item.Clone()
		if s.acct.Grow(int64(x.held()+x.bytes())) == nil {
			s.size += x.held()
			s.keyB += x.bytes()
			return nil
		}
		x.item = nil
	}
	s.large = true
	x.ident = bytes.Clone(r.item.Identity())
	s.keyB += x.bytes()
	return s.acct.Grow(int64(x.bytes()))
}

// resume moves after a position whose keys were cut. It looks for the position's own row. If that is gone, rows that
// can't be distinguished from it are given again.
func (s *sorter) resume() {
	p := s.pos
	if p == nil || !p.cut { // rows before an uncut position were not kept
		return
	}
	for i, x := range s.list {
		if x.number == p.number && hashKeys(x.keys) == p.hash {
			s.at = i + 1
			return
		}
	}
	pos := &sorted{keys: p.keys, number: p.number}
	s.at = sort.Search(len(s.list), func(i int) bool {
		x := s.list[i]
		if p.partial {
			x = s.cutLike(x, p)
		}
		return s.b.compare(x, pos) >= 0
	})
}

// cutLike returns the row with a string cut to the length that it has in the position.
func (s *sorter) cutLike(x *sorted, p *position) *sorted {
	n := len(p.keys) - 1
	v, most := x.keys[n], len(p.keys[n].Bytes())
	if v.Kind() != value.String || len(v.Bytes()) <= most {
		return x
	}
	c := sorted{keys: slices.Clone(x.keys), number: x.number}
	c.keys[n] = value.StringBytes(v.Bytes()[:most])
	return &c
}

func hashKeys(vs []value.Value) uint64 {
	var b []byte
	for _, v := range vs {
		b = keys.AppendExact(b, v)
	}
	return xxhash.Sum64(b)
}

// again reads the source again for the rows after the last one that was given.
func (s *sorter) again() error {
	last := s.disk.last
	if last == nil {
		last = s.list[len(s.list)-1]
	}
	s.pos = &position{kind: posSort, keys: last.keys, number: last.number}
	s.clear()
	s.window *= 2
	if s.src, s.err = s.candidates(); s.err != nil {
		return s.err
	}
	return s.fill()
}

// ready fills the list. When the current window has been given it fills the next one.
func (s *sorter) ready() error {
	err := s.fill()
	if err == nil && s.more && s.given() {
		err = s.again()
	}
	return err
}

// given reports whether all rows of the window have been given.
func (s *sorter) given() bool {
	if s.disk.rows != nil {
		return s.disk.last != nil
	}
	return s.at >= len(s.list)
}

// pick returns the next row, nil at the end.
func (s *sorter) pick() (*sorted, error) {
	if s.disk.rows != nil {
		return s.take()
	}
	if s.at >= len(s.list) {
		return nil, nil
	}
	s.at++
	return s.list[s.at-1], nil
}

func (s *sorter) next(r *row) (bool, error) {
	for {
		if err := s.ready(); err != nil {
			return false, err
		}
		x, err := s.pick()
		if x == nil || err != nil {
			s.owes.settle(&s.b.rows.stats)
			return false, err
		}
		r.slot = x.slot
		if x.item != nil {
			r.item = *x.item
		} else if ok, err := s.b.view.Fetch(&r.item, x.slot, x.ident, &s.mem); err != nil {
			return false, err
		} else if !ok {
			continue
		}
		s.owes.give(&s.b.rows.stats, x.number, len(r.item.Doc))
		if !s.more && s.disk.rows == nil && s.at == len(s.list) {
			s.owes.settle(&s.b.rows.stats)
		}
		r.pos = position{kind: posSort, number: x.number}
		r.matched = true
		return true, nil
	}
}

func (s *sorter) follows() (bool, error) {
	if err := s.fill(); err != nil || s.more {
		return s.more, err
	}
	if s.disk.rows == nil {
		return s.at < len(s.list), nil
	}
	return s.look()
}

func (s *sorter) close() {
	s.closeSource()
	s.closeFiles()
}

func (s *sorter) closeSource() {
	if s.src != nil {
		s.src.close()
		s.src = nil
	}
}
