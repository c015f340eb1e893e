package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// name looks up the entries of the kinds whose sums differ: first the entries that items need, then the items of the
// existing entries.
func (k *checker) name() error {
	k.naming = true
	err := k.items(func(it *checked) error {
		t := k.up.termsNeeded(&it.Item)
		defer termsPool.Put(t)
		return k.wants(it, t, func(kind keys.Kind, key, val []byte) error {
			if !k.odd[kind] || k.problems >= maxProblems {
				return nil
			}
			return k.wanted(kind, key, val)
		})
	})
	if err != nil {
		return err
	}
	for _, kind := range derivedKinds {
		if !k.odd[kind] {
			continue
		}
		if err := k.entries(kind, func(key, val []byte) error {
			if k.problems >= maxProblems {
				return nil
			}
			return k.found(kind, key, val)
		}); err != nil {
			return err
		}
	}
	if k.problems == 0 && k.up.next == nil && !k.unread {
		k.bad("entries and items differ, and each by itself is right: two items claim one entry")
	}
	return nil
}

// wanted looks up an entry that an item must have.
func (k *checker) wanted(kind keys.Kind, key, val []byte) error {
	if k.ends.passed(kind, key) {
		return nil
	}
	got, err := k.snap.Get(nil, key)
	switch {
	case errors.Is(err, kv.ErrNotFound) && k.bare && (kind == keys.KindNumber || kind == keys.KindIndex):
	case errors.Is(err, kv.ErrNotFound):
		k.bad("missing entry %x", key[keys.PrefixLen-1:])
	case err != nil:
		return k.unreadable(kind, key, err)
	case !bytes.Equal(got, val) && !(kind == keys.KindIndex && k.up.next != nil):
		k.bad("entry %x holds %x, not %x", key[keys.PrefixLen-1:], got, val)
	}
	return nil
}

// unreadable reports a key that a look-up couldn't read. It is the last one of its kind that is looked up. The error is
// that of cutOff.
func (k *checker) unreadable(kind keys.Kind, key []byte, err error) error {
	if err := k.cutOff(err); err != nil {
		return err
	}
	k.unread = true
	k.bad("entry %x can't be read: %v", key[keys.PrefixLen-1:], err)
	k.ends[kind] = keys.AppendPrefix(nil, k.sl.key, kind)
	return nil
}

// found looks up the item of an entry. The entries of an item that can't be read are not reported.
func (k *checker) found(kind keys.Kind, key, val []byte) error {
	suffix, ok := k.ownerOf(kind, key, val)
	if !ok {
		k.bad("entry %x names no item", key[keys.PrefixLen-1:])
		return nil
	}
	item := append(keys.AppendPrefix(nil, k.sl.key, keys.KindItem), suffix...)
	if k.ends.passed(keys.KindItem, item) {
		return nil
	}
	stored, err := k.snap.Get(nil, item)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		k.bad("entry %x has no item", key[keys.PrefixLen-1:])
		return nil
	case err != nil:
		return k.unreadable(keys.KindItem, item, err)
	}
	it, problem := k.decode(suffix, stored)
	if problem != "" {
		return nil
	}
	t := k.up.termsThere(&it.Item)
	defer termsPool.Put(t)
	claimed := false
	err = k.wants(it, t, func(_ keys.Kind, want, _ []byte) error {
		claimed = claimed || bytes.Equal(want, key)
		return nil
	})
	if !claimed {
		k.bad("entry %x has no item", key[keys.PrefixLen-1:])
	}
	return err
}

// ownerOf returns the suffix of the item that an entry names.
func (k *checker) ownerOf(kind keys.Kind, key, val []byte) (suffix []byte, ok bool) {
	place := k.c.placeLen()
	switch kind {
	case keys.KindNumber, keys.KindFormerNumber, keys.KindFeed:
		suffix = val
	case keys.KindTTL:
		if len(key) < keys.PrefixLen+8 {
			return nil, false
		}
		suffix = key[keys.PrefixLen+8:]
	case keys.KindIndex:
		e, err := k.parseIndex(key)
		if err != nil {
			return nil, false
		}
		suffix, err = k.c.appendPlace(nil, e.Name)
		if err != nil {
			return nil, false
		}
		suffix = k.c.Entries().AppendIdentity(suffix, e.Name)
	case keys.KindUnique:
		rest := key[keys.PrefixLen:]
		for range k.c.keyPaths() {
			var err error
			if rest, err = keys.SkipExact(rest); err != nil {
				return nil, false
			}
		}
		tuple := key[keys.PrefixLen : len(key)-len(rest)]
		placed, err := k.c.appendPlace(nil, tuple)
		if err != nil {
			return nil, false
		}
		suffix = append(append(placed, tuple...), val...)
	}
	return bytes.Clone(suffix), len(suffix) > place
}

// parseIndex splits an index key into its parts. Only the policies know which path ids have several columns.
func (k *checker) parseIndex(key []byte) (keys.IndexEntry, error) {
	if id, ok := keys.IndexPath(key); ok {
		for _, p := range []*index.Policy{k.up.policy, k.up.next} {
			if p == nil {
				continue
			}
			if c := p.Columns(id); c != nil {
				return c.Parse(k.c.Entries(), key)
			}
		}
	}
	return k.c.Entries().Parse(key)
}

// strangers finds keys of kinds that a slot doesn't have.
func (k *checker) strangers() error {
	known := map[keys.Kind]bool{keys.KindHead: true, keys.KindLogical: true, keys.KindFact: true, keys.KindItem: true,
		keys.KindRemoved: true, // of a copy that is in progress, or has ended early
		keys.KindLog:     true}
	for _, kind := range derivedKinds {
		known[kind] = true
	}
	known[keys.KindFormerNumber], known[keys.KindFormerIndex] = k.stale, k.stale
	lo, hi := keys.SlotBounds(k.sl.key)
	it, err := k.snap.Iter(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer it.Close()
	for ok := it.First(); ok; {
		kind := keys.Kind(it.Key()[keys.PrefixLen-1])
		if !known[kind] || kind == keys.KindHead && len(it.Key()) != keys.PrefixLen {
			k.bad("a key that is of no kind: %x", it.Key()[keys.PrefixLen-1:])
			ok = it.Next()
			continue
		}
		ok = it.SeekGE(keys.After(it.Key()[:keys.PrefixLen]))
	}
	if err := it.Err(); err != nil {
		if err := k.cutOff(err); err != nil {
			return err
		}
		k.bad("not all kinds of keys can be read: %v", err)
	}
	return nil
}
