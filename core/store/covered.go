package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/kv"
)

// HasTTL reports whether items of the view can expire. Then index entries alone don't tell which items exist.
func (v *View) HasTTL() bool { return v.ttl != nil }

// Head returns the head of a slot in this view, without the flags of its index: ViewSlot has those.
func (v *View) Head(slot *ViewSlot) (h Head, err error) {
	if slot.head != nil {
		return *slot.head, nil
	}
	b, err := v.head(slot)
	if errors.Is(err, kv.ErrNotFound) {
		return h, errDropped()
	}
	if err != nil {
		return h, translate(err)
	}
	var held indexFlags
	return h, h.parse(b, &held)
}

// Settle waits until every commit that is included in the slots' counts is durable.
func (c *Container) Settle() error {
	var mem [16]sight
	seen := mem[:0] // taken for all slots before the first wait: later commits don't matter
	slots := c.slotList()
	for _, s := range slots {
		lsn := s.lsn.Load()
		seen = append(seen, sight{lsn, s.last.Load()})
	}
	for i, s := range slots {
		if err := s.await(context.Background(), seen[i]); err != nil {
			return err
		}
	}
	return nil
}

// FromEntry turns it into the item that an index entry names. The item has only what the entry holds: identity (tuple,
// id) and order number, and the document and time that the caller makes of the entry's value. It has no LSN and so no
// etag. ident and doc stay the caller's memory.
func (v *View) FromEntry(it *Item, ident []byte, number uint64, doc []byte, ts int64) {
	*it = Item{Doc: doc, Number: number, Ticks: ts * ticksPerSecond, ident: ident, paths: len(v.c.keyPaths())}
}
