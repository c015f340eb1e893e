package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

// provisionalFrom is the counter of the first provisional number. No container has created so many items.
const provisionalFrom = 1<<counterBits - 1<<20

// provisional returns an item that the Tx writes, as the Tx itself sees it. A new item has a provisional number, above
// the numbers of all stored items. Each version has its own provisional etag. The commit replaces both.
func (tx *Tx) provisional(t *txItem, doc []byte) *Item {
	tx.made++
	it := &Item{Doc: doc, ident: t.id.ident, paths: len(tx.pk), Ticks: tx.c.now(), Pos: uint16(tx.made)}
	switch {
	case t.number != 0:
	case t.old != nil && !t.exp:
		t.number = t.old.Number
	default:
		if tx.created == nil {
			tx.created = new(int)
		}
		*tx.created++
		t.number = tx.c.number(t.id.place, provisionalFrom+uint64(*tx.created))
	}
	it.Number = t.number
	return it
}

// View returns a view of the Tx's snapshot, for a query on its logical partition. It doesn't show what the Tx itself
// has written: Own does. After the call the Tx is committed only if nothing was written to its logical partition since
// the snapshot. The view is valid until the Tx ends; closing it does nothing.
func (tx *Tx) View(context.Context) (*View, error) {
	if !tx.asked {
		if err := tx.watch(); err != nil {
			return nil, err
		}
	}
	tx.shown = max(tx.shown, tx.begun)
	if tx.c.st.others {
		return tx.sharedView()
	}
	return tx.view(), nil
}

// view makes a view of the snapshot.
func (tx *Tx) view() *View {
	v := &View{c: tx.c, snap: heldSnapshot{tx.snap}, held: true, now: tx.c.st.clk.Now().Unix(),
		ttl: tx.c.def.Load().DefaultTTL, opened: realTime.Now(), pol: tx.pol, of: tx.of, indexed: true,
		slots: make([]ViewSlot, len(tx.of.all))}
	for i, sl := range v.of.all {
		f := sl.flags.Load()
		v.slots[i] = ViewSlot{Slot: sl, n: i, index: f, seen: sl.seen()}
		v.indexed = v.indexed && f.classes&index.Unindexed == 0
		v.bare = v.bare || f.bare
	}
	if tx.c.pol.Load() != tx.pol || tx.c.resets.Load() != tx.resets { // the flags may no longer cover the snapshot
		v.indexed, v.bare = false, true
	}
	return v
}

// watch notes what the commit needs to know whether the logical partition has changed.
func (tx *Tx) watch() error {
	if tx.c.def.Load().KeyIsID() { // a logical partition is one item
		if _, err := tx.item(tx.pk[0], false); err != nil {
			return err
		}
		tx.asked = true
		return nil
	}
	if !tx.hasWas {
		b, err := tx.snap.Get(nil, tx.logicalKey())
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return tx.readError(err)
		}
		if err := tx.keepWas(b); err != nil {
			return err
		}
	}
	tx.asked = true
	return nil
}

// keepWas takes over the stored head of the logical partition in the snapshot; nil: there is none.
func (tx *Tx) keepWas(b []byte) error {
	if b != nil {
		if err := tx.was.decode(b); err != nil {
			return err
		}
	}
	tx.hasWas = true
	return nil
}

// logicalKey returns the key of the head of the logical partition.
func (tx *Tx) logicalKey() []byte {
	return append(keys.AppendPrefix(nil, tx.at.slot.key, keys.KindLogical), tx.at.suffix...)
}

// heldSnapshot is a snapshot that its user must not close.
type heldSnapshot struct{ kv.Snapshot }

// Close does nothing.
func (heldSnapshot) Close() error { return nil }

// PK returns the partition key of the Tx.
func (tx *Tx) PK() PartitionKey { return tx.pk }

// Container returns the container of the Tx.
func (tx *Tx) Container() *Container { return tx.c }

// Dirty reports whether the Tx has written anything.
func (tx *Tx) Dirty() bool { return len(tx.order) > 0 }

// Own implements Querying. The items are in the order of their first write.
func (tx *Tx) Own() (own []*Item, wrote map[string]bool) {
	wrote = map[string]bool{}
	return tx.appendOwn(nil, wrote), wrote
}

// appendOwn is Own for several Txs.
func (tx *Tx) appendOwn(own []*Item, wrote map[string]bool) []*Item {
	for _, t := range tx.order {
		if t.cur != nil {
			own = append(own, t.cur)
		}
		wrote[string(t.id.ident)] = true
	}
	return own
}

// ByNumber returns the id of the item with a number, as the Tx sees it; ok is false when there is none. The number may
// be a provisional one of this Tx.
func (tx *Tx) ByNumber(number uint64) (id value.Value, ok bool, err error) {
	for _, t := range tx.order {
		if t.cur != nil && t.number == number {
			return t.cur.ID(), true, nil
		}
	}
	v := tx.view()
	suffix, err := v.ByNumber(v.At(tx.at.place), number)
	if err != nil {
		return id, false, tx.readError(err)
	}
	if bytes.HasPrefix(suffix, tx.at.suffix) { // a number never gets another item
		id, _, err = keys.DecodeExact(suffix[len(tx.at.suffix):])
		return id, err == nil, err
	}
	_, err = tx.View(tx.ctx) // the commit must find that there still is no such item
	return id, false, err
}
