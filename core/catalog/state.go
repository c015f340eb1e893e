package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/btree"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// state is the content of the catalog. It isn't changed after it was stored in Catalog.cur. A change makes a new state,
// which shares all but a few nodes of its tables with the old one.
type state struct {
	serial  uint64 // number of the state in this process
	account account
	version uint64 // of the catalog: 0 before the first change that counted
	byID    table[string, *database]
	byNum   table[uint32, *database]
}

type account struct {
	NextDB        uint32 `json:"nextDb"`
	NextContainer uint32 `json:"nextContainer"`
	NextGen       uint32 `json:"nextGen"`
	NextVersion   uint64 `json:"nextVersion"`
	NextResource  uint32 `json:"nextResource,omitempty"` // absent in older stores: 0 is 1
	Format        int    `json:"format,omitempty"`       // all containers have it, or a later one; absent: see Catalog.Format
}

// firstAccount has the counters of an empty catalog.
var firstAccount = account{NextDB: 0x10000001, NextContainer: 1, NextGen: 1, NextVersion: 1, Format: kv.Format}

// database is a database with its contents. It isn't changed once it is visible.
type database struct {
	*Database
	ids     table[string, *ref] // the containers by id
	folds   table[string, *ref] // those whose id isn't in lower case, by foldKey
	numbers table[uint32, *ref] // by number, which is the order of their creation
	timed   table[uint32, *ref] // those with a flag of flagTimed, by number
	shelf   shelf               // the other resources
}

// A container's id is compared byte by byte, and so are those of most APIs. A table's name is found without regard to
// case: "People" is also reached as "people". Spec.FoldID keeps two tables from having names that differ only in case.

// foldKey orders containers by their ids in lower case. No id has the byte 0xFF, as it is UTF-8.
func foldKey(lower, id string) string { return lower + "\xff" + id }

// folded returns the containers whose ids equal id except for case.
func (d *database) folded(id string) (out []*ref) {
	lower := strings.ToLower(id)
	for r := range d.folds.from(foldKey(lower, "")) {
		if strings.ToLower(r.id) != lower {
			break
		}
		out = append(out, r)
	}
	if r, ok := d.ids.get(lower); ok && strings.ToLower(r.id) == r.id {
		out = append(out, r)
	}
	return out
}

// free returns Conflict if a container other than except prevents a container from getting this id.
func (d *database) free(ctx context.Context, c *Catalog, id string, foldID bool, except ...*ref) error {
	for _, r := range d.folded(id) {
		if slices.Contains(except, r) {
			continue
		}
		taken := r.id == id || foldID
		if !taken {
			k, err := c.definition(ctx, d, r)
			if err != nil {
				return err
			}
			taken = k.FoldID
		}
		if taken {
			return errTaken()
		}
	}
	return nil
}

// with returns the database with a container. It replaces the one with the same number.
func (d *database) with(r *ref) *database {
	n := *d
	if old, ok := n.numbers.get(r.num); ok && old.id != r.id {
		n = *n.without(old)
	}
	n.ids = n.ids.with(r.id, r)
	n.numbers = n.numbers.with(r.num, r)
	if r.flags&flagTimed != 0 {
		n.timed = n.timed.with(r.num, r)
	} else {
		n.timed = n.timed.without(r.num)
	}
	if lower := strings.ToLower(r.id); lower != r.id {
		n.folds = n.folds.with(foldKey(lower, r.id), r)
	}
	return &n
}

// without returns the database without a container.
func (d *database) without(r *ref) *database {
	n := *d
	n.ids = n.ids.without(r.id)
	n.numbers = n.numbers.without(r.num)
	n.timed = n.timed.without(r.num)
	if lower := strings.ToLower(r.id); lower != r.id {
		n.folds = n.folds.without(foldKey(lower, r.id))
	}
	return &n
}

// put adds a database. It replaces the one with the same number.
func (s *state) put(d *database) {
	s.byID = s.byID.with(d.ID, d)
	s.byNum = s.byNum.with(d.Num, d)
}

