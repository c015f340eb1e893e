package store

import (
	"context"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Reap removes up to max expired items of a slot, each by an ordinary delete commit, and returns how many it removed. Items
// with a ttl of their own are found by their ttl entries, those under the container's default in feed order: the oldest
// writes come first, and the first item that is not due ends the walk.
func (c *Container) Reap(ctx context.Context, slot, max int) (n int, err error) {
	if c.def.Load().DefaultTTL == nil {
		return 0, nil
	}
	view := c.View()
	defer view.Close()
	due, err := c.due(view, slot, max)
	if err != nil {
		return 0, err
	}
	var last pending
	for _, suffix := range due {
		if err := ctx.Err(); err != nil {
			break
		}
		p, gone, err := c.reapOne(ctx, slot, suffix)
		if err != nil {
			return n, err
		}
		if gone {
			n, last = n+1, p
		}
	}
	return n, last.wait()
}

// due returns the suffixes of expired items in a slot.
func (c *Container) due(view *View, slot, max int) (out [][]byte, err error) {
	key := c.slots[slot].key
	lo, _ := keys.KindBounds(key, keys.KindTTL)
	hi := keys.AppendTTL(nil, key, uint64(view.now)+1, nil)
	err = view.walk(lo, hi, func(k, _ []byte) (bool, error) {
		out = append(out, append([]byte(nil), k[keys.PrefixLen+8:]...))
		return len(out) < max, nil
	})
	if err != nil || *c.def.Load().DefaultTTL <= 0 {
		return out, err
	}
	lo, hi = keys.KindBounds(key, keys.KindFeed)
	var mem Mem
	err = view.walk(lo, hi, func(_, suffix []byte) (bool, error) {
		var it Item
		alive, err := view.FetchSuffix(&it, slot, suffix, &mem)
		if err != nil {
			return false, err
		}
		if alive {
			return it.TTL != 0, nil // an item with a ttl of its own says nothing about those behind it
		}
		out = append(out, append([]byte(nil), suffix...))
		return len(out) < max, nil
	})
	return out, err
}

// walk calls f for the keys of a range until it returns false.
func (v *View) walk(lo, hi []byte, f func(key, val []byte) (bool, error)) error {
	it, err := v.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
			return err
		}
	}
	return translate(it.Err())
}

// reapOne deletes an item if it is still there and expired.
func (c *Container) reapOne(ctx context.Context, slot int, suffix []byte) (p pending, gone bool, err error) {
	place := c.placeLen()
	rest := suffix[place:]
	pk := make([]value.Value, 0, 3)
	for range c.keyPaths() {
		v, r, err := keys.DecodeExact(rest)
		if err != nil {
			return p, false, err
		}
		pk, rest = append(pk, v), r
	}
	tuple := suffix[place : len(suffix)-len(rest)]
	id := identity{slot: slot, place: suffix[:place:place], tuple: tuple, ident: suffix[place:], suffix: suffix}
	for range maxRaces {
		p, gone, raced, err := c.reapAttempt(ctx, id)
		if !raced || err != nil {
			return p, gone, err
		}
	}
	return p, false, nil
}

// reapAttempt tries it once. raced says that the item or its slot changed in between.
func (c *Container) reapAttempt(ctx context.Context, id identity) (p pending, gone, raced bool, err error) {
	sl := c.slots[id.slot]
	var one [1]change
	ch := &one[0]
	ch.id, ch.seen = id, sl.lsn.Load()
	if err := c.readOld(ch, false); err != nil || ch.old == nil || !ch.expired {
		return p, false, false, err
	}
	defer ch.release()
	if err := c.prepare(ctx, ch, nil, false, true); err != nil {
		return p, false, false, err
	}
	d, err := c.plan(one[:])
	if err != nil {
		return p, false, false, err
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if same, err := c.unchanged(sl, ch); err != nil || !same {
		d.free()
		return p, false, err == nil, err
	}
	p, raced, err = d.commit(ctx)
	return p, err == nil && !raced, raced, err
}

// SlotCount returns the number of slots.
func (c *Container) SlotCount() int { return len(c.slots) }
