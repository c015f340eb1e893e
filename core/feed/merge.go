package feed

import (
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// merge reads the feeds of the slots of one physical partition together, by LSN.
//
// Example: slot 3 has entries of the LSNs 10 and 12, slot 7 has two of LSN 11. They are read in the order 10, 11, 11,
// 12. A page for two items gets the first three, because a page ends only between two LSNs.
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
	log bool
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
		last, floor, err := m.settle(at, p.seen)
		if err != nil {
			return err
		}
		if last <= p.seen {
			continue
		}
		it, err := m.iter(at.Key(), max(p.seen+1, floor))
		if err != nil {
			return err
		}
		it.Ahead(m.most)
		m.cursors = append(m.cursors, cursor{piece: p, at: at, it: it, log: m.log, last: min(last, m.mark)})
	}
	workers := 1
	if m.view.Remote() {
		workers = len(m.cursors)
	}
	return work.Each(workers, len(m.cursors), func(i, _ int) error { return m.begin(&m.cursors[i]) })
}

// settle waits until the view of a slot is durable, and returns the LSN of its last commit and the least LSN of an
// entry.
func (m *merge) settle(at *store.ViewSlot, seen int64) (last, floor int64, err error) {
	if !m.log {
		return m.view.SettleHead(m.ctx, at, seen)
	}
	last, floor, err = m.view.SettleLog(m.ctx, at, seen)
	if err == nil {
		err = kept(seen, floor)
	}
	return last, floor, err
}

// iter returns an iterator over the entries of a slot from an LSN on.
func (m *merge) iter(slot keys.Slot, from int64) (kv.Iterator, error) {
	if m.log {
		_, hi := keys.KindBounds(slot, keys.KindLog)
		return m.view.Iter(keys.AppendLog(nil, slot, uint64(from), 0), hi)
	}
	_, hi := keys.KindBounds(slot, keys.KindFeed)
	return m.view.Iter(keys.AppendFeed(nil, slot, uint64(from), 0), hi)
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
	m.next.close()
	for i := range m.cursors {
		_ = m.cursors[i].it.Close()
	}
}

// read reads the LSN of the iterator's current entry; 0 when there is none.
func (c *cursor) read(ok bool) error {
	if c.lsn = 0; !ok {
		return kv.Status(c.it.Err())
	}
	var lsn uint64
	if c.log {
		lsn, _, ok = keys.Log(c.it.Key())
	} else {
		lsn, _, ok = keys.Feed(c.it.Key())
	}
	if !ok {
		return status.New(status.Corruption, "malformed feed entry")
	}
	c.lsn = int64(lsn)
	return nil
}

// suffix returns the place, tuple and id in the current entry.
func (c *cursor) suffix() ([]byte, error) {
	if c.log {
		return store.LogSuffix(c.it.Value())
	}
	return c.it.Value(), nil
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
		if walked == probeAfter && !m.log {
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
