package feed

import (
	"sort"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// since returns the LSN from which the entries of a cursor's slot may be within the scope's time. Within a run of LSNs
// commit times don't decrease, so the LSN is found by bisection: each step costs a seek and a read of an item, and
// there are at most 63 steps for any number of entries. The cursor is on its first entry, and last is the last LSN of
// its slot.
//
// Example: the scope begins between the times of entries 5 and 6 of 1 to 8. About three steps find that, and since
// returns the LSN of entry 6.
func (m *merge) since(c *cursor, key keys.Slot, last int64) (from int64, err error) {
	h, err := m.view.Head(c.at)
	if err != nil {
		return 0, err
	}
	from = c.lsn
	for _, r := range h.Runs() {
		end := min(r.End, last+1)
		switch {
		case end <= from:
			continue
		case !r.Since(m.sc.Since): // all of it is too old
			from = end
			continue
		case r.Mixed:
			return from, nil
		}
		found, err := m.within(c, key, from, end)
		if err != nil || found < end {
			return found, err
		}
		from = end
	}
	return from, nil
}

// within returns the LSN of the first entry within the scope's time, among a run's LSNs [from, end); end when there is
// none.
func (m *merge) within(c *cursor, key keys.Slot, from, end int64) (first int64, err error) {
	first = end
	sort.Search(int(end-from), func(i int) bool {
		if err != nil {
			return true
		}
		if err = c.read(c.it.SeekGE(keys.AppendFeed(nil, key, uint64(from)+uint64(i), 0))); err != nil || c.lsn == 0 ||
			c.lsn >= end {
			return true
		}
		old := false
		if old, err = m.early(c); !old && err == nil {
			first = min(first, c.lsn)
		}
		return !old
	})
	return first, err
}

// early reports whether the cursor's current entry is older than the scope's time.
func (m *merge) early(c *cursor) (bool, error) {
	var item store.Item
	if err := m.gone(); err != nil {
		return false, err
	}
	if _, err := m.view.FetchSuffix(&item, c.at, c.it.Value(), &store.Mem{}); err != nil {
		return false, err
	}
	if item.LSN != c.lsn {
		return false, status.New(status.Corruption, "feed entry without its item")
	}
	return item.TS() < m.sc.Since, nil
}
