package feed

import "github.com/orrerydb/orrery/core/store"

// upcoming holds the next entries in the merge of a partition's slots. On an engine over a network several entries are
// read ahead, and all of their items with one read: as many as the page still takes, then more each time. A local
// engine reads each item when it is needed.
type upcoming struct {
	list  []entry
	at    int // list[:at] has been given
	size  int // of the next chunk; 0: none yet
	err   error
	items *store.Many // of the chunk's entries; the page's items keep its memory
	read  int         // the number of items that were read; 0: none yet
}

// entry is an entry of one slot's feed.
type entry struct {
	c      *cursor
	lsn    int64
	suffix []byte
	item   int // index in upcoming.items; below 0: it isn't in the scope
}

const largestChunk = 256 // entries

// upcoming returns the entry with the least LSN; nil at the end.
func (m *merge) upcoming() (*entry, error) {
	u := &m.next
	if u.at < len(u.list) {
		return &u.list[u.at], nil
	}
	u.list, u.at = u.list[:0], 0
	if !m.view.Remote() {
		if c := m.least(); c != nil {
			u.list = append(u.list, entry{c: c, lsn: c.lsn, suffix: c.it.Value()})
			return &u.list[0], nil
		}
		return nil, nil
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
	u.items, u.read = &store.Many{}, 0
	for len(u.list) < u.size && u.err == nil {
		c := m.least()
		if c == nil {
			break
		}
		x := entry{c: c, lsn: c.lsn, suffix: append([]byte(nil), c.it.Value()...), item: -1}
		if c.holds(m.c, x.suffix) {
			x.item = u.items.Len()
			m.view.NameSuffix(u.items, c.at, x.suffix)
		}
		u.list = append(u.list, x)
		u.err = c.read(c.it.Next())
	}
	if len(u.list) == 0 {
		return u.err
	}
	return nil
}

// takeNext adds the item of the current entry to the page and moves on.
func (m *merge) takeNext(x *entry) error {
	m.next.at++
	if m.view.Remote() {
		if x.item < 0 {
			m.page.work++
			return nil
		}
		var err error
		if m.next.read == 0 { // not earlier: the page may have been full
			if m.next.read, err = m.view.FetchMany(m.next.items); err != nil {
				return err
			}
		}
		if x.item >= m.next.read { // large items end the read of a chunk
			return m.take(x.c.at, x.suffix)
		}
		item := &store.Item{}
		found, err := m.view.Take(item, m.next.items, x.item)
		return m.taken(item, found, err)
	}
	if !x.c.holds(m.c, x.suffix) {
		m.page.work++
	} else if err := m.take(x.c.at, x.suffix); err != nil {
		return err
	}
	return x.c.read(x.c.it.Next())
}
