package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// logicalCheck compares logical heads with the items of their partitions. Both are read in the same order, so it holds
// one of each in memory.
type logicalCheck struct {
	k       *checker
	part    []byte // place and tuple of the partition whose items are being read; nil: none yet
	sum     LogicalHead
	heads   kv.Iterator
	current bool // heads is on a head
	failed  bool
}

// item counts an item.
func (l *logicalCheck) item(it *checked, size int64) error {
	part := it.at.suffix[:len(it.at.place)+len(it.at.tuple)]
	if l.part == nil || !bytes.Equal(part, l.part) {
		if err := l.flush(); err != nil {
			return err
		}
		l.part, l.sum = append(l.part[:0], part...), LogicalHead{}
	}
	l.sum.Items++
	l.sum.Bytes += size
	l.sum.LSN = max(l.sum.LSN, it.LSN)
	return nil
}

// flush compares the completed partition with its head. Heads before it have no items.
func (l *logicalCheck) flush() error {
	if l.part == nil || l.failed {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	for ; l.current && bytes.Compare(l.at(), l.part) < 0; l.current = l.heads.Next() {
		l.k.orphan(l.at())
	}
	if !l.current || !bytes.Equal(l.at(), l.part) {
		if err := l.heads.Err(); err != nil {
			return l.unread(err)
		}
		l.k.missingHead(l.part)
		return nil
	}
	var h LogicalHead
	if err := h.decode(l.heads.Value()); err != nil {
		l.k.bad("logical head %x: %v", l.part, err)
	} else if h.Items != l.sum.Items || h.Bytes != l.sum.Bytes || h.LSN < l.sum.LSN || h.LSN > l.k.lsn {
		if !l.k.unread {
			l.k.bad("logical head %x says %+v, its items %+v", l.part, h, l.sum)
		}
	}
	l.current = l.heads.Next()
	return nil
}

func (l *logicalCheck) at() []byte { return l.heads.Key()[keys.PrefixLen:] }

func (l *logicalCheck) open() (err error) {
	if l.heads != nil {
		return nil
	}
	lo, hi := keys.KindBounds(l.k.sl.key, keys.KindLogical)
	if l.heads, err = l.k.snap.Iter(lo, hi); err != nil {
		return translate(err)
	}
	l.current = l.heads.First()
	return nil
}

// close compares the remaining partitions and heads.
func (l *logicalCheck) close() error {
	if l.k.c.Def().KeyIsID() {
		return nil
	}
	err := errors.Join(l.flush(), l.open())
	if l.heads == nil {
		return err
	}
	for ; err == nil && !l.failed && l.current; l.current = l.heads.Next() {
		l.k.orphan(l.at())
	}
	if lerr := l.heads.Err(); lerr != nil && !l.failed {
		err = errors.Join(err, l.unread(lerr))
	}
	return err
}

// unread ends the comparison with heads that can't be read.
func (l *logicalCheck) unread(err error) error {
	l.failed = true
	if err := l.k.cutOff(err); err != nil {
		return err
	}
	l.k.bad("logical heads can't be read: %v", err)
	return nil
}

// release closes the iterator, wherever the check of the slot has ended.
func (l *logicalCheck) release() {
	if l.heads != nil {
		_ = l.heads.Close()
	}
}

func (k *checker) orphan(part []byte) {
	if !k.unread {
		k.bad("logical head %x has no items", part)
	}
}

func (k *checker) missingHead(part []byte) { k.bad("logical partition %x has no head", part) }

// heads compares the slot's head and its logical heads with the items.
func (k *checker) heads() error {
	if err := k.logicals.close(); err != nil {
		return err
	}
	b, err := k.snap.Get(nil, k.sl.headKey[:])
	if err != nil {
		if err := k.cutOff(err); err != nil {
			return err
		}
		k.bad("no head: %v", err)
		return nil
	}
	var h Head
	if err := h.decode(b); err != nil {
		k.bad("%v", err)
		return nil
	}
	if (h.Items != k.head.Items || h.Bytes != k.head.Bytes) && !k.unread {
		k.bad("head counts %d items of %d bytes, there are %d of %d", h.Items, h.Bytes, k.head.Items, k.head.Bytes)
	}
	if h.LSN < k.head.LSN {
		k.bad("head LSN %d is below an item's %d", h.LSN, k.head.LSN)
	}
	if h.LSN > k.limit {
		k.bad("head LSN %d is above the counter's %d", h.LSN, k.limit)
	}
	k.compareFacts(&h)
	if up := k.up.state >> 32; uint64(h.Index) != up {
		k.bad("head has index version %d, not %d", h.Index, up)
	}
	k.compareFlags(*h.stored(), k.head.stored())
	if last := h.latest(); last < k.head.Ticks {
		k.bad("head time %d is before an item's %d", last, k.head.Ticks)
	}
	if k.lowest < h.Lowest && k.head.Items > 0 {
		k.bad("head says that no item has a number below %d, one has %d", h.Lowest, k.lowest)
	}
	if k.oldest < h.FeedFloor && k.head.Items > 0 {
		k.bad("head says that no feed entry is below LSN %d, one is at %d", h.FeedFloor, k.oldest)
	}
	return nil
}

// compareFlags compares a head's flags of the slot's index with those of the items.
func (k *checker) compareFlags(said indexFlags, has *indexFlags) {
	if lacks := has.classes &^ said.classes; lacks != 0 && !k.bare {
		k.bad("head lacks value classes %b", lacks)
	}
	if said.elements.Merge(&has.elements) {
		k.bad("head lacks paths with array elements")
	}
	if said.lossy.Merge(&has.lossy) {
		k.bad("head lacks paths with cut values")
	}
	if said.columns.Merge(&has.columns) {
		k.bad("head lacks what columns of composite indexes have held")
	}
}
