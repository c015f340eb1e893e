package feed

import (
	"sort"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// since returns the LSN from which on the entries of a cursor's slot are of the scope's time. Commit times never fall
// within a slot, so it is found by halving: an entry costs a seek and a look at its item, and there are at most 63 of
// them however many entries the slot has. The cursor stands on its first entry, and last is its slot's last LSN.
func (m *merge) since(c *cursor, key keys.Slot, last int64) (from int64, err error) {
	early := func() (bool, error) { // whether the entry that the cursor stands on is too old
		var item store.Item
		if err := m.gone(); err != nil {
			return false, err
		}
		if _, err := m.view.FetchSuffix(&item, c.slot, c.it.Value(), &store.Mem{}); err != nil {
			return false, err
		}
		if item.LSN != c.lsn {
			return false, status.New(status.Corruption, "feed entry without its item")
		}
		return item.TS() < m.sc.Since, nil
	}
	first := c.lsn
	if old, err := early(); err != nil || !old {
		return first, err
	}
	n := sort.Search(int(last-first), func(i int) bool {
		if err != nil {
			return true
		}
		if err = c.read(c.it.SeekGE(keys.AppendFeed(nil, key, uint64(first)+1+uint64(i), 0))); err != nil || c.lsn == 0 {
			return true
		}
		old := false
		old, err = early()
		return !old
	})
	return first + 1 + int64(n), err
}
