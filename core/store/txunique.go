package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// taken has the unique values of the items that a Tx writes, where its user wants to learn of a conflict at once. The
// parts of a Transaction in one container share one.
//
// Example: the snapshot has item A with the unique value "x". Create B with "x" is a conflict. Replace A with "y" frees
// "x", and takes "y": now create B with "x" is accepted, and create C with "y" is a conflict.
type taken struct {
	by   map[string]*txItem // by key of a unique value
	keys map[*txItem][]string
}

// Eager makes Write answer Conflict where an item takes a unique value that another item has in the snapshot or by a
// write of the Tx. Without it only the commit finds this, and WithTx answers it. The commit decides in both cases: it
// also sees the values that others have taken since the snapshot. Then an eager Tx runs again.
func (tx *Tx) Eager() {
	if tx.c.single() {
		tx.taken = newTaken()
	}
}

func newTaken() *taken { return &taken{by: map[string]*txItem{}, keys: map[*txItem][]string{}} }

// take notes the unique values of the new state of an item, nil if it is deleted. If it returns an error, nothing was
// noted.
func (tx *Tx) take(t *txItem, doc []byte) error {
	if tx.taken == nil {
		return nil
	}
	var values []string
	for n, u := range tx.c.uniques {
		if doc == nil {
			break
		}
		key := keys.AppendUnique(nil, tx.at.slot.key, t.id.tuple, uint16(n), u.appendValues(nil, doc))
		if err := tx.untaken(t, key); err != nil {
			return err
		}
		values = append(values, string(key))
	}
	if doc != nil {
		all, err := tx.entries(t, doc)
		if err != nil {
			return err
		}
		values = append(values, all...)
	}
	for _, key := range tx.taken.keys[t] {
		delete(tx.taken.by, key)
	}
	tx.taken.keys[t] = values
	for _, key := range values {
		tx.taken.by[key] = t
	}
	return nil
}

// entries returns the keys of the entries that a document has in the declared indexes. It fails if another item than t
// has one of them. All of them are read together.
func (tx *Tx) entries(t *txItem, doc []byte) (values []string, err error) {
	var names [][]byte
	var refusals []error
	for _, d := range tx.c.declares() {
		all, err := d.Keys(doc)
		if err != nil {
			return nil, err
		}
		for i := range all {
			key, refusal := tx.c.entryKey(d, &all[i]), duplicate(d, &all[i])
			if holder := tx.taken.by[string(key)]; holder != nil && holder != t {
				return nil, refusal
			}
			names, refusals, values = append(names, key), append(refusals, refusal), append(values, string(key))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	var v kv.Values
	if err := tx.snap.GetMany(&v, names); err != nil {
		return nil, tx.readError(err)
	}
	for i, refusal := range refusals {
		if owner := v.At(i); owner != nil {
			if err := tx.unheld(t, bytes.Clone(owner), refusal); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// unheld returns refusal if the owner of an entry, as the entry has it, is another item than t and still has it.
func (tx *Tx) unheld(t *txItem, owner []byte, refusal error) error {
	at, err := tx.c.identityOf(owner)
	if err != nil {
		return err
	}
	if bytes.Equal(at.tuple, tx.at.tuple) {
		id, _, err := keys.DecodeExact(at.ident[len(at.tuple):])
		if err != nil {
			return status.Wrap(status.Corruption, err, "An entry of a declared index is damaged.")
		}
		has, err := tx.item(id, false)
		if err != nil || has == t || has.dirty || has.cur == nil {
			return err
		}
		return refusal
	}
	if tx.in.wrote(&at) { // what it has now is in taken
		return nil
	}
	now := change{id: at}
	if tx.c.st.others {
		err = tx.c.readOldShared(tx.ctx, &now)
	} else {
		tx.c.relocate(&now.id)
		err = tx.c.readOld(tx.ctx, &now, false)
	}
	if at = now.id; err != nil || now.live() == nil {
		return err
	}
	if err := at.slot.waitDurable(tx.ctx, now.old.LSN); err != nil {
		return err
	}
	return refusal
}

// wrote reports whether the transaction has written an item of another of its parts.
func (in *Within) wrote(id *identity) bool {
	if in == nil || in.parts[string(id.tuple)] == nil {
		return false
	}
	t := in.parts[string(id.tuple)].items[string(id.ident)]
	return t != nil && t.dirty
}

// untaken returns an error if another item than t has the unique value with this key.
func (tx *Tx) untaken(t *txItem, key []byte) error {
	if holder := tx.taken.by[string(key)]; holder != nil && holder != t {
		return errUnique()
	}
	owner, err := tx.snap.Get(nil, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return translate(err)
	}
	id, _, err := keys.DecodeExact(owner)
	if err != nil {
		return status.Wrap(status.Internal, err, "A unique entry is damaged.")
	}
	has, err := tx.item(id, false) // read, so the commit sees whether it still is what it was
	if err != nil || has == t || has.dirty || has.cur == nil {
		return err
	}
	return errUnique()
}
