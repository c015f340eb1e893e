package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// checkDeclared reports entries of declared indexes without an item.
func (c *Container) checkDeclared(k *checker) error {
	for _, of := range c.Def().Declared {
		if of.State != catalog.IndexReady || !of.Unique {
			continue
		}
		d, err := index.CompileDeclared(of)
		if err == nil {
			err = c.checkEntries(k, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkEntries looks up the items that the entries of an index name. An entry that isn't right in its snapshot is
// looked up again if the slots have changed since.
func (c *Container) checkEntries(k *checker, d *index.Declared) error {
	lo := keys.AppendDeclared(nil, c.gen, d.Num, nil)
	for {
		slots := c.Slots()
		snap, err := c.st.eng.Snapshot(k.ctx)
		if err != nil {
			return translate(err)
		}
		var wrong [][]byte
		v := View{c: c, snap: snap}
		var failed error
		err = v.walk(lo, keys.After(lo), func(key, owner []byte) (bool, error) {
			ok, err := c.names(&v, d, key, owner)
			if err == nil {
				failed = k.step()
				err = failed
			}
			if !ok {
				wrong = append(wrong, bytes.Clone(key))
			}
			return len(wrong) < maxProblems, err
		})
		_ = snap.Close()
		if failed != nil {
			return failed
		}
		if err != nil {
			if err := k.cutOff(err); err != nil {
				return err
			}
			k.bad("the entries of the index %q and their items can't be compared: %v", d.Name, err)
			return nil
		}
		if len(wrong) > 0 && c.Slots() != slots {
			continue
		}
		for _, key := range wrong {
			k.bad("entry %x of the index %q has no item", key[keys.PrefixLen:], d.Name)
		}
		return nil
	}
}

// names reports whether an entry is one of the item that it names.
func (c *Container) names(v *View, d *index.Declared, key, owner []byte) (bool, error) {
	id, err := c.identityOf(bytes.Clone(owner))
	if err != nil {
		return false, nil
	}
	c.relocate(&id)
	val, err := v.snap.Get(nil, id.itemKey())
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	var it Item
	if err == nil {
		_, err = v.Decode(&it, id.suffix, val)
	}
	if err != nil {
		return false, translate(err)
	}
	all, _ := d.Keys(it.Doc)
	for i := range all {
		if bytes.Equal(c.entryKey(d, &all[i]), key) {
			return true, nil
		}
	}
	return false, nil
}

// lacksEntries reports an item without an entry of a declared index.
func (k *checker) lacksEntries(it *checked) error {
	for _, d := range k.unique {
		all, err := d.Keys(it.Doc)
		if err != nil {
			k.bad("item %x can't have entries of the index %q: %v", it.at.suffix, d.Name, err)
		}
		for i := range all {
			key := k.c.entryKey(d, &all[i])
			if k.ends.passed(keys.KindDeclared, key) {
				continue
			}
			owner, err := k.snap.Get(nil, key)
			switch {
			case err != nil && !errors.Is(err, kv.ErrNotFound):
				if err := k.unreadable(keys.KindDeclared, key, err); err != nil {
					return err
				}
			case err != nil:
				k.bad("item %x has no entry of the index %q", it.at.suffix, d.Name)
			case !bytes.Equal(owner, it.at.suffix):
				k.bad("item %x has the entry of %x in the index %q", it.at.suffix, owner, d.Name)
			}
		}
	}
	return nil
}
