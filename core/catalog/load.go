package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/btree"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// load reads the catalog at one snapshot of the store. For containers it reads only the front of their entries.
// Unchanged parts of old are reused. A store that is being moved to or from another one is only loaded if it is opened
// for reading.
//
// All requests of a process wait while it reads a catalog that another one has changed. So over a network the parts are
// read at the same time. A local store starts no goroutine for that.
func load(ctx context.Context, eng kv.Engine, old *state, readOnly bool) (*state, error) {
	snap, err := eng.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	l := loader{snap: snap, old: old, readOnly: readOnly, st: &state{account: firstAccount},
		dbs: map[uint32]*filling{}, gone: map[uint32]bool{}, orphans: map[uint32]string{},
		shelved: make([][]*Resource, len(resourceKinds))}
	steps := []func() error{l.counters, l.contents, l.dropped}
	for i := range resourceKinds {
		steps = append(steps, func() error { return l.resources(i) })
	}
	workers := 1
	if eng.Remote() {
		workers = len(steps)
	}
	if err := work.Each(workers, len(steps), func(i, _ int) error { return steps[i]() }); err != nil {
		return nil, err
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	return l.st, nil
}

// versionOf returns the catalog's version from the value of its key: 0 in a store from before the version existed.
func versionOf(b []byte, err error) (uint64, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return decodeVersion(b)
}

// loader fills a state. Its steps may run at the same time: each writes to other fields. Its tables are changed in
// place until finish.
type loader struct {
	snap     kv.Snapshot
	old      *state // may be nil
	readOnly bool
	st       *state

	empty   bool // counters: there are none
	dbs     map[uint32]*filling
	orphans map[uint32]string // contents: databases that are missing, with a container of each
	gone    map[uint32]bool   // dropped: databases whose entries are being removed
	shelved [][]*Resource     // resources, by kind
}

// filling is a database that is being loaded.
type filling struct {
	db             *Database
	ids            btree.Map[string, *ref]
	folds          btree.Map[string, *ref]
	numbers, timed btree.Map[uint32, *ref]
	shelf          btree.Map[resourceName, *Resource]
	oldNumbers     table[uint32, *ref]
}

// counters reads the keys of which there is one, and decides whether the store is served.
func (l *loader) counters() error {
	var v kv.Values
	err := l.snap.GetMany(&v, [][]byte{MoveKey(), keys.AppendMeta(nil, keys.MetaAccount, 0, ""), versionKey()})
	if err != nil {
		return err
	}
	if b := v.At(0); b != nil && !l.readOnly {
		if err := mayServe(b); err != nil {
			return err
		}
	}
	if v.At(1) == nil {
		l.empty = true
		return nil
	}
	l.st.account.Format = 0
	if err := decode(v.At(1), &l.st.account); err != nil {
		return err
	}
	l.st.version, err = StoredVersion(v.At(2))
	return err
}

// dropped reads which databases are being removed.
func (l *loader) dropped() error {
	lo, hi := keys.MetaBounds(keys.MetaDroppedDatabase)
	return eachIn(l.snap, lo, hi, 0, func(key, _ []byte) (bool, error) {
		_, num, _, _ := keys.ParseMeta(key)
		l.gone[num] = true
		return true, nil
	})
}

// contents reads the databases and the containers. Their keys follow each other.
func (l *loader) contents() error {
	lo, _ := keys.MetaBounds(keys.MetaDatabase)
	_, hi := keys.MetaBounds(keys.MetaContainer)
	return eachIn(l.snap, lo, hi, l.expected(), func(key, b []byte) (bool, error) {
		kind, num, name, ok := keys.ParseMeta(key)
		if !ok {
			return false, status.New(status.Corruption, "malformed catalog key %x", key)
		}
		if kind == keys.MetaDatabase {
			return true, l.database(b)
		}
		f := l.dbs[num]
		if f == nil {
			l.orphans[num] = string(name)
			return true, nil
		}
		return true, f.container(name, b)
	})
}

// expected returns how many keys contents will read, by the old state and a few more; 0 if nothing is known.
func (l *loader) expected() (n int) {
	if l.old == nil {
		return 0
	}
	for d := range l.old.byNum.all() {
		n += 1 + d.numbers.len()
	}
	return n + 16
}

func (l *loader) database(b []byte) error {
	d := &Database{}
	if err := decode(b, d); err != nil {
		return err
	}
	f := &filling{db: d}
	if l.old != nil {
		if o, ok := l.old.byNum.get(d.Num); ok {
			f.oldNumbers = o.numbers
		}
	}
	l.dbs[d.Num] = f
	return nil
}

// container adds a container with its entry.
func (f *filling) container(name, b []byte) error {
	h, err := decodeFront(b)
	if err != nil {
		return err
	}
	r, ok := f.oldNumbers.get(h.num)
	if sum := xxhash.Sum64(b); !ok || r.front != h || r.sum != sum || r.id != string(name) {
		r = &ref{id: string(name), front: h, sum: sum}
	}
	f.ids.Set(r.id, r)
	f.numbers.Set(r.num, r)
	if r.flags&flagTimed != 0 {
		f.timed.Set(r.num, r)
	}
	if lower := strings.ToLower(r.id); lower != r.id {
		f.folds.Set(foldKey(lower, r.id), r)
	}
	return nil
}

// resources reads those of a kind.
func (l *loader) resources(i int) error {
	kind := resourceKinds[i]
	return each(l.snap, kind, func(_, b []byte) error {
		r := &Resource{Kind: kind}
		if err := decode(b, r); err != nil {
			return err
		}
		l.shelved[i] = append(l.shelved[i], r)
		return nil
	})
}

// finish puts together what the steps have read.
func (l *loader) finish() error {
	if l.empty {
		for _, f := range l.dbs { // without its counters a store would give numbers a second time
			return status.New(status.Corruption, "database %q is there, and the account's counters are lost", f.db.ID)
		}
		return nil
	}
	for num, name := range l.orphans {
		if !l.gone[num] {
			return status.New(status.Corruption, "container %q has no database", name)
		}
	}
	for _, of := range l.shelved {
		for _, r := range of {
			if f := l.dbs[r.DBNum]; f != nil {
				f.shelf.Set(r.name(), r)
			} else if !l.gone[r.DBNum] {
				return status.New(status.Corruption, "resource %q has no database", r.ID)
			}
		}
	}
	var byID btree.Map[string, *database]
	var byNum btree.Map[uint32, *database]
	for _, f := range l.dbs {
		d := &database{Database: f.db, shelf: frozen(&f.shelf), ids: frozen(&f.ids), folds: frozen(&f.folds),
			numbers: frozen(&f.numbers), timed: frozen(&f.timed)}
		byID.Set(d.ID, d)
		byNum.Set(d.Num, d)
	}
	l.st.byID, l.st.byNum = frozen(&byID), frozen(&byNum)
	return nil
}

// each calls f for every entry of a kind.
func each(snap kv.Snapshot, k keys.MetaKind, f func(key, val []byte) error) error {
	lo, hi := keys.MetaBounds(k)
	return eachIn(snap, lo, hi, 0, func(key, val []byte) (bool, error) { return true, f(key, val) })
}

// eachIn calls f for the keys of a range until it returns false. It expects n of them; 0: it doesn't know.
func eachIn(snap kv.Snapshot, lo, hi []byte, n int, f func(key, val []byte) (bool, error)) error {
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	if n > 0 {
		it.Ahead(n)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
			return err
		}
	}
	return it.Err()
}
