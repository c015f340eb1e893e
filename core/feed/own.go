package feed

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/store"
)

// The feed of one key, or of a small range of keys, is a few items among many entries. If the scope has fewer items
// than the number of entries that would have to be walked to fill the page, the items are read instead and sorted by
// LSN.
//
// Example: a key has 20 of a partition's million items. After 1,000 entries the page has none of them, so more than
// maxWork entries would be needed. The 20 items of the key are read directly.

const (
	probeAfter = 1_000    // entries that are walked before worth is called
	ownBytes   = 16 << 20 // of items that are read for their LSNs
)

// worth returns how many items may be read instead of walking on, when found of probeAfter entries were in the scope.
// It is about the number of entries until the page is full.
//
// Example: the page still has room for 5 items. If 1 of the 1,000 entries was in the scope, about 5,000 more would have
// to be walked, so up to 5,000 items may be read instead. If 500 were, the page is full after about 10 more entries.
func (m *merge) worth(found int) int {
	return min(maxWork, (m.most-len(m.page.Items))*(probeAfter/max(found, 1)))
}

// ownItem is an item of the scope.
type ownItem struct {
	lsn    int64
	pos    uint16
	slot   *store.ViewSlot
	suffix []byte
}

// own lists the items of the scope that the page may return, in the order of their last writes. ok is false when the
// scope has more than limit items of any time.
func (m *merge) own(limit int) (out []ownItem, ok bool, err error) {
	read := 0
	for i := range m.cursors {
		c := &m.cursors[i]
		if c.whole() {
			return nil, false, nil
		}
		it, err := m.view.Iter(c.bounds(c.slot.Key()))
		if err != nil {
			return nil, false, err
		}
		defer it.Close()
		for more := it.First(); more; more = it.Next() {
			if err := m.gone(); err != nil {
				return nil, false, err
			}
			if limit, read = limit-1, read+len(it.Value()); limit < 0 || read > ownBytes {
				return nil, false, nil
			}
			var item store.Item
			suffix := it.Key()[keys.PrefixLen:]
			alive, err := m.view.Decode(&item, suffix, it.Value())
			if err != nil {
				return nil, false, err
			}
			if alive && item.LSN > c.seen && item.LSN <= m.mark && item.TS() >= m.sc.Since && c.holds(m.c, suffix) {
				out = append(out, ownItem{item.LSN, item.Pos, c.at, bytes.Clone(suffix)})
			}
		}
		if err := it.Err(); err != nil {
			return nil, false, kv.Status(err)
		}
	}
	slices.SortFunc(out, func(a, b ownItem) int {
		if a.lsn != b.lsn {
			return int(a.lsn - b.lsn)
		}
		return int(a.pos) - int(b.pos)
	})
	return out, true, nil
}

// show adds items to the page until it is full. end is the LSN up to which everything was read.
func (m *merge) show(items []ownItem) (end int64, more bool, err error) {
	for i := range items {
		if it := &items[i]; it.lsn != end && end != 0 && m.page.full(m.most) {
			return end, true, nil
		} else if err := m.take(it.slot, it.suffix); err != nil {
			return end, false, err
		} else {
			end = it.lsn
		}
	}
	return m.mark, false, nil
}
