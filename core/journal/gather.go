package journal

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Bounds of a round of gathering: commits with so many bytes and entries are moved at a time, and one in any case.
const (
	gatherBytes   = 2 << 20
	gatherEntries = 1024
	// gatherRaces is how often a round is repeated in which another process was faster.
	gatherRaces = 100
)

// Gather moves everything that is pending now into the journal. Those who watch are told of it, and of what other
// processes have gathered since. The store is shared.
func (j *Journal) Gather(ctx context.Context) error {
	if err := j.gatherMu.Lock(ctx); err != nil {
		return kv.Status(err)
	}
	defer j.gatherMu.Unlock()
	for races := 0; ; {
		more, raced, err := j.gather(ctx)
		switch {
		case err != nil:
			return kv.Status(err)
		case raced:
			if races++; races > gatherRaces {
				return status.New(status.Unavailable, "The journal is changed too often by others.")
			}
		case !more:
			return nil
		}
	}
}

// gather is one round. more says that there is more to gather, raced that another process was faster.
func (j *Journal) gather(ctx context.Context) (more, raced bool, err error) {
	snap, err := j.eng.Snapshot(ctx)
	if err != nil {
		return false, false, err
	}
	defer snap.Close()
	var v kv.Values
	if err := snap.GetMany(&v, [][]byte{keys.JournalEnd(), keys.JournalState()}); err != nil {
		return false, false, err
	}
	raw := v.At(0)
	end, err := decodeEnd(raw)
	if err != nil {
		return false, false, err
	}
	// Not those that this process knows: what another one records in a scope that is new must not be dropped.
	list, err := scopesOf(v.At(1))
	if err != nil {
		return false, false, err
	}
	if err := j.follow(snap, end); err != nil || j.set.ReadOnly {
		return false, false, err
	}
	found, more, err := j.readPending(snap)
	if err != nil || len(found) == 0 {
		return false, false, err
	}
	var b kv.Batch
	touched := map[Namespace]uint64{}
	for i := range found {
		list.move(&b, &found[i], &end, touched)
	}
	b.Put(keys.JournalEnd(), encodeEnd(end))
	pre := kv.Precondition{Key: keys.JournalEnd(), Expect: kv.Absent}
	if raw != nil {
		pre.Expect, pre.Value = kv.Equal, raw
	}
	w, err := j.eng.Write(ctx, &b, []kv.Precondition{pre})
	if err == nil {
		err = w.Wait()
	}
	switch {
	case errors.Is(err, kv.ErrConflict), errors.Is(err, kv.ErrUnknownOutcome): // the next round reads what is there
		return true, true, nil
	case err != nil:
		return false, false, err
	}
	j.advance(end, touched, nil)
	return more, false, nil
}

// move adds to a batch that a commit is moved behind the end of the journal. What isn't recorded any more is dropped.
func (s *scopes) move(b *kv.Batch, c *pending, end *ends, touched map[Namespace]uint64) {
	first := max(c.time, end.last+1)
	for i, e := range c.entries {
		b.Delete(keys.AppendPending(nil, c.time, c.writer, uint32(i)))
		if !s.wanted(e) {
			continue
		}
		e.Time = first + (e.Time - c.time)
		if e.Together {
			e.N = uint32(i)
		}
		end.total += e.storedSize()
		e.total, end.last = end.total, e.Time
		b.Put(keys.AppendJournal(nil, e.Time, e.N), e.append(make([]byte, 0, e.storedSize())))
		e.touches(func(ns Namespace) { touched[ns] = e.Time })
	}
}

// wanted reports whether an entry is recorded.
func (s *scopes) wanted(e *Entry) bool {
	to := e.to()
	return s.covers(e.DB, e.Coll) || to != "" && s.covers(e.DB, to)
}

// touches calls f with all namespaces that an entry is about.
func (e *Entry) touches(f func(Namespace)) {
	f(Namespace{})
	f(Namespace{DB: e.DB})
	f(Namespace{e.DB, e.Coll})
	if to := e.to(); to != "" {
		f(Namespace{e.DB, to})
	}
}

