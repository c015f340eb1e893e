package mongoapi

import (
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/collation"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// idIndexOf returns the index on `_id` of a collection with these options, given as elements.
func idIndexOf(options []byte) value.Value {
	at, b := bson.Begin(nil)
	o := value.ObjectOf(bson.End(append(b, options...), at))
	d := indexes.OnID()
	if c := o.Get("clusteredIndex"); c.IsDefined() {
		d = indexes.With(c, "clustered", value.BoolOf(true), false)
	}
	if c := o.Get("collation"); c.IsDefined() {
		d = indexes.With(d, "collation", c, false)
	}
	return d
}

// idIndex returns the collection's index on `_id`.
func (k *coll) idIndex() value.Value {
	if len(k.opts) == 0 {
		return indexes.OnID()
	}
	return idIndexOf(k.opts[4 : len(k.opts)-1])
}

// inherit gives an index the collation of its collection, unless its specification has one.
func (k *coll) inherit(d, spec value.Value) value.Value {
	c := k.option("collation")
	if !c.IsDefined() || spec.Get("collation").IsDefined() || indexes.IsOnID(d.Get("key")) {
		return d
	}
	return indexes.With(d, "collation", c, false)
}

// indexSpecs returns the declared indexes, without the one on `_id`.
func (k *coll) indexSpecs() []value.Value { return indexSpecsOf(k.Definition) }

func indexSpecsOf(c core.Definition) []value.Value { return indexes.In(c.Spec()) }

// changeIndexes replaces the declared indexes by what f makes of them. f may be called several times. It returns when
// the store enforces them. An index on _ts with a lifetime sets the container's default time to live.
//
// event says what the change is, for change streams; nil: that of an index.
func (r *request) changeIndexes(k *coll, event func() []byte,
	f func(specs []value.Value) ([]value.Value, error)) error {
	var specs []value.Value
	change := func(s *core.ContainerSpec) (err error) {
		old := indexes.In(s)
		if specs, err = f(slices.Clone(old)); err != nil {
			return err
		}
		if event != nil {
			s.Event = event()
		}
		return setIndexes(s, old, specs)
	}
	if r.multi != nil {
		return r.changeIndexesInside(k, change)
	}
	c, err := r.s.eng.ChangeContainer(r.ctx, k.Database(), k.ID(), change)
	var dup *core.Duplicate
	var arrays *core.ParallelArrays
	switch {
	case errors.As(err, &dup):
		return k.duplicateValue(dup, specs)
	case errors.As(err, &arrays):
		return merr.New(merr.CannotIndexParallelArrays, "%s", arrays.Error())
	case err != nil:
		return err
	}
	*k = *newColl(c)
	return nil
}

// replaceIndexes is changeIndexes with the new list.
func (r *request) replaceIndexes(k *coll, specs []value.Value) error {
	return r.changeIndexes(k, nil, func([]value.Value) ([]value.Value, error) { return specs, nil })
}

// setIndexes changes a container's spec from old declared indexes to new ones.
func setIndexes(s *core.ContainerSpec, old, specs []value.Value) error {
	if s.Properties == nil {
		s.Properties = map[string][]byte{}
	}
	s.Properties[indexes.Property] = value.MakeArray(specs).Bytes()
	s.IndexingPolicy = indexes.Policy(s.IndexingPolicy, old, slices.Concat(collatedIDs(s), specs, indexes.Search(s)))
	indexes.SetRefusing(s, specs)
	s.Declared = declaredByOptions(s)
	had, has := slices.ContainsFunc(old, endsByTS), (*int32)(nil)
	for _, d := range specs {
		if endsByTS(d) {
			n, _ := num.ToInt64(d.Get("expireAfterSeconds"), true)
			n32 := int32(n)
			has = &n32
		}
		more, err := indexes.Declared(d)
		if err != nil {
			return err
		}
		s.Declared = append(s.Declared, more...)
	}
	if had || has != nil {
		s.DefaultTTL = has
	}
	return nil
}

// declaredIDs returns the index that makes `_id`s unique by the collection's collation, if it has one. By their bytes
// they are unique in any case.
func declaredIDs(s *core.ContainerSpec) []core.Declared {
	c, err := collation.Parse(optionsIn(s.Properties[optionsProperty]).Get("collation"))
	if c == nil || err != nil {
		return nil
	}
	o := c.Options()
	return []core.Declared{{Name: "_id_", Paths: [][]string{{"_id"}}, Unique: true, Collation: &o}}
}

// collatedIDs returns the index on `_id` if the collection has a default collation.
func collatedIDs(s *core.ContainerSpec) []value.Value {
	c := optionsIn(s.Properties[optionsProperty]).Get("collation")
	if !c.IsDefined() {
		return nil
	}
	return []value.Value{indexes.With(indexes.OnID(), "collation", c, false)}
}

// endsByTS reports whether an index ends the life of documents by the time of their last write.
func endsByTS(d value.Value) bool { return indexes.OnTS(d) && d.Get("expireAfterSeconds").IsDefined() }

func createIndexes(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	list := args.Given(r.body, "indexes")
	if !list.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'createIndexes.indexes' is missing but a required field")
	}
	if list.Len() == 0 {
		return dst, merr.New(merr.BadValue, "Must specify at least one index to create")
	}
	var docs []value.Value
	for _, spec := range value.Elements(list) {
		d, err := indexes.Parse(spec, args.Flag(r.body, "ignoreUnknownIndexOptions", false))
		if err != nil {
			return dst, err
		}
		docs = append(docs, d)
	}
	k, created, err := r.ensure(r.db, name)
	if err != nil {
		return dst, err
	}
	for i, spec := range value.Elements(list) {
		docs[i] = k.inherit(docs[i], spec)
	}
	before := len(k.indexSpecs()) + 1
	specs, err := k.withIndexes(k.indexSpecs(), docs)
	if err != nil {
		return dst, err
	}
	changed := len(specs)+1 > before
	if changed {
		var added []value.Value
		err := r.changeIndexes(k, func() []byte { return indexEvent("createIndexes", added) },
			func(specs []value.Value) ([]value.Value, error) {
				before = len(specs) + 1
				all, err := k.withIndexes(specs, docs)
				if err == nil {
					added = all[len(specs):]
				}
				return all, err
			})
		if err == nil {
			err = r.checkStored(k, docs)
		}
		if err != nil {
			return dst, err
		}
	}
	dst = bson.AppendInt32(dst, "numIndexesBefore", int32(before))
	dst = bson.AppendInt32(dst, "numIndexesAfter", int32(len(k.indexSpecs())+1))
	dst = bson.AppendBool(dst, "createdCollectionAutomatically", created)
	if !changed {
		dst = bson.AppendString(dst, "note", "all indexes already exist")
	}
	return dst, nil
}

