package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// unique is one constraint of the unique key policy. Its scope is the logical partition; a missing value counts as
// null.
type unique struct{ paths [][]string }

func compileUniques(defs [][]string) ([]unique, error) {
	var out []unique
	for _, d := range defs {
		var u unique
		for _, p := range d {
			segs, err := catalog.ParsePath(p)
			if err != nil {
				return nil, err
			}
			u.paths = append(u.paths, segs)
		}
		out = append(out, u)
	}
	return out, nil
}

// appendValues appends the encoded values of the constraint's paths.
func (u unique) appendValues(dst, doc []byte) []byte {
	for _, segs := range u.paths {
		v := lookupSegs(doc, segs)
		if !v.IsDefined() {
			v = value.NullValue()
		}
		dst = keys.AppendExact(dst, v)
	}
	return dst
}

// uniques checks and moves the unique entries of a commit. Values of items that the commit deletes or changes are free
// for its other items, so all deletions come first. If an expired item has a value that a new item needs, the same
// commit removes the expired item.
//
// Example: one commit changes item A from "x" to "y" and B from "y" to "x". Both entries are deleted first, so both
// changes succeed.
func (d *draft) uniques(ctx context.Context, p *part) error {
	chs := p.chs
	if len(p.sl.c.uniques) == 0 {
		return nil
	}
	freed, taken := map[string]bool{}, map[string]bool{}
	for i := range chs {
		if chs[i].old == nil {
			continue
		}
		err := p.sl.c.eachUnique(p.sl, &chs[i], chs[i].old.Doc, func(key []byte) error {
			freed[string(key)] = true
			d.late.Delete(key)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range chs {
		if chs[i].item == nil {
			continue
		}
		ch := &chs[i]
		err := p.sl.c.eachUnique(p.sl, ch, ch.item.Doc, func(key []byte) error {
			if taken[string(key)] {
				return errUnique()
			}
			if !freed[string(key)] {
				if err := d.evict(ctx, p, ch, key, freed); err != nil {
					return err
				}
			}
			taken[string(key)] = true
			d.late.Put(key, ch.id.ident[len(ch.id.tuple):])
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Container) eachUnique(sl *Slot, ch *change, doc []byte, f func(key []byte) error) error {
	for n, u := range c.uniques {
		vals := u.appendValues(nil, doc)
		if err := f(keys.AppendUnique(nil, sl.key, ch.id.tuple, uint16(n), vals)); err != nil {
			return err
		}
	}
	return nil
}

// evict returns an error when another item that isn't expired has the unique key. An expired item that has it is added
// to p.evicted, and its unique entries are deleted.
func (d *draft) evict(ctx context.Context, p *part, ch *change, key []byte, freed map[string]bool) error {
	owner, err := d.c.st.eng.Get(ctx, nil, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	suffix := append(append(append([]byte(nil), ch.id.place...), ch.id.tuple...), owner...)
	np, nt := len(ch.id.place), len(ch.id.place)+len(ch.id.tuple)
	old := change{id: identity{slot: ch.id.slot, version: ch.id.version, place: suffix[:np:np], tuple: suffix[np:nt:nt],
		ident: suffix[np:], suffix: suffix}}
	if err := p.sl.c.readOld(ctx, &old, false); err != nil {
		return err
	}
	switch {
	case old.old == nil:
		return nil
	case !old.expired:
		return errUnique()
	}
	err = p.sl.c.eachUnique(p.sl, &old, old.old.Doc, func(key []byte) error {
		freed[string(key)] = true
		d.late.Delete(key)
		return nil
	})
	if err != nil {
		return err
	}
	old.oldTerms = p.sl.c.upkeepOf(ctx, p.sl).termsThere(old.old)
	old.partition = ch.partition
	p.evicted = append(p.evicted, old)
	return nil
}

func errUnique() error {
	return status.New(status.Conflict, "Unique index constraint violation.")
}
