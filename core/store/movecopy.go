package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// copySlot copies a source: the heads of logical partitions and the log as they are, and the items with their computed
// keys. What changes during the copy is corrected by the first round.
func (m *move) copySlot(s *source) error {
	for _, kind := range []keys.Kind{keys.KindLogical, keys.KindLog} {
		if kind == keys.KindLogical && m.c.Def().KeyIsID() {
			continue // an older version may have left heads, which nobody reads
		}
		err := m.copyKind(s, kind, func(b *kv.Batch, t *target, rest, val []byte) error {
			b.Put(append(keys.AppendPrefix(nil, t.key, kind), rest...), val)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return m.copyKind(s, keys.KindItem, func(b *kv.Batch, t *target, suffix, val []byte) error {
		it, err := t.read(suffix, val)
		if err != nil {
			return err
		}
		return m.add(t, it, val, func(_ keys.Kind, key, val []byte) error {
			b.Put(key, val)
			return nil
		})
	})
}

// copyKind calls f for all keys of a kind in a source, in commits of bounded size.
func (m *move) copyKind(s *source, kind keys.Kind, f func(b *kv.Batch, t *target, rest, val []byte) error) error {
	lo, hi := keys.KindBounds(s.key, kind)
	for over := false; !over; {
		if err := m.pause(); err != nil {
			return err
		}
		var b kv.Batch
		var last []byte
		err := m.chunk(lo, hi, func(key, val []byte) (bool, error) {
			rest := key[keys.PrefixLen:]
			suffix, err := rest, error(nil)
			if kind == keys.KindLog {
				suffix, err = LogSuffix(val)
			}
			if err != nil {
				return false, err
			}
			t, err := m.target(suffix)
			if err == nil {
				err = f(&b, t, rest, val)
			}
			last = append(last[:0], key...)
			return b.Len() < moveOps && b.Size() < moveBytes, err
		})
		if err != nil {
			return err
		}
		over, lo = last == nil, append(last, 0)
		if err := m.write(&b); err != nil {
			return err
		}
	}
	return nil
}

// chunk calls f for the keys of a range in one snapshot, until it returns false.
func (m *move) chunk(lo, hi []byte, f func(key, val []byte) (bool, error)) error {
	snap, err := m.c.st.eng.Snapshot(m.ctx)
	if err != nil {
		return translate(err)
	}
	defer snap.Close()
	return (&View{c: m.c, snap: snap}).walk(lo, hi, f)
}

// target returns the target of a suffix, which begins with the placement.
func (m *move) target(suffix []byte) (*target, error) {
	if n := m.c.placeLen(); len(suffix) > n {
		for _, t := range m.targets {
			if t.holds(suffix[:n]) {
				return t, nil
			}
		}
	}
	return nil, status.New(status.Corruption, "key %x stands in the wrong slot", suffix)
}

// write commits keys of targets, if the sources exist: the container wasn't dropped.
func (m *move) write(b *kv.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	b.Background = !m.latched
	pre := append(m.lease.Fence(), kv.Precondition{Key: m.sources[0].headKey[:], Expect: kv.Present})
	cm, err := m.c.st.eng.Write(m.ctx, b, pre)
	if errors.Is(err, kv.ErrConflict) {
		return m.refused(m.sources[0].Slot, err)
	}
	if errors.Is(err, kv.ErrUnknownOutcome) { // the targets are given up
		return status.Wrap(status.Unavailable, err, "The store is not available.")
	}
	if err == nil {
		m.wrote(cm)
	}
	return translate(err)
}

// read reads an item. A damaged item ends the move: its copy would hide the damage.
func (t *target) read(suffix, val []byte) (*checked, error) {
	it, problem := t.check.decode(suffix, val)
	if problem != "" {
		return nil, status.New(status.Corruption, "item %x %s", suffix, problem)
	}
	return it, nil
}

// add adds an item to the counts and flags of a target, and calls f for each of its keys.
func (m *move) add(t *target, it *checked, val []byte, f func(kind keys.Kind, key, val []byte) error) error {
	terms := m.upkeep.termsNeeded(&it.Item)
	defer termsPool.Put(terms)
	flags := flagsOf(terms, it.ident)
	t.head.addFlags(&flags)
	t.head.Items++
	t.head.Bytes += storedSize(it.at, &it.Item)
	key := append(keys.AppendPrefix(nil, t.key, keys.KindItem), it.at.suffix...)
	if err := f(keys.KindItem, key, val); err != nil {
		return err
	}
	return t.check.wants(it, terms, f)
}

// remove takes an item from the counts of a target, and calls f for each of its keys but the item's own.
func (m *move) remove(t *target, it *checked, f func(kind keys.Kind, key, val []byte) error) error {
	terms := m.upkeep.termsNeeded(&it.Item)
	defer termsPool.Put(terms)
	t.head.Items--
	t.head.Bytes -= storedSize(it.at, &it.Item)
	return t.check.wants(it, terms, f)
}

// round is one round of catching up: it gives every item that has changed since the last round its state in one
// snapshot. It calls pause between its commits, and returns the number of changes.
func (m *move) round(pause func() error) (changes int, err error) {
	snap, err := m.c.st.eng.Snapshot(m.ctx)
	if err != nil {
		return 0, translate(err)
	}
	defer snap.Close()
	r := catchUp{move: m, snap: snap, pause: pause, seen: map[string]bool{}, old: map[string]string{}}
	for _, s := range m.sources {
		if err := r.source(s); err != nil {
			return 0, err
		}
	}
	return r.changes, r.flush()
}

// catchUp is one round.
type catchUp struct {
	*move
	snap    kv.Snapshot
	pause   func() error
	changes int
	b       *kv.Batch
	seen    map[string]bool // the items of the batch

	old map[string]string // the entries of the item that is being replaced; memory that is used again
}

// source brings the changes of one source to the targets. The feed lists items that were written, once each.
func (r *catchUp) source(s *source) error {
	head, err := r.snap.Get(nil, s.headKey[:])
	if errors.Is(err, kv.ErrNotFound) {
		return r.headless(s.Slot)
	}
	var h Head
	if err == nil {
		err = h.decode(head)
	}
	if err != nil {
		return translate(err)
	}
	from := uint64(s.done) + 1
	_, hi := keys.KindBounds(s.key, keys.KindRemoved)
	err = each(r.snap, keys.AppendRemoved(nil, s.key, from, nil), hi, func(key, _ []byte) error {
		return r.item(s, bytes.Clone(key[keys.PrefixLen+8:]))
	})
	if err != nil {
		return err
	}
	_, hi = keys.KindBounds(s.key, keys.KindFeed)
	err = each(r.snap, keys.AppendFeed(nil, s.key, from, 0), hi, func(_, suffix []byte) error {
		return r.item(s, bytes.Clone(suffix))
	})
	if err != nil {
		return err
	}
	_, hi = keys.KindBounds(s.key, keys.KindLog)
	err = each(r.snap, keys.AppendLog(nil, s.key, from, 0), hi, r.logged)
	s.done = h.LSN
	return err
}

// logged copies an entry of the log, which never changes.
func (r *catchUp) logged(key, val []byte) error {
	r.changes++
	suffix, err := LogSuffix(val)
	if err != nil {
		return err
	}
	t, err := r.target(suffix)
	if err != nil {
		return err
	}
	r.begin()
	r.b.Put(append(keys.AppendPrefix(nil, t.key, keys.KindLog), key[keys.PrefixLen:]...), val)
	return r.full()
}

// begin begins a batch if there is none.
func (r *catchUp) begin() {
	if r.b == nil {
		r.b = &kv.Batch{}
	}
}

// full commits the batch if it is large enough.
func (r *catchUp) full() error {
	if r.b.Len() < moveOps && r.b.Size() < moveBytes {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.pause()
}

// flush commits the batch.
func (r *catchUp) flush() error {
	if r.b == nil {
		return nil
	}
	err := r.write(r.b)
	r.b = nil
	clear(r.seen)
	return err
}

// item gives an item its state in the snapshot.
func (r *catchUp) item(s *source, suffix []byte) error {
	r.changes++
	if r.seen[string(suffix)] {
		return nil
	}
	r.begin()
	r.seen[string(suffix)] = true
	t, err := r.target(suffix)
	if err != nil {
		return err
	}
	key := append(keys.AppendPrefix(nil, t.key, keys.KindItem), suffix...)
	was, err := orNil(r.c.st.eng.Get(r.ctx, nil, key))
	if err != nil {
		return err
	}
	is, err := r.inSource(s, key)
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		if err := r.exchange(s, t, suffix, was, is); err != nil {
			return err
		}
	}
	if err := r.logical(s, t, suffix); err != nil {
		return err
	}
	return r.full()
}

// exchange replaces a version of an item in a target by another one; nil: absent. It writes the keys that differ.
func (r *catchUp) exchange(s *source, t *target, suffix, was, is []byte) error {
	defer clear(r.old)
	if was != nil {
		it, err := t.read(suffix, was)
		if err == nil {
			err = r.remove(t, it, func(kind keys.Kind, key, val []byte) error {
				if kind == keys.KindUnique {
					return r.bring(s, key)
				}
				r.old[string(key)] = string(val)
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	if is == nil {
		r.b.Delete(append(keys.AppendPrefix(nil, t.key, keys.KindItem), suffix...))
	} else if it, err := t.read(suffix, is); err != nil {
		return err
	} else if err := r.add(t, it, is, func(kind keys.Kind, key, val []byte) error {
		return r.renew(s, kind, key, val)
	}); err != nil {
		return err
	}
	for key := range r.old {
		r.b.Delete([]byte(key))
	}
	return nil
}

// renew puts a key of an item's new version, unless the old version has it with the same value. A unique value may have
// moved from one item to another, so its key gets the state that it has in the snapshot.
func (r *catchUp) renew(s *source, kind keys.Kind, key, val []byte) error {
	if kind == keys.KindUnique {
		return r.bring(s, key)
	}
	was, ok := r.old[string(key)]
	delete(r.old, string(key))
	if !ok || was != string(val) {
		r.b.Put(key, val)
	}
	return nil
}

// logical brings the head of an item's logical partition.
func (r *catchUp) logical(s *source, t *target, suffix []byte) error {
	if r.c.Def().KeyIsID() {
		return nil
	}
	id, err := r.c.identityOf(suffix)
	if err != nil {
		return err
	}
	return r.bring(s, append(append(keys.AppendPrefix(nil, t.key, keys.KindLogical), id.place...), id.tuple...))
}

// bring gives a key of a target the value that it has in a source.
func (r *catchUp) bring(s *source, key []byte) error {
	val, err := r.inSource(s, key)
	switch {
	case err != nil:
		return err
	case val == nil:
		r.b.Delete(key)
	default:
		r.b.Put(key, val)
	}
	return nil
}

// inSource returns the value that a key of a target has in a source; nil: none.
func (r *catchUp) inSource(s *source, key []byte) ([]byte, error) {
	kind := keys.Kind(key[keys.PrefixLen-1])
	return orNil(r.snap.Get(nil, append(keys.AppendPrefix(nil, s.key, kind), key[keys.PrefixLen:]...)))
}

// orNil converts the result of Get: an absent key has the value nil.
func orNil(b []byte, err error) ([]byte, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return b, translate(err)
}
