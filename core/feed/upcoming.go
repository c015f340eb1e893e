package feed

import (
	"sync"

	"github.com/orrerydb/orrery/core/store"
)

// upcoming holds the next entries in the merge of a partition's slots. Several entries are read ahead, and all of their
// items with one read: as many as the page still takes, then more each time. The entries of a log hold their items, and
// are read one by one.
type upcoming struct {
	list  []entry
	mem   []byte // of the suffixes
	at    int    // list[:at] has been given
	size  int    // of the next chunk; 0: none yet
	err   error
	items *store.Many // of the chunk's entries
	read  int         // the number of items that were read; 0: none yet
}

// manyPool has the memory of chunks.
var manyPool = sync.Pool{New: func() any { return new(store.Many) }}

// largestKept is the largest number of bytes of memory that is kept for later pages.
const largestKept = 1 << 20

// close releases the memory.
func (u *upcoming) close() {
	if u.items != nil && u.items.Size() <= largestKept {
		manyPool.Put(u.items)
	}
	u.items = nil
}

// entry is an entry of one slot's feed.
type entry struct {
	c      *cursor
	lsn    int64
	suffix []byte
	inside bool // in the scope
	item   int  // index in upcoming.items
}

const largestChunk = 256 // entries

// upcoming returns the entry with the least LSN; nil at the end.
func (m *merge) upcoming() (*entry, error) {
	u := &m.next
	if u.at < len(u.list) {
		return &u.list[u.at], nil
	}
	u.list, u.at = u.list[:0], 0
	if m.log {
		c := m.least()
		if c == nil {
			return nil, nil
		}
		suffix, err := c.suffix()
		u.list = append(u.list, entry{c: c, lsn: c.lsn, suffix: suffix})
		return &u.list[0], err
	}
	if err := m.chunk(); err != nil || len(u.list) == 0 {
		return nil, err
	}
	return &u.list[0], nil
}

// chunk reads ahead. An error comes after the entries that were found before it.
func (m *merge) chunk() error {
	u := &m.next
	if u.err != nil {
		return u.err
	}
	if u.size = min(2*u.size, largestChunk); u.size == 0 {
		u.size = min(max(1, m.most-len(m.page.Items)), largestChunk)
	}
	u.mem, u.read = u.mem[:0], 0
	size := u.size
	if m.page.full(m.most) {
		size = 1 // only the rest of its last commit is still taken
	}
	for len(u.list) < size && u.err == nil {
		c := m.least()
		if c == nil {
			break
		}
		at := len(u.mem)
		u.mem = append(u.mem, c.it.Value()...)
		x := entry{c: c, lsn: c.lsn, suffix: u.mem[at:len(u.mem):len(u.mem)]}
		x.inside = c.holds(m.c, x.suffix)
		u.list = append(u.list, x)
		u.err = c.read(c.it.Next())
	}
	if len(u.list) == 0 {
		return u.err
	}
	return nil
}

// fetch reads the items of the entries from the i-th on: of all, or of fewer if they are large, but of at least one. It
// is not called earlier than for the first of them, because the page may be full by then.
func (m *merge) fetch(i int) (err error) {
	u := &m.next
	if u.items == nil {
		u.items = manyPool.Get().(*store.Many)
	}
	u.items.Reset()
	for ; i < len(u.list); i++ {
		if x := &u.list[i]; x.inside {
			x.item = u.items.Len()
			m.view.NameSuffix(u.items, x.c.at, x.suffix)
		}
	}
	u.read, err = m.view.FetchMany(u.items)
	return err
}

// takeNext adds the item of the current entry to the page and moves on.
func (m *merge) takeNext(x *entry) error {
	m.next.at++
	if m.log {
		return m.takeLogged(x)
	}
	if !x.inside {
		m.page.work++
		return nil
	}
	if u := &m.next; u.read == 0 || x.item >= u.read { // large items end a read
		if err := m.fetch(u.at - 1); err != nil {
			return err
		}
	}
	var item store.Item
	found, err := m.view.Take(&item, m.next.items, x.item)
	if err != nil || !found {
		return m.taken(nil, false, err)
	}
	return m.taken(item.Clone(), true, nil) // the next chunk uses the memory again
}

// takeLogged adds the change of the current entry of a log to the page and moves on.
func (m *merge) takeLogged(x *entry) error {
	if !x.c.holds(m.c, x.suffix) {
		m.page.work++
	} else if err := m.takeChange(x.c); err != nil {
		return err
	}
	return x.c.read(x.c.it.Next())
}