// remove removes a database with its contents.
func (s *state) remove(d *database) {
	s.byID = s.byID.without(d.ID)
	s.byNum = s.byNum.without(d.Num)
}

// load reads the catalog at one snapshot of the store. For containers it reads only the front of their entries.
// Unchanged parts of old are reused. A store that is being moved to or from another one is only loaded if it is opened
// for reading.
func load(ctx context.Context, eng kv.Engine, old *state, readOnly bool) (*state, error) {
	snap, err := eng.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	if !readOnly {
		if err := mayServe(snap); err != nil {
			return nil, err
		}
	}
	l := loader{snap: snap, old: old, dbs: map[uint32]*filling{}, gone: map[uint32]bool{},
		st: &state{account: firstAccount}}
	b, err := snap.Get(nil, keys.AppendMeta(nil, keys.MetaAccount, 0, ""))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		// Without its counters a store with databases would give numbers a second time.
		return l.st, each(snap, keys.MetaDatabase, func(key, _ []byte) error {
			return status.New(status.Corruption, "database %q is there, and the account's counters are lost", key[6:])
		})
	case err != nil:
		return nil, err
	}
	l.st.account.Format = 0
	if err := decode(b, &l.st.account); err != nil {
		return nil, err
	}
	if l.st.version, err = versionOf(snap.Get(nil, versionKey())); err != nil {
		return nil, err
	}
	for _, step := range []func() error{l.databases, l.containers, l.resources} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.finish()
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

// loader fills a state. Its tables are changed in place until finish.
type loader struct {
	snap kv.Snapshot
	old  *state // may be nil
	st   *state
	dbs  map[uint32]*filling
	gone map[uint32]bool // databases whose entries are being removed
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

func (l *loader) databases() error {
	err := each(l.snap, keys.MetaDroppedDatabase, func(key, _ []byte) error {
		_, num, _, _ := keys.ParseMeta(key)
		l.gone[num] = true
		return nil
	})
	if err != nil {
		return err
	}
	return each(l.snap, keys.MetaDatabase, func(_, b []byte) error {
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
	})
}

func (l *loader) containers() error {
	return each(l.snap, keys.MetaContainer, func(key, b []byte) error {
		_, num, name, ok := keys.ParseMeta(key)
		if !ok {
			return status.New(status.Corruption, "malformed catalog key %x", key)
		}
		f := l.dbs[num]
		if f == nil {
			if l.gone[num] {
				return nil
			}
			return status.New(status.Corruption, "container %q has no database", name)
		}
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
	})
}

func (l *loader) resources() error {
	for _, kind := range resourceKinds {
		err := each(l.snap, kind, func(_, b []byte) error {
			r := &Resource{Kind: kind}
			if err := decode(b, r); err != nil {
				return err
			}
			f := l.dbs[r.DBNum]
			if f == nil {
				if l.gone[r.DBNum] {
					return nil
				}
				return status.New(status.Corruption, "resource %q has no database", r.ID)
			}
			f.shelf.Set(r.name(), r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) finish() {
	var byID btree.Map[string, *database]
	var byNum btree.Map[uint32, *database]
	for _, f := range l.dbs {
		d := &database{Database: f.db, shelf: frozen(&f.shelf), ids: frozen(&f.ids), folds: frozen(&f.folds),
			numbers: frozen(&f.numbers), timed: frozen(&f.timed)}
		byID.Set(d.ID, d)
		byNum.Set(d.Num, d)
	}
	l.st.byID, l.st.byNum = frozen(&byID), frozen(&byNum)
}

// each calls f for every entry of a kind.
func each(snap kv.Snapshot, k keys.MetaKind, f func(key, val []byte) error) error {
	lo, hi := keys.MetaBounds(k)
	return eachIn(snap, lo, hi, func(key, val []byte) (bool, error) { return true, f(key, val) })
}

// eachIn calls f for the keys of a range until it returns false.
func eachIn(snap kv.Snapshot, lo, hi []byte, f func(key, val []byte) (bool, error)) error {
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if more, err := f(it.Key(), it.Value()); err != nil || !more {
			return err
		}
	}
	return it.Err()
}
