package exec

import (
	"github.com/orrerydb/orrery/core/store"
)

// On an engine over a network, items are fetched in chunks: the names of the next items are collected, and one read
// fetches all of them. The size of the first chunk depends on how many rows the reader takes. Later chunks are larger.
//
// Example: a page of 20 items for an equality. The entries of 20 items are collected, one read fetches the items, and
// they are given one by one. If the filter refuses half of them, a second read fetches the next 40.
//
// Only the time changes by reading ahead. An entry that was read on the way to an item is counted when the item is
// given. So a page has the same rows, charge and continuation as without chunks.
//
// A local engine fetches one value in about the time that a place in a chunk takes. So there each item is fetched when
// it is needed, and none is fetched without need.

const (
	chunkUnknown = 4   // items of the first chunk if the wanted number is unknown
	chunkMost    = 256 // items of the largest chunk
	chunkGrowth  = 2
	fewWanted    = 4 // entries of a stream that may be needed beyond its share
)

// namer gives the names of items in sequence.
type namer interface {
	// name moves to the next name; false at the end. The name is valid until the next call.
	name(n *nameOf) (bool, error)
}

// nameOf is what an index entry tells about an item before the item is fetched.
type nameOf struct {
	slot   *store.ViewSlot
	unit   places // with an index scan or union
	number uint64
	value  []byte // of the entry
	name   []byte
	suffix bool // name is the item's whole suffix
	many   bool // the item may have several entries
}

// ahead fetches the items of a namer in chunks.
type ahead struct {
	b     *builder
	of    namer
	items store.Many
	list  []aheadItem
	mem   []byte // of the list's values and names
	at    int    // list[:at] has been given
	read  int    // list[:read] has been fetched
	base  int    // list[base:read] is the chunk
	size  int    // of the next chunk
	over  bool   // the namer gives no names after the list
	err   error  // why it gives none; nil at its end
	rest  int    // index entries that were examined after the last name
}

// aheadItem is a name in the list. value is mem[from:to], the name mem[to:end].
type aheadItem struct {
	slot          *store.ViewSlot
	unit          places
	number        uint64
	from, to, end int
	suffix, many  bool
	passed        int // index entries that were examined to find it
}

// readsAhead returns an ahead for the items of a namer. It returns nil on a local engine, and where rows are made of
// entries.
func (b *builder) readsAhead(of namer, c *cover) *ahead {
	if c != nil || !b.view.Remote() {
		return nil
	}
	return &ahead{b: b, of: of, size: b.firstChunk()}
}

// firstChunk is the number of items that are probably needed. On a local engine it is at most the number that the query
// asks for.
func (b *builder) firstChunk() int {
	want := b.q.Page
	if l := b.q.Limit; l > 0 && (want == 0 || l < want) {
		want = l
	}
	if want == 0 {
		if want = 1; b.view.Remote() {
			want = chunkUnknown
		}
	}
	return min(want, chunkMost)
}

// wantedOf is the number of entries that are probably needed from one of several merged streams.
func (b *builder) wantedOf(streams int) int {
	if b.q.Whole {
		return chunkMost
	}
	n := b.firstChunk()
	if streams > 1 {
		return min(n, 2*n/streams+fewWanted)
	}
	return n
}

// next gives the next existing item and what its entry tells about it. n is valid until the next call.
func (a *ahead) next(r *row, n *nameOf) (bool, error) {
	for {
		if ok, err := a.settle(a.size); err != nil || !ok {
			return false, err
		}
		if a.at >= a.read {
			if err := a.fetch(); err != nil {
				return false, err
			}
		}
		it := &a.list[a.at]
		*n = nameOf{it.slot, it.unit, it.number, a.mem[it.from:it.to], a.mem[it.to:it.end], it.suffix, it.many}
		r.slot, r.covered = it.slot, false
		st := &a.b.rows.stats
		st.Items++
		ok, err := a.b.view.Take(&r.item, &a.items, a.at-a.base)
		a.at++
		if err != nil {
			return false, err
		}
		if ok {
			st.Bytes += len(r.item.Doc)
			return true, nil
		}
		if err := a.b.poll(); err != nil {
			return false, err
		}
	}
}

// follows reports whether there is a further name. It looks ahead by one name.
func (a *ahead) follows() (bool, error) { return a.settle(1) }

// settle makes sure that there is a next name in the list, and counts the entries that were examined to find it. It
// returns false at the end. If the list has been given completely, settle collects up to n names.
func (a *ahead) settle(n int) (bool, error) {
	if a.at >= len(a.list) {
		a.collect(n)
	}
	st := &a.b.rows.stats
	if a.at >= len(a.list) {
		st.Entries += a.rest
		a.rest = 0
		return false, a.err
	}
	st.Entries += a.list[a.at].passed
	a.list[a.at].passed = 0
	return true, nil
}

// collect fills the list with the next names.
func (a *ahead) collect(most int) {
	a.list, a.mem, a.at, a.read = a.list[:0], a.mem[:0], 0, 0
	st := &a.b.rows.stats
	for n := (nameOf{}); len(a.list) < most && !a.over; {
		before := st.Entries
		ok, err := a.of.name(&n)
		passed := st.Entries - before
		st.Entries = before
		if err != nil || !ok {
			a.over, a.err, a.rest = true, err, passed
			break
		}
		from := len(a.mem)
		a.mem = append(a.mem, n.value...)
		to := len(a.mem)
		a.mem = append(a.mem, n.name...)
		a.list = append(a.list, aheadItem{n.slot, n.unit, n.number, from, to, len(a.mem), n.suffix, n.many, passed})
	}
	a.size = min(a.size*chunkGrowth, chunkMost)
}

// fetch reads the next items of the list.
func (a *ahead) fetch() error {
	a.items.Reset()
	for i := a.at; i < len(a.list); i++ {
		it := &a.list[i]
		if it.suffix {
			a.b.view.NameSuffix(&a.items, it.slot, a.mem[it.to:it.end])
			continue
		}
		a.b.ident = a.b.layout.AppendIdentity(a.b.ident[:0], a.mem[it.to:it.end])
		if err := a.b.view.Name(&a.items, it.slot, a.b.ident); err != nil {
			return err
		}
	}
	_, err := a.b.timed(func() (bool, error) {
		n, err := a.b.view.FetchMany(&a.items)
		a.base, a.read = a.at, a.at+n
		return true, err
	})
	return err
}
