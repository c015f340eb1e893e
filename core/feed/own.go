package feed

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/store"
)

// A feed of one key, or of a small range of them, is a few items among many entries. Where the scope has fewer items
// than entries would have to be walked to fill the page, the items are read instead and put in LSN order.
//
// For example, a key has 20 of a partition's million items. After 1,000 entries the page has none of them, so it would
// take more than maxWork entries to find some; its 20 items are read at once.

const (
	probeAfter = 1_000    // entries that are walked before the question is asked
	ownBytes   = 16 << 20 // of items that are read for their LSNs
)

// worth returns how many items it is worth to read instead of walking on, when probeAfter entries had so many of the
// scope: as many as there are likely to be entries until the page is full.
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

// own lists the items of the scope that are to be shown, in the order of their last writes. ok is false when there are
// more than limit, of whatever time.
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
			return nil, false, store.Translate(err)
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