// readPending reads pending commits, in the order of their times: only whole ones.
func (j *Journal) readPending(snap kv.Snapshot) (out []pending, more bool, err error) {
	it, err := snap.Iter(keys.PendingBounds())
	if err != nil {
		return nil, false, err
	}
	defer it.Close()
	var c pending
	size, n := 0, 0
	for ok := it.First(); ok; ok = it.Next() {
		t, writer, at, ok := keys.ParsePending(it.Key())
		val := it.Value()
		if !ok || len(val) == 0 || val[0] != pendingMore && val[0] != pendingLast || int(at) != len(c.entries) {
			return nil, false, errEntry()
		}
		own := append([]byte(nil), val[1:]...)
		e := &Entry{Time: t}
		rest, err := e.head(own)
		if err == nil {
			err = e.body(own, rest)
		}
		if err != nil {
			return nil, false, err
		}
		c.time, c.writer = t, writer
		c.entries, c.size = append(c.entries, e), c.size+len(val)
		if val[0] == pendingMore {
			continue
		}
		c.place()
		out, size, n = append(out, c), size+c.size, n+len(c.entries)
		if c = (pending{}); size >= gatherBytes || n >= gatherEntries {
			return out, true, it.Err()
		}
	}
	if err := it.Err(); err != nil {
		return nil, false, err
	}
	if len(c.entries) > 0 {
		return nil, false, errEntry()
	}
	return out, false, nil
}

// place gives the entries of a commit their times: one after the other, or all the last one that Take has given.
func (c *pending) place() {
	size := 0
	for _, e := range c.entries {
		size += e.Room()
	}
	for i, e := range c.entries {
		if e.Time = c.time + uint64(i); e.Together {
			e.Time = c.time + uint64(size/Part)
		}
	}
}

// follow takes over the end of the journal that a snapshot shows. If anybody watches, it finds out what the other
// processes have added.
func (j *Journal) follow(snap kv.Snapshot, end ends) error {
	j.mu.Lock()
	was := j.end
	known := make(map[*Topic]bool, len(j.topics))
	for _, tp := range j.topics {
		known[tp] = true
	}
	j.mu.Unlock()
	if end.last <= was.last {
		return nil
	}
	touched := map[Namespace]uint64{}
	if len(known) > 0 {
		it, err := snap.Iter(keys.AppendJournal(nil, was.last+1, 0), keys.AppendJournal(nil, end.last+1, 0))
		if err != nil {
			return err
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			var e Entry
			t, _, ok := keys.ParseJournal(it.Key())
			rest, err := e.head(it.Value())
			if err == nil && e.Op == Change {
				err = e.body(it.Value(), rest)
			}
			if err != nil || !ok {
				return errEntry()
			}
			e.touches(func(ns Namespace) { touched[ns] = t })
		}
		if err := it.Err(); err != nil {
			return err
		}
	}
	j.advance(end, touched, known)
	return nil
}

// advance moves the end of the journal, and tells those who watch what it has now. It isn't known what namespaces have
// whose topics aren't among known; nil: all are known.
func (j *Journal) advance(end ends, touched map[Namespace]uint64, known map[*Topic]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if end.last <= j.end.last {
		return
	}
	j.end, j.total = end, end.total
	j.Clock.Advance(end.last)
	for ns, tp := range j.topics {
		if t, ok := touched[ns]; ok {
			tp.last = t
		} else if known != nil && !known[tp] {
			tp.last = end.last
		} else {
			continue
		}
		tp.wakeAll()
	}
}

// formatEnd is the first byte of the stored end.
const formatEnd = 1

func encodeEnd(e ends) []byte {
	b := binary.BigEndian.AppendUint64([]byte{formatEnd}, e.last)
	b = binary.BigEndian.AppendUint64(b, e.total)
	return binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
}

// decodeEnd reads a stored end; nil is that of a journal without entries.
func decodeEnd(b []byte) (e ends, err error) {
	switch {
	case b == nil:
	case len(b) != 21 || b[0] != formatEnd || binary.BigEndian.Uint32(b[17:]) != uint32(xxhash.Sum64(b[:17])):
		return e, errEnd()
	default:
		e.last, e.total = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	}
	return e, nil
}
