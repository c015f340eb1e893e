package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
)

// CheckStep checks about n keys of a slot, beginning at from (nil: the first): that items have their entries, and
// entries their items. It returns the key to continue at, nil at the end, which is also the first key that can't be
// read. Each step uses its own snapshot, so none is held for long. It doesn't compare counts and heads, which need the
// whole slot.
func (c *Container) CheckStep(ctx context.Context, sl *Slot, from []byte, n int, problem func(string)) (
	next []byte, err error) {
	k := &checker{c: c, ctx: ctx, w: Watch{Problem: problem}}
	if err := k.begin(sl); errors.Is(err, errLeft) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer k.snap.Close()
	defer func() { // no stored byte may end the process
		if r := recover(); r != nil {
			k.bad("the check can't go on: %v", r)
			next, err = nil, nil
		}
	}()
	k.naming = true
	for _, kind := range derivedKinds {
		k.odd[kind] = true
	}
	_, hi := keys.SlotBounds(k.sl.key)
	if from == nil {
		from = keys.AppendPrefix(nil, k.sl.key, keys.KindItem)
	}
	it, err := k.snap.Iter(from, hi)
	if err != nil {
		return nil, translate(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if n--; n < 0 {
			return bytes.Clone(it.Key()), translate(ctx.Err())
		}
		if err := k.key(bytes.Clone(it.Key()), bytes.Clone(it.Value())); err != nil {
			return nil, err
		}
		if k.unread {
			return nil, nil
		}
	}
	if err := it.Err(); err != nil {
		if err := k.cutOff(err); err != nil {
			return nil, err
		}
		k.bad("keys behind %x can't be read: %v", from[keys.PrefixLen-1:], err)
	}
	return nil, translate(ctx.Err())
}

// key checks one key of the slot.
func (k *checker) key(key, val []byte) error {
	kind := keys.Kind(key[keys.PrefixLen-1])
	if kind == keys.KindLog {
		k.logEntry(key, val)
		return nil
	}
	if kind != keys.KindItem {
		for _, d := range derivedKinds {
			if kind == d {
				return k.found(kind, key, val)
			}
		}
		return nil
	}
	it, what := k.decode(key[keys.PrefixLen:], val)
	if what != "" {
		k.bad("item %x %s", key[keys.PrefixLen:], what)
		return nil
	}
	t := k.up.termsNeeded(&it.Item)
	defer termsPool.Put(t)
	return k.wants(it, t, k.wanted)
}
