package store

import (
	"bytes"
	"errors"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// copy copies the sources. What changes meanwhile is corrected by the first round.
func (m *move) copy() error {
	if done, err := m.copyTables(); done || err != nil {
		return err
	}
	for _, s := range m.sources {
		if err := m.copySlot(s); err != nil {
			return err
		}
	}
	return nil
}

// copySlot copies a source by commits: the heads of logical partitions and the log as they are, and the items with
// their computed keys.
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
		err := m.steadily(func() error {
			b, last = kv.Batch{}, nil
			return m.chunk(lo, hi, func(key, val []byte) (bool, error) {
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
				return !m.enough(&b), err
			})
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
	if n := m.c.placeLen(); len(suffix) >= n {
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
	if b.Background = !m.latched; m.c.st.others {
		return m.writeShared(b)
	}
	return m.written(m.c.st.eng.Write(m.ctx, b, m.unlessDropped()))
}

// unlessDropped is the precondition that the sources exist: the container wasn't dropped.
func (m *move) unlessDropped() []kv.Precondition {
	return append(m.lease.Fence(), kv.Precondition{Key: m.sources[0].headKey[:], Expect: kv.Present})
}

// written judges the result of writing keys of targets.
func (m *move) written(cm kv.Commit, err error) error {
	if errors.Is(err, kv.ErrConflict) {
		return m.refused(m.sources[0].Slot, err)
	}
	if errors.Is(err, kv.ErrUnknownOutcome) { // the targets are given up
		return status.Wrap(status.Unavailable, err, "The store is not available.")
	}
	if err == nil && cm != nil {
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
	t.count(it, terms)
	key := append(keys.AppendPrefix(nil, t.key, keys.KindItem), it.at.suffix...)
	if err := f(keys.KindItem, key, val); err != nil {
		return err
	}
	return t.check.wants(it, terms, f)
}

// count adds an item to the counts and flags.
func (t *target) count(it *checked, terms *index.Terms) {
	flags := flagsOf(terms, it.ident)
	t.head.addFlags(&flags)
	t.head.Items++
	t.head.Bytes += storedSize(it.at, &it.Item)
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
// snapshot. It calls pause between its commits, and returns the number of changes. With a shared engine it begins again
// if the snapshot becomes too old: what it has brought by then counts.
func (m *move) round(pause func() error) (changes int, err error) {
	for n := 0; ; n++ {
		r := catchUp{move: m, pause: pause, seen: map[string]bool{}, old: map[string]string{}}
		err := r.run()
		if err == nil || !m.c.st.others || !passing(err) || n >= moveTries {
			return r.changes, err
		}
		if err := m.retry(); err != nil {
			return 0, err
		}
	}
}

// Bounds of the items whose states are read together.
const (
	roundItems = 64
	roundBytes = 1 << 20
)

// catchUp is one round. It reads changed items in groups. An item is at most once in a group, and a group is committed
// before the next one is read.
type catchUp struct {
	*move
	snap    kv.Snapshot
	pause   func() error
	changes int
	b       *kv.Batch
	counted []Head // the heads of the targets before the batch

	group  []changed
	seen   map[string]bool // the items of the group
	brings []brought       // keys that the batch brings too

	old map[string]string // the entries of the item that is being replaced; memory that is used again
}

// changed is an item that has changed.
type changed struct {
	s      *source
	t      *target
	suffix []byte
}

// brought is a key of a target that gets the value which it has in a source.
type brought struct {
	s   *source
	key []byte
}

func (r *catchUp) run() (err error) {
	if r.snap, err = r.c.st.eng.Snapshot(r.ctx); err != nil {
		return translate(err)
	}
	defer r.snap.Close()
	defer func() {
		if r.b != nil { // it isn't committed
			r.recount(r.counted)
		}
	}()
	reached := make([]int64, len(r.sources))
	for i, s := range r.sources {
		if reached[i], err = r.source(s); err != nil {
			return err
		}
	}
	if err := r.bringGroup(); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	for i, s := range r.sources {
		s.done = reached[i]
	}
	return nil
}

// source brings the changes of one source to the targets, and returns the LSN up to which these are all. The feed lists
// items that were written, once each.
func (r *catchUp) source(s *source) (lsn int64, err error) {
	head, err := r.snap.Get(nil, s.headKey[:])
	if errors.Is(err, kv.ErrNotFound) {
		return 0, r.headless(s.Slot)
	}
	var h Head
	if err == nil {
		err = h.decode(head)
	}
	if err == nil && r.latched && !bytes.Equal(head, s.headBytes) { // another process has not waited
		err = r.c.install(r.ctx, s.Slot, head)
	}
	if err != nil {
		return 0, translate(err)
	}
	from := uint64(s.done) + 1
	_, hi := keys.KindBounds(s.key, keys.KindRemoved)
	err = each(r.snap, keys.AppendRemoved(nil, s.key, from, nil), hi, func(key, _ []byte) error {
		return r.item(s, key[keys.PrefixLen+8:])
	})
	if err != nil {
		return 0, err
	}
	_, hi = keys.KindBounds(s.key, keys.KindFeed)
	err = each(r.snap, keys.AppendFeed(nil, s.key, from, 0), hi, func(_, suffix []byte) error {
		return r.item(s, suffix)
	})
	if err != nil {
		return 0, err
	}
	_, hi = keys.KindBounds(s.key, keys.KindLog)
	err = each(r.snap, keys.AppendLog(nil, s.key, from, 0), hi, r.logged)
	return h.LSN, err
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
		r.b, r.counted = &kv.Batch{}, r.counts()
	}
}

// full commits the batch if it is large enough.
func (r *catchUp) full() error {
	if !r.enough(r.b) {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.pause()
}

// flush commits the batch with the keys that it brings.
func (r *catchUp) flush() error {
	if r.b == nil {
		return nil
	}
	names := make([][]byte, len(r.brings))
	for i, at := range r.brings {
		names[i] = inSource(at.s, at.key)
	}
	var vals kv.Values
	if len(names) > 0 {
		if err := r.snap.GetMany(&vals, names); err != nil {
			return translate(err)
		}
	}
	for i, at := range r.brings {
		if val := vals.At(i); val == nil {
			r.b.Delete(at.key)
		} else {
			r.b.Put(at.key, val)
		}
	}
	err := r.write(r.b)
	if err == nil {
		r.b, r.brings = nil, r.brings[:0]
	}
	return err
}

// item adds a changed item to the group.
func (r *catchUp) item(s *source, suffix []byte) error {
	r.changes++
	if r.seen[string(suffix)] {
		return nil
	}
	t, err := r.target(suffix)
	if err != nil {
		return err
	}
	r.seen[string(suffix)] = true
	r.group = append(r.group, changed{s, t, bytes.Clone(suffix)})
	if len(r.group) < roundItems {
		return nil
	}
	return r.bringGroup()
}

// bringGroup gives the items of the group their states in the snapshot.
func (r *catchUp) bringGroup() error {
	if len(r.group) == 0 {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	sources, targets := make([][]byte, len(r.group)), make([][]byte, len(r.group))
	for i, ch := range r.group {
		targets[i] = append(keys.AppendPrefix(nil, ch.t.key, keys.KindItem), ch.suffix...)
		sources[i] = inSource(ch.s, targets[i])
	}
	now, err := r.c.st.eng.Snapshot(r.ctx)
	if err != nil {
		return translate(err)
	}
	defer now.Close()
	is, was := kv.Values{Most: roundBytes}, kv.Values{Most: roundBytes}
	for at := 0; at < len(r.group); {
		if err := r.snap.GetMany(&is, sources[at:]); err != nil {
			return translate(err)
		}
		if err := now.GetMany(&was, targets[at:at+is.Len()]); err != nil {
			return translate(err)
		}
		for i := range was.Len() {
			if err := r.one(&r.group[at+i], was.At(i), is.At(i)); err != nil {
				return err
			}
		}
		at += was.Len()
	}
	r.group = r.group[:0]
	clear(r.seen)
	return r.flush()
}

// one gives an item its state in the snapshot. was and is are what the target has and what the source has; nil: absent.
func (r *catchUp) one(ch *changed, was, is []byte) error {
	r.begin()
	if !bytes.Equal(was, is) {
		if err := r.exchange(ch.s, ch.t, ch.suffix, was, is); err != nil {
			return err
		}
	}
	if err := r.logical(ch.s, ch.t, ch.suffix); err != nil {
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
					r.bring(s, key)
					return nil
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
		r.renew(s, kind, key, val)
		return nil
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
func (r *catchUp) renew(s *source, kind keys.Kind, key, val []byte) {
	if kind == keys.KindUnique {
		r.bring(s, key)
		return
	}
	was, ok := r.old[string(key)]
	delete(r.old, string(key))
	if !ok || was != string(val) {
		r.b.Put(key, val)
	}
}

// logical brings the head of an item's logical partition.
func (r *catchUp) logical(s *source, t *target, suffix []byte) error {
	if r.c.Def().KeyIsID() {
		return nil
	}
	id, err := r.c.identityOf(suffix)
	if err == nil {
		r.bring(s, append(append(keys.AppendPrefix(nil, t.key, keys.KindLogical), id.place...), id.tuple...))
	}
	return err
}

// bring gives a key of a target the value that it has in a source, in the snapshot of the round.
func (r *catchUp) bring(s *source, key []byte) {
	r.brings = append(r.brings, brought{s, bytes.Clone(key)})
}

// inSource returns the key of a source that stands for a key of a target.
func inSource(s *source, key []byte) []byte {
	kind := keys.Kind(key[keys.PrefixLen-1])
	return append(keys.AppendPrefix(nil, s.key, kind), key[keys.PrefixLen:]...)
}

// orNil converts the result of Get: an absent key has the value nil.
func orNil(b []byte, err error) ([]byte, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return b, translate(err)
}
