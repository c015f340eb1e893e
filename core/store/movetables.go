package store

import (
	"bytes"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// On an engine that takes sorted tables (kv.Ingester) a move copies in one snapshot, one kind of keys after the other.
// The keys of a source are in order already, and what follows their prefix stays. So each target gets its keys in
// order: those of a source that belong to it, or of two sources merged.
//
// Example: slot 3 is split into 9 and 10. Its feed has the entries 41 (of item a), 42 (of c) and 43 (of b). Items a and
// b belong to slot 9. The tables of 9 get the entries 41 and 43, those of 10 the entry 42.
//
// What is written during the copy isn't in the snapshot. The first round brings it, as in a copy by commits.

// moveTable is the number of bytes of keys and values after which the tables of a target are ingested. Commits wait
// while an engine ingests, so it isn't done often.
const moveTable = 64 << 20

// tableRests is the length of a rest in percent of the work before it (pace), instead of moveRests. A key that is added
// to a table costs two thirds of the CPU time of one in a commit, and no wait for the log. So the copy is still faster.
const tableRests = 300

// movedKinds are the kinds of keys that are copied, in the order of their keys. Facts are counted again.
var movedKinds = []keys.Kind{keys.KindLogical, keys.KindItem, keys.KindNumber, keys.KindIndex, keys.KindUnique,
	keys.KindFeed, keys.KindLog, keys.KindTTL}

// copyTables copies all sources by sorted tables. It returns false if the engine takes none.
func (m *move) copyTables() (bool, error) {
	for _, t := range m.targets {
		if t.tables = kv.BeginTables(m.ctx, m.c.st.eng); t.tables == nil {
			return false, nil
		}
		defer t.tables.Close()
	}
	rests := m.rests
	m.rests = tableRests
	defer func() { m.rests = rests }()
	snap, err := m.c.st.eng.Snapshot(m.ctx)
	if err != nil {
		return true, translate(err)
	}
	defer snap.Close()
	for _, kind := range movedKinds {
		if kind == keys.KindLogical && m.c.Def().KeyIsID() {
			continue // an older version may have left heads, which nobody reads
		}
		if err := m.copyOrdered(snap, kind); err != nil {
			return true, err
		}
	}
	for _, t := range m.targets {
		if err := m.ingest(t); err != nil {
			return true, err
		}
	}
	return true, nil
}

// ingest makes the keys that were added to the tables of a target visible.
func (m *move) ingest(t *target) error {
	return m.written(nil, t.tables.Ingest(m.unlessDropped()))
}

// copyOrdered adds the keys of a kind in all sources to the tables of the targets.
func (m *move) copyOrdered(snap kv.Snapshot, kind keys.Kind) error {
	los, his := make([][]byte, len(m.sources)), make([][]byte, len(m.sources))
	for i, s := range m.sources {
		los[i], his[i] = keys.KindBounds(s.key, kind)
	}
	for over := false; !over; {
		err := m.pause()
		if err != nil {
			return err
		}
		if over, err = m.copySome(snap, kind, los, his); err != nil {
			return err
		}
		for _, t := range m.targets {
			if t.tables.Size() < moveTable {
				continue
			}
			if err := m.ingest(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// copySome copies some keys of a kind from the positions los on, and moves these. It holds no iterator between two
// calls: one that rests keeps the memory and the files that it reads.
func (m *move) copySome(snap kv.Snapshot, kind keys.Kind, los, his [][]byte) (over bool, err error) {
	its := make([]kv.Iterator, 0, len(los))
	defer func() {
		for _, it := range its {
			_ = it.Close()
		}
	}()
	on := make([]bool, len(los))
	for i := range los {
		it, err := snap.Iter(los[i], his[i])
		if err != nil {
			return false, translate(err)
		}
		its = append(its, it)
		if on[i] = it.First(); !on[i] && it.Err() != nil {
			return false, translate(it.Err())
		}
	}
	var key []byte
	for n, size := 0, 0; n < moveOps && size < moveBytes; n++ {
		least := -1
		for i := range its {
			if on[i] && (least < 0 ||
				bytes.Compare(its[i].Key()[keys.PrefixLen:], its[least].Key()[keys.PrefixLen:]) < 0) {
				least = i
			}
		}
		if least < 0 {
			return true, nil
		}
		it := its[least]
		t, err := m.copied(kind, it.Key(), it.Value())
		if err != nil {
			return false, err
		}
		key = append(keys.AppendPrefix(key[:0], t.key, kind), it.Key()[keys.PrefixLen:]...)
		if err := t.tables.Add(key, it.Value()); err != nil {
			return false, translate(err)
		}
		size += len(key) + len(it.Value())
		los[least] = append(append(los[least][:0], it.Key()...), 0)
		if on[least] = it.Next(); !on[least] && it.Err() != nil {
			return false, translate(it.Err()) // and not the keys of another source that come after the unread ones
		}
	}
	return false, nil
}

// copied finds the target of a key. An item is added to the counts and flags of its target.
func (m *move) copied(kind keys.Kind, key, val []byte) (*target, error) {
	if len(m.targets) == 1 && kind != keys.KindItem {
		return m.targets[0], nil
	}
	place, err := m.placeOf(kind, key, val)
	if err != nil {
		return nil, err
	}
	t, err := m.target(place)
	if err != nil || kind != keys.KindItem {
		return t, err
	}
	it, err := t.read(place, val)
	if err != nil {
		return nil, err
	}
	terms := m.upkeep.termsNeeded(&it.Item)
	defer termsPool.Put(terms)
	t.count(it, terms)
	return t, nil
}

// placeOf returns the placement of the item that a key belongs to, and maybe more bytes behind it. They are valid until
// the next call.
func (m *move) placeOf(kind keys.Kind, key, val []byte) (place []byte, err error) {
	rest := key[keys.PrefixLen:]
	switch kind {
	case keys.KindLogical, keys.KindItem:
		return rest, nil
	case keys.KindNumber, keys.KindFeed:
		return val, nil
	case keys.KindLog:
		return LogSuffix(val)
	case keys.KindTTL:
		if len(rest) > 8 {
			return rest[8:], nil
		}
		return nil, nil
	case keys.KindIndex:
		e, err := m.targets[0].check.parseIndex(key)
		if err != nil {
			return nil, status.Wrap(status.Corruption, err, "entry %x can't be read", key)
		}
		rest = e.Name
	}
	m.place, err = m.c.appendPlace(m.place[:0], rest) // of a unique entry too, whose key begins with a tuple
	return m.place, err
}
