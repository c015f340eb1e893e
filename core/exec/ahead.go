package exec

import (
	"github.com/orrerydb/orrery/core/store"
)

// Where reads go over a network, items are fetched in chunks: the names of the next ones are collected, and one read
// fetches all. How many rows the reader takes decides about the first chunk; who takes more gets larger ones.
//
// Example: a page of 20 of an equality. The entries of 20 items are collected, one read fetches the items, and they are
// given one by one. Where the filter refuses half of them a second read fetches the next 40.
//
// Reading ahead changes nothing that can be seen but the time: an entry that was passed on the way to an item counts
// when the item is given, so a page has the same rows, charge and continuation as without.
//
// A local engine has a value in about the time that a place in a chunk takes, so there each item is fetched when it is
// wanted, and none in vain.

const (
	chunkUnknown = 4   // items of the first chunk where nobody says how many are wanted
	chunkMost    = 256 // items of the largest
	chunkGrowth  = 2
	fewWanted    = 4 // entries of a stream that may be wanted beyond its share
)

// namer gives the names of items one by one.
type namer interface {
	// name moves to the next name; false at the end. The name is valid until the next call.
	name(n *nameOf) (bool, error)
}

// nameOf is what is known of an item before it is fetched.
type nameOf struct {
	slot   *store.ViewSlot
	number uint64
	value  []byte // of its entry
	name   []byte
	many   bool // it may have several entries
}

// ahead fetches the items of a namer in chunks.
type ahead struct {
	b     *builder
	of    namer
	items store.Many
	list  []aheadItem
	mem   []byte // of the list's values and names
	at    int    // list[:at] were given
	read  int    // list[:read] were fetched
	base  int    // list[base:read] are the chunk
	size  int    // of the next chunk
	over  bool   // the namer has no more behind the list
	err   error  // why, when that isn't its end
	rest  int    // index entries that were examined behind the last name
}

// aheadItem is a name in the list. value is mem[from:to], the name mem[to:end].
type aheadItem struct {
	slot          *store.ViewSlot
	number        uint64
	from, to, end int
	many          bool
	passed        int // index entries that were examined to find it
}

// readsAhead returns what fetches the items of a namer in chunks; nil on a local engine, and where rows are made of
// entries.
func (b *builder) readsAhead(of namer, c *cover) *ahead {
	if c != nil || !b.view.Remote() {
		return nil
	}
	return &ahead{b: b, of: of, size: b.firstChunk()}
}

// firstChunk is how many items are likely to be wanted: on a local engine no more than are asked for.
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

// wantedOf is how many entries are likely to be wanted of one of several streams that are merged.
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

// next gives the next item that is there, and what was known of it; n is valid until the next call.
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
		*n = nameOf{it.slot, it.number, a.mem[it.from:it.to], a.mem[it.to:it.end], it.many}
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

// empty reports whether there is no further name, looking ahead by one.
func (a *ahead) empty() bool {
	ok, err := a.settle(1)
	return err == nil && !ok
}

// settle makes sure that there is a next name in the list, and counts what was passed to find it; false at the end.
// Where the list is at its end it collects so many names.
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
		a.list = append(a.list, aheadItem{n.slot, n.number, from, to, len(a.mem), n.many, passed})
	}
	a.size = min(a.size*chunkGrowth, chunkMost)
}

// fetch reads the items of the list that come next.
func (a *ahead) fetch() error {
	a.items.Reset()
	for i := a.at; i < len(a.list); i++ {
		it := &a.list[i]
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
