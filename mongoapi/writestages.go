package mongoapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Write implements agg.Host.
func (h *host) Write(w agg.WriteSpec, docs agg.Iter) error {
	db := h.db
	if w.DB != "" {
		db = w.DB
	}
	if err := validDB(db); err != nil {
		return err
	}
	if err := validCollection(db, w.Coll); err != nil {
		return err
	}
	if w.Replace {
		return h.out(db, w.Coll, docs)
	}
	if err := h.checkOn(db, w); err != nil {
		return err
	}
	d, ok, err := docs.Next() // reads them all
	if err != nil {
		return err
	}
	k, _, err := h.r.ensure(db, w.Coll)
	if err != nil {
		return err
	}
	for ; ok; d, ok, err = docs.Next() {
		if err := h.r.ctx.Err(); err != nil {
			return err
		}
		if err := h.merge(k, d, w); err != nil {
			return err
		}
	}
	return err
}

// outBatch is the number of bytes of documents that $out writes at a time.
const outBatch = 256 << 10

// out replaces a collection: it writes the new documents to a collection with a temporary name, which then replaces the
// target in one commit. The collection has the options and indexes of the target: its validator checks the documents.
func (h *host) out(db, name string, docs agg.Iter) (err error) {
	batch, mem := []value.Value(nil), h.r.s.eng.Budget().Open("result")
	defer mem.Close()
	more, err := nextBatch(docs, &batch, mem) // reads all documents
	if err != nil {
		return err
	}
	old, err := h.r.open(db, name)
	if err != nil {
		return err
	}
	if old != nil && old.Spec().Capped != nil {
		return merr.New(17152, "namespace '%s.%s' is capped so it can't be used for $out", db, name)
	}
	if old != nil && !old.byID {
		return merr.New(merr.IllegalOperation, "namespace '%s.%s' is sharded so it can't be used for $out'", db, name)
	}
	temp := "tmp.agg_out." + h.r.s.clk.UUID().String()
	k, _, err := h.r.ensure(db, temp, func(s *core.ContainerSpec) {
		if old != nil {
			setOptions(s, old.opts)
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the command's own context may have ended
			_ = h.r.s.eng.DropContainer(context.WithoutCancel(h.r.ctx), db, temp)
		}
	}()
	if old != nil && len(old.indexSpecs()) > 0 {
		if err := h.r.replaceIndexes(k, old.indexSpecs()); err != nil {
			return err
		}
	}
	for len(batch) > 0 {
		_, bad, err := h.r.insertMany(k, batch, 0, true)
		if err = cmp.Or(err, anyError(bad)); err != nil {
			return err
		}
		if batch = batch[:0]; more {
			if more, err = nextBatch(docs, &batch, mem); err != nil {
				return err
			}
		}
	}
	_, err = h.r.s.eng.RenameContainer(h.r.ctx, db, temp, name, true)
	return err
}

// nextBatch adds copies of the next documents to a batch. more is false behind the last one.
func nextBatch(docs agg.Iter, batch *[]value.Value, mem *budget.Account) (more bool, err error) {
	mem.Close()
	for size := 0; size < outBatch; {
		d, ok, err := docs.Next()
		if !ok || err != nil {
			return false, err
		}
		size += len(d.Bytes()) + 64
		mem.Take(int64(len(d.Bytes()) + 64))
		*batch = append(*batch, d.Clone())
	}
	return true, nil
}

// mergesByID reports whether $merge matches documents by their `_id`.
func mergesByID(w agg.WriteSpec) bool { return len(w.On) == 1 && w.On[0] == "_id" }

// checkOn refuses $merge on fields that no unique index has.
func (h *host) checkOn(db string, w agg.WriteSpec) error {
	if mergesByID(w) {
		return nil
	}
	k, err := h.r.open(db, w.Coll)
	if err != nil {
		return err
	}
	if k != nil {
		for _, s := range k.indexSpecs() {
			if s.Get("unique").IsDefined() && !s.Get("partialFilterExpression").IsDefined() && sameFields(s, w.On) {
				return nil
			}
		}
	}
	return merr.New(51183, "Cannot find index to verify that join fields will be unique")
}

// sameFields reports whether an index has exactly the given fields, in any order.
func sameFields(index value.Value, fields []string) bool {
	key := index.Get("key")
	if key.Len() != len(fields) {
		return false
	}
	for it := key.Iter(); it.Next(); {
		if !slices.Contains(fields, string(it.Key())) {
			return false
		}
	}
	return true
}

// merge writes one document of $merge.
func (h *host) merge(k *coll, d value.Value, w agg.WriteSpec) error {
	if mergesByID(w) {
		d, err := h.r.newDocument(k, d)
		if err != nil {
			return err
		}
		_, err = k.Write(h.r.ctx, core.Write{Kind: core.Update, Doc: d.Bytes(), Partial: w.WhenMatched != "replace",
			Update: func(old *core.Item) (core.Change, error) {
				if old == nil {
					c, err := notMatched(d, w)
					if err == nil && !c.Keep {
						err = h.r.validate(k, value.Undef(), d)
					}
					return c, err
				}
				return h.merged(k, old, d, w)
			}})
		return k.writeError(err, d.Get("_id"))
	}
	f, err := onFilter(d, w.On)
	if err != nil {
		return err
	}
	for range maxRaces {
		done, err := h.mergeOn(k, f, d, w)
		if done || err != nil {
			return err
		}
	}
	return merr.New(merr.WriteConflict, "WriteConflict error: this operation conflicted with another operation. "+
		"Please retry your operation or multi-document transaction.")
}

// notMatched returns the change for a document that the target doesn't have.
func notMatched(d value.Value, w agg.WriteSpec) (core.Change, error) {
	switch w.WhenNotMatched {
	case "insert":
		return core.Change{Doc: d.Bytes()}, nil
	case "discard":
		return core.Change{Keep: true}, nil
	}
	return core.Change{}, merr.New(merr.MergeNoMatch, "$merge could not find a matching document in the target "+
		"collection for at least one document in the source collection")
}

// onFilter returns the filter for the documents with d's values at the given fields.
func onFilter(d value.Value, on []string) (*filter.Filter, error) {
	at, b := bson.Begin(nil)
	for _, f := range on {
		v := d
		for _, s := range strings.Split(f, ".") {
			if v = v.Get(s); v.Kind() == value.Array {
				return nil, merr.New(51185, "$merge write error: 'on' field '%s' is an array", f)
			}
		}
		if v.Kind() == value.Null || !v.IsDefined() {
			return nil, merr.New(51132, "$merge write error: 'on' field cannot be missing, null, undefined or an array")
		}
		va, vb := bson.BeginObject(b, f)
		b = bson.End(value.AppendElement(vb, "$eq", v), va)
	}
	return filter.Compile(value.ObjectOf(bson.End(b, at)), filter.Options{})
}

// mergeOn is merge for a document whose match has to be searched. done is false when another writer was faster.
func (h *host) mergeOn(k *coll, f *filter.Filter, d value.Value, w agg.WriteSpec) (done bool, err error) {
	src := newSource(k, f, nil, exec.AnyOrder, 0, 1, h.r.exprEnv())
	it, err := src.next()
	if err != nil {
		return false, err
	}
	if it == nil {
		src.Close()
		c, err := notMatched(d, w)
		if err != nil || c.Keep {
			return true, err
		}
		if d, err = h.r.newDocument(k, d); err == nil {
			err = h.r.validate(k, value.Undef(), d)
		}
		if err != nil {
			return false, err
		}
		_, err = k.Write(h.r.ctx, core.Write{Kind: core.Create, Doc: d.Bytes()})
		if dup := (*core.Duplicate)(nil); errors.As(err, &dup) && len(dup.Paths) == len(w.On) {
			return false, nil // it is there now
		}
		return true, k.writeError(err, d.Get("_id"))
	}
	pk, id := clonePK(it.PK()), it.ID().Clone()
	src.Close()
	_, err = k.Write(h.r.ctx, core.Write{Kind: core.Update, PK: pk, ID: id, Partial: w.WhenMatched != "replace",
		Update: func(old *core.Item) (core.Change, error) {
			if done = old != nil; !done {
				return core.Change{Keep: true}, nil
			}
			var err error
			if done, err = f.Match(h.r.exprEnv(), value.ObjectOf(old.Doc)); !done || err != nil {
				return core.Change{Keep: true}, err
			}
			return h.merged(k, old, d, w)
		}})
	return done, k.writeError(err, id)
}

// merged returns the change of an existing document.
func (h *host) merged(k *coll, old *core.Item, d value.Value, w agg.WriteSpec) (core.Change, error) {
	was := value.ObjectOf(old.Doc)
	now := d
	switch w.WhenMatched {
	case "keepExisting":
		return core.Change{Keep: true}, nil
	case "fail":
		return core.Change{}, k.duplicateKey(was.Get("_id").Clone())
	case "merge":
		m := expr.NewMerger()
		m.Add(was)
		m.Add(d)
		now = m.Value()
	case "pipeline":
		var err error
		if now, err = w.Pipeline.Apply(h.r.exprEnv(), was, d); err != nil {
			return core.Change{}, err
		}
	}
	switch id := now.Get("_id"); {
	case !id.IsDefined():
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "_id", was.Get("_id"))
		now = value.ObjectOf(bson.End(append(b, fieldsOf(now)...), at))
	case !filter.Equal(id, was.Get("_id")):
		return core.Change{}, merr.New(merr.ImmutableField, "$merge failed to update the matching document, did you "+
			"attempt to modify the _id or the shard key? :: caused by :: Performing an update on the path '_id' would "+
			"modify the immutable field '_id'")
	}
	now, err := h.r.newDocument(k, now)
	if err == nil {
		err = k.checkShardKey(was, now)
	}
	if err == nil {
		err = h.r.validate(k, was, now)
	}
	return core.Change{Doc: now.Bytes()}, err
}

// fieldsOf returns the elements of an object.
func fieldsOf(d value.Value) []byte {
	var b []byte
	for it := d.Iter(); it.Next(); {
		b = append(b, it.Element()...)
	}
	return b
}
