package feed

import (
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// merge reads the feeds of the slots of one physical partition together, by LSN.
type merge struct {
	*read
	part    *part
	cursors []cursor
	next    upcoming
}

// cursor is a position on an entry of one slot's feed.
type cursor struct {
	*piece
	at  *store.ViewSlot // the slot of the piece
	it  kv.Iterator
	lsn int64

	last int64 // LSN of the slot's last commit that is read
}

// open waits until the view is durable in the slots with new commits, and finds the first entry of each.
func (m *merge) open() error {
	for i := range m.part.slots {
		p := &m.part.slots[i]
		if p.seen >= m.mark {
			continue
		}
		at := m.view.Of(p.slot)
		last, floor, err := m.view.SettleHead(m.ctx, at, p.seen)
		if err != nil {
			return err
		}
		if last <= p.seen {
			continue
		}
		key := at.Key()
		_, hi := keys.KindBounds(key, keys.KindFeed)
		it, err := m.view.Iter(keys.AppendFeed(nil, key, uint64(max(p.seen+1, floor)), 0), hi)
		if err != nil {
			return err
		}
		it.Ahead(m.most)
		m.cursors = append(m.cursors, cursor{piece: p, at: at, it: it, last: min(last, m.mark)})
	}
	workers := 1
	if m.view.Remote() {
		workers = len(m.cursors)
	}
	return work.Each(workers, len(m.cursors), func(i, _ int) error { return m.begin(&m.cursors[i]) })
}

// begin moves a cursor to its first entry.
func (m *merge) begin(c *cursor) error {
	key := c.at.Key()
	if err := c.read(c.it.First()); err != nil || m.sc.Since == 0 || c.lsn == 0 {
		return err
	}
	from, err := m.since(c, key, c.last)
	if err != nil {
		return err
	}
	return c.read(c.it.SeekGE(keys.AppendFeed(nil, key, uint64(from), 0)))
}

func (m *merge) close() {
	for i := range m.cursors {
		_ = m.cursors[i].it.Close()
	}
}

// read reads the LSN of the iterator's current entry; 0 when there is none.
func (c *cursor) read(ok bool) error {
	if c.lsn = 0; !ok {
		return store.Translate(c.it.Err())
	}
	lsn, _, ok := keys.Feed(c.it.Key())
	if !ok {
		return status.New(status.Corruption, "malformed feed entry")
	}
	c.lsn = int64(lsn)
	return nil
}

// least returns the cursor with the least LSN up to the mark, nil when there is none. A partition has few slots, so
// reading all cursors costs less than keeping them sorted.
func (m *merge) least() (c *cursor) {
	for i := range m.cursors {
		if at := &m.cursors[i]; at.lsn != 0 && at.lsn <= m.mark && (c == nil || at.lsn < c.lsn) {
			c = at
		}
	}
	return c
}

// run adds items to the page until it is full or there are no more. end is the LSN up to which everything was read.
func (m *merge) run() (end int64, more bool, err error) {
	items, bytes := len(m.page.Items), m.page.bytes
	for walked := 0; ; walked++ {
		x, err := m.upcoming()
		if err != nil {
			return end, false, err
		}
		if x == nil {
			return m.mark, false, nil
		}
		if x.lsn != end && end != 0 {
			if m.page.full(m.most) || m.page.work >= maxWork {
				return end, true, nil
			}
		}
		if walked == probeAfter {
			found, ok, err := m.own(m.worth(len(m.page.Items) - items))
			if err != nil {
				return end, false, err
			}
			if ok {
				m.page.Items, m.page.bytes = m.page.Items[:items], bytes
				return m.show(found)
			}
		}
		end = x.lsn
		if err := m.gone(); err != nil {
			return end, false, err
		}
		if err := m.takeNext(x); err != nil {
			return end, false, err
		}
	}
}
