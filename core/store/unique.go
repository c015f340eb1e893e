package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// unique is one constraint of the unique key policy. Its scope is the logical partition; a missing value counts as null.
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

// uniques checks and moves the unique entries of a commit. Entries of items that the commit deletes or changes are free for
// the others, so all deletions come first.
func (m *committer) uniques(chs []change) error {
	if len(m.c.uniques) == 0 {
		return nil
	}
	freed, taken := map[string]bool{}, map[string]bool{}
	for i := range chs {
		if chs[i].old == nil {
			continue
		}
		err := m.eachUnique(&chs[i], chs[i].old.Doc, func(key []byte) error {
			owner, err := m.c.st.eng.Get(key) // an expired item's entry may have gone to another item
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return err
			}
			if bytes.Equal(owner, chs[i].id.ident[len(chs[i].id.tuple):]) {
				freed[string(key)] = true
				m.b.Delete(key)
			}
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
		err := m.eachUnique(ch, ch.item.Doc, func(key []byte) error {
			if taken[string(key)] {
				return errUnique()
			}
			if !freed[string(key)] {
				if err := m.free(ch, key); err != nil {
					return err
				}
			}
			taken[string(key)] = true
			m.b.Put(key, ch.id.ident[len(ch.id.tuple):])
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *committer) eachUnique(ch *change, doc []byte, f func(key []byte) error) error {
	for n, u := range m.c.uniques {
		vals := u.appendValues(nil, doc)
		if err := f(keys.AppendUnique(nil, m.sl.key, ch.id.tuple, uint16(n), vals)); err != nil {
			return err
		}
	}
	return nil
}

// free returns an error when another living item holds the unique key.
func (m *committer) free(ch *change, key []byte) error {
	id, err := m.c.st.eng.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	suffix := append(append(append([]byte(nil), ch.id.place...), ch.id.tuple...), id...)
	b, err := m.c.st.eng.Get(append(keys.AppendPrefix(nil, m.sl.key, keys.KindItem), suffix...))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var it Item
	if err := decodeEnvelope(b, &it); err != nil {
		return err
	}
	if m.c.expired(&it) {
		return nil
	}
	return errUnique()
}

func errUnique() error {
	return status.New(status.Conflict, "Unique index constraint violation.")
}