// checkStored removes new indexes again if a stored document is one that they refuse. Writers check their
// documents already.
func (r *request) checkStored(k *coll, docs []value.Value) error {
	if !slices.ContainsFunc(docs, indexes.Refuses) {
		return nil
	}
	var bad error
	err := r.eachDocument(k, func(doc []byte) (bool, error) {
		bad = indexes.Check(k.Spec(), value.ObjectOf(doc))
		return bad == nil, nil
	})
	if err != nil || bad == nil {
		return err
	}
	err = r.changeIndexes(k, nil, func(specs []value.Value) ([]value.Value, error) {
		return slices.DeleteFunc(specs, func(s value.Value) bool {
			return slices.ContainsFunc(docs, func(d value.Value) bool { return value.CompareBSON(s, d) == 0 })
		}), nil
	})
	if err != nil {
		return err
	}
	return bad
}

// withIndexes adds those of docs to specs that aren't there.
func (k *coll) withIndexes(specs, docs []value.Value) ([]value.Value, error) {
	specs = slices.Clone(specs)
	for _, d := range docs {
		known, err := indexes.Known(specs, d)
		if err != nil {
			return nil, err
		}
		if !known {
			specs = append(specs, d)
		}
	}
	if err := indexes.OneText(specs); err != nil {
		return nil, err
	}
	if len(specs) > indexes.Max {
		return nil, indexes.CannotCreate("add index fails, too many indexes for %s", k.namespace())
	}
	return specs, nil
}

