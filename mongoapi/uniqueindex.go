package mongoapi

import (
	"errors"
	"hash/maphash"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// An index is made unique in two steps. With prepareUnique it refuses duplicates from then on, and with unique it is
// listed as unique. MongoDB lets stored duplicates be until the second step. Here the first step refuses them, with the
// error and the list of the second one.

// checkDryRun refuses a collMod with dryRun that isn't one for a unique index.
func (r *request) checkDryRun() error {
	if !args.Flag(r.body, "dryRun", false) {
		return nil
	}
	index := args.Given(r.body, "index")
	if !index.IsDefined() {
		return merr.New(merr.InvalidOptions, "dry run mode requires an valid index modification.")
	}
	if !args.Flag(index, "unique", false) {
		return merr.New(merr.InvalidOptions, "dry run mode requires an index modification with unique: true.")
	}
	if r.changesOptions() || index.Len() > 2 {
		return merr.New(merr.InvalidOptions, "unique: true cannot be combined with any other modification in dry run "+
			"mode.")
	}
	return nil
}

// setUnique changes unique and prepareUnique of an index, and adds to the reply. others tells whether the command
// changes something else.
func (m *indexMod) setUnique(d value.Value, others bool) (value.Value, error) {
	is, prepared := d.Get("unique").Bool(), d.Get("prepareUnique").Bool()
	if m.unique.IsDefined() {
		switch {
		case !m.unique.Bool():
			return d, merr.New(merr.BadValue, "Cannot make index non-unique")
		case is:
		case !prepared:
			return d, merr.New(merr.InvalidOptions, "Cannot make index unique with 'prepareUnique=false'. Run collMod "+
				"to set it first.")
		default:
			d = indexes.With(indexes.With(d, "prepareUnique", value.Undef(), true), "unique", value.BoolOf(true), false)
			m.reply = bson.AppendBool(m.reply, "unique_new", true)
		}
	}
	to := m.prepare.Bool()
	if !m.prepare.IsDefined() || is || to == prepared {
		return d, nil
	}
	if others {
		return d, merr.New(merr.InvalidOptions, "prepareUnique cannot be combined with any other modification.")
	}
	m.reply = bson.AppendBool(bson.AppendBool(m.reply, "prepareUnique_old", prepared), "prepareUnique_new", to)
	return indexes.With(d, "prepareUnique", value.BoolOf(true), !to), nil
}

// notUnique returns the error for documents that keep an index from being unique. It is err if that is another one.
func (r *request) notUnique(k *coll, index value.Value, err error) error {
	if e := (*merr.Error)(nil); !errors.As(err, &e) || e.Code != merr.DuplicateKey {
		return err
	}
	ids, whole, err := r.duplicates(k, index)
	if err != nil {
		return err
	}
	e := merr.New(merr.CannotConvertIndexToUnique, "Cannot convert the index to unique. Please resolve conflicting "+
		"documents before running collMod again.")
	if !whole {
		e = merr.New(merr.CannotConvertIndexToUnique, "Cannot convert the index to unique. Too many conflicting "+
			"documents were detected. Please resolve them and rerun collMod.")
	}
	at, b := bson.BeginArray(nil, "violations")
	for i, vs := range ids {
		va, v := bson.Begin(nil)
		b = value.AppendIndexed(b, i, value.ObjectOf(bson.End(value.AppendElement(v, "ids", value.MakeArray(vs)), va)))
	}
	e.Extra = bson.End(b, at)
	return e
}

// maxViolations is how many bytes of ids a reply lists.
const maxViolations = 8 << 20

// duplicates returns the ids of the documents that have the same key in an index, in the order of their first ones;
// whole is false if these aren't all. The first reading finds the keys by their hashes, and the second one the
// documents.
func (r *request) duplicates(k *coll, index value.Value) (ids [][]value.Value, whole bool, err error) {
	declared, err := indexes.Declared(index)
	if err != nil {
		return nil, false, err
	}
	keys, err := core.DeclaredKeys(declared[0])
	if err != nil {
		return nil, false, err
	}
	mem := r.s.eng.Budget().Open("collMod")
	defer mem.Close()
	seed, several := maphash.MakeSeed(), map[uint64]bool{}
	err = r.eachDocument(k, func(doc []byte) (bool, error) {
		ks, err := keys(doc)
		before := len(several)
		for _, key := range ks {
			h := maphash.String(seed, key)
			_, had := several[h]
			several[h] = had
		}
		return true, errors.Join(err, mem.Grow(int64(len(several)-before)*valueOverhead))
	})
	if err != nil {
		return nil, false, err
	}
	at, size := map[string]int{}, 0
	err = r.eachDocument(k, func(doc []byte) (bool, error) {
		ks, err := keys(doc)
		for _, key := range ks {
			if !several[maphash.String(seed, key)] {
				continue
			}
			i, ok := at[key]
			if !ok {
				i = len(ids)
				at[key], ids = i, append(ids, nil)
			}
			id := value.ObjectOf(doc).Get("_id").Clone()
			ids[i], size = append(ids[i], id), size+len(id.Bytes())
			err = errors.Join(err, mem.Grow(int64(len(id.Bytes())+len(key)+2*valueOverhead)))
		}
		return size < maxViolations, err
	})
	ids = slices.DeleteFunc(ids, func(vs []value.Value) bool { return len(vs) < 2 }) // two keys with one hash
	return ids, size < maxViolations, err
}

// eachDocument calls f with the documents of a collection, until it returns false.
func (r *request) eachDocument(k *coll, f func(doc []byte) (bool, error)) error {
	all, err := filter.Compile(value.Undef(), filter.Options{})
	if err != nil {
		return err
	}
	src := newSource(k, all, nil, exec.AnyOrder, 0, 0, r.exprEnv())
	defer src.Close()
	for {
		it, err := src.next()
		if err != nil || it == nil {
			return err
		}
		if more, err := f(it.Doc); err != nil || !more {
			return err
		}
	}
}