func listIndexes(r *request, dst []byte) ([]byte, error) {
	name, k, err := r.openNamed()
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns does not exist: %s.%s", r.db, name)
	}
	return r.list(dst, k.namespace(), append([]value.Value{k.idIndex()}, k.indexSpecs()...))
}

func dropIndexes(r *request, dst []byte) ([]byte, error) {
	name, k, err := r.openNamed()
	if err != nil {
		return dst, err
	}
	if k == nil {
		return dst, merr.New(merr.NamespaceNotFound, "ns not found %s.%s", r.db, name)
	}
	was := len(k.indexSpecs()) + 1
	which := []value.Value{r.body.Get("index")}
	if which[0].Kind() == value.Array {
		which = value.Elements(which[0])
	}
	var gone []value.Value
	drop := func(specs []value.Value) (_ []value.Value, err error) {
		was = len(specs) + 1
		defer func(all []value.Value) { gone = missing(all, specs) }(specs)
		for _, w := range which {
			if specs, err = without(specs, w); err != nil {
				return nil, err
			}
		}
		return specs, nil
	}
	left, err := drop(k.indexSpecs())
	if err != nil {
		return dst, err
	}
	if len(left)+1 != was {
		event := func() []byte { return indexEvent("dropIndexes", gone) }
		if err := r.changeIndexes(k, event, drop); err != nil {
			return dst, err
		}
	}
	return bson.AppendInt32(dst, "nIndexesWas", int32(was)), nil
}

// without removes the indexes that w names: by name, by key, or all with "*".
func without(specs []value.Value, w value.Value) ([]value.Value, error) {
	if w.Kind() == value.String && w.Str() == "*" {
		return nil, nil
	}
	if !w.IsDefined() {
		return nil, merr.New(merr.MissingField, "BSON field 'dropIndexes.index' is missing but a required field")
	}
	if w.Kind() != value.String && w.Kind() != value.Object {
		return nil, merr.New(merr.TypeMismatch, "BSON field 'dropIndexes.index' is the wrong type '%s', expected "+
			"types '[string, object]'", expr.TypeName(w))
	}
	if w.Str() == "_id_" || w.Kind() == value.Object && value.CompareBSON(w, indexes.OnID().Get("key")) == 0 {
		return nil, merr.New(merr.InvalidOptions, "cannot drop _id index")
	}
	i, err := findIndex(specs, w)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		return append(append([]value.Value(nil), specs[:i]...), specs[i+1:]...), nil
	}
	if w.Kind() == value.String {
		return nil, merr.New(merr.IndexNotFound, "index not found with name [%s]", w.Str())
	}
	return nil, merr.New(merr.IndexNotFound, "can't find index with key: %s", update.Show(w))
}

// findIndex returns the place of the index with a name or key, -1 if there is none.
func findIndex(specs []value.Value, w value.Value) (int, error) {
	at := -1
	for i, s := range specs {
		switch {
		case w.Kind() == value.String && s.Get("name").Str() == w.Str():
			return i, nil
		case w.Kind() != value.Object || value.CompareBSON(s.Get("key"), w) != 0:
		case at >= 0:
			return -1, merr.New(merr.AmbiguousIndexKeyPattern, "2 indexes found for key: %s, identify by name "+
				"instead. Conflicting indexes: %s, %s", update.Show(w), update.Show(specs[at]), update.Show(s))
		default:
			at = i
		}
	}
	return at, nil
}
