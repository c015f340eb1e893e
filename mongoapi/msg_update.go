package mongoapi

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/update"
)

// maxRaces is the number of attempts of a statement when other writers change its document first.
const maxRaces = 32

// statement is one update, delete or findAndModify.
type statement struct {
	f      *filter.Filter
	u      *update.Update // nil: delete
	sort   order.Order
	shown  exec.Shown // the order without a sort
	multi  bool
	upsert bool
	number int  // in its command
	new    bool // it shows the document after the change
}

// class returns the class of the statement in counters.
func (st *statement) class() opClass {
	if st.u == nil {
		return opDelete
	}
	return opUpdate
}

// outcome is the result of a statement.
type outcome struct {
	matched, modified int32
	upserted          value.Value // `_id` of the document that an upsert inserted
	before, after     []byte      // of the last document; kept if the statement needs them
}

func updateDocs(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	specs, err := r.statements("updates", r.updateStatement())
	if err != nil {
		return dst, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return dst, err
	}
	for _, spec := range specs { // a malformed one is an error of the command, before anything is updated
		if err := cmp.Or(checkUpdate(spec), agg.CheckNames(spec.Get("u"))); err != nil {
			return dst, err
		}
	}
	t := writeTarget{request: r, db: r.db, name: name, scope: scope}
	if t.k, err = r.open(r.db, name); err != nil {
		return dst, err
	}
	var w writeReply
	ordered := r.ordered()
	for i, spec := range specs {
		o, ends, err := t.update(spec, i)
		if ends {
			return dst, err
		}
		w.n += o.matched
		w.modified += o.modified
		if o.upserted.IsDefined() {
			w.n++
			w.upsert(i, o.upserted)
		}
		if err != nil {
			w.fail(i, r.brief(err))
			if ordered || r.multi != nil {
				break
			}
		}
	}
	return r.wrote(dst, &w, true), nil
}

// updateStatement returns the arguments of a statement.
func (r *request) updateStatement() args.Set {
	if r.s.release.sorts {
		return sortedUpdateStatement
	}
	return updateStatement
}

// writeTarget is a collection that a command changes by statements of updates and deletes.
type writeTarget struct {
	*request
	db, name string
	k        *coll       // nil: it doesn't exist
	scope    *expr.Scope // the command's variables
}

// update executes a statement of an update, which has this number in its command. ends means that the error ends the
// command.
func (t *writeTarget) update(spec value.Value, number int) (o outcome, ends bool, err error) {
	st, err := t.compileUpdate(t.k, spec, t.scope)
	if err == nil {
		err = checkHint(t.k, args.Given(spec, "hint"))
	}
	if err == nil && t.k == nil && st.upsert {
		if t.k, _, err = t.ensure(t.db, t.name); err != nil {
			return o, true, err
		}
	}
	return t.execute(opUpdate, spec, st, number, err)
}

// execute executes a statement of a class, unless there was an error in it.
func (t *writeTarget) execute(class opClass, spec value.Value, st statement, number int, err error) (o outcome,
	ends bool, _ error) {
	m := t.markProfile()
	defer func() {
		t.c.did.wrote(class, &o)
		t.profileStatement(m, spec, err)
	}()
	if err == nil && st.multi && t.retry {
		err = t.manyRetried(st)
	}
	if st.number = number; err == nil && t.k != nil {
		o, err = t.apply(t.k, st, false)
	}
	t.endRun()
	return o, t.ends(err) && (!st.multi || t.multi != nil) || t.stopped(err), err
}

// manyRetried is the error of a statement for several documents in a retryable command.
func (r *request) manyRetried(st statement) error {
	switch {
	case r.name == "bulkWrite":
		return merr.New(merr.InvalidOptions, "Cannot use retryable writes with multi=true")
	case st.u == nil:
		return merr.New(merr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	return merr.New(merr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
}

// checkUpdate refuses a statement without its required fields.
func checkUpdate(spec value.Value) error {
	if !spec.Get("u").IsDefined() {
		return merr.New(merr.MissingField, "BSON field 'update.updates.u' is missing but a required field")
	}
	if !args.Given(spec, "q").IsDefined() {
		return merr.New(merr.MissingField, "BSON field 'update.updates.q' is missing but a required field")
	}
	return nil
}

func (r *request) compileUpdate(k *coll, spec value.Value, scope *expr.Scope) (statement, error) {
	st := statement{shown: exec.Creation, multi: args.Flag(spec, "multi", false),
		upsert: args.Flag(spec, "upsert", false)}
	if err := r.collate(k, args.Given(spec, "collation")); err != nil {
		return st, err
	}
	if err := checkUpdate(spec); err != nil {
		return st, err
	}
	u := spec.Get("u")
	if c := spec.Get("c"); c.Kind() == value.Object { // constants of an update pipeline
		if u.Kind() != value.Array {
			return st, merr.New(51198, "Constant values may only be specified for pipeline updates")
		}
		for it := c.Iter(); it.Next(); {
			s, slot, err := expr.BindUser(scope, string(it.Key()))
			if err != nil {
				return st, err
			}
			scope = s
			r.exprEnv().Set(slot, it.Value())
		}
	}
	if err := k.checkSeriesUpdate(spec); err != nil {
		return st, err
	}
	var err error
	if st.f, err = filter.Compile(spec.Get("q"), r.filterOptions(scope)); err != nil {
		return st, err
	}
	if st.u, err = update.Compile(u, r.updateOptions(k, spec, scope)); err != nil {
		return st, err
	}
	if st.multi && st.u.IsReplacement() {
		return st, merr.New(merr.FailedToParse, "multi update is not supported for replacement-style update")
	}
	sort := args.Given(spec, "sort")
	if st.multi && sort.IsDefined() {
		return st, merr.New(merr.FailedToParse, "Cannot specify sort with multi=true")
	}
	st.shown = naturalOrder(exec.Creation, sort, args.Given(spec, "hint"))
	st.sort, err = order.Compile(sort)
	return st, err
}

// updateOptions returns the options of a statement's update.
func (r *request) updateOptions(k *coll, spec value.Value, s *expr.Scope) update.Options {
	return update.Options{ArrayFilters: args.Given(spec, "arrayFilters"), Scope: s, Run: r.exprEnv().Run,
		Dollar: k.isKeyField}
}

// apply runs a statement. want keeps the documents before and after it.
func (r *request) apply(k *coll, st statement, want bool) (outcome, error) {
	if st.multi {
		return r.applyAll(k, st)
	}
	if err := r.failWrite(); err != nil {
		return outcome{}, err
	}
	if o, ok := r.doneBefore(st.number); ok {
		return o, nil
	}
	for range maxRaces {
		o, again, err := r.applyOne(k, st, want)
		if made, ok := err.(*madeBefore); ok {
			r.again(st.number)
			return made.o, nil
		}
		if !again {
			return o, err
		}
	}
	return outcome{}, merr.New(merr.WriteConflict, "WriteConflict error: this operation conflicted with another "+
		"operation. Please retry your operation or multi-document transaction.")
}

// applyOne changes the first document that the statement finds. again means that another writer changed it first.
func (r *request) applyOne(k *coll, st statement, want bool) (o outcome, again bool, err error) {
	pk, id, ok := k.point(st.f)
	if ok {
		k.uses.point()
		return r.change(k, pk, id, st, want, true)
	}
	src := newSource(k, st.f, st.sort, st.shown, 0, 1, r.exprEnv())
	it, err := src.next()
	if err != nil {
		return o, false, err
	}
	if it != nil {
		pk, id = clonePK(it.PK()), it.ID().Clone()
	}
	src.Close()
	r.charge += src.charge
	if it != nil {
		return r.change(k, pk, id, st, want, false)
	}
	if err := r.findStatement(st.number); err != nil { // an earlier attempt may have found one
		return o, false, err
	}
	if !st.upsert {
		return o, false, nil
	}
	d, err := r.upsertDoc(k, st)
	if err != nil {
		return o, false, err
	}
	made := outcome{upserted: d.Get("_id"), after: d.Bytes()}
	res, err := k.Write(r.ctx, core.Write{Kind: core.Create, Doc: d.Bytes(),
		With: r.record(st.number, func() outcome { return made.kept(&st, want) }),
		Mark: r.mark(st.number, func() outcome { return made.kept(&st, want) })})
	if status.Is(err, status.Conflict) {
		// The query may find the document now. If it doesn't, the `_id` or a unique value is really taken.
		if ok, merr := r.matchesNow(k, d, st, err); ok || merr != nil {
			return o, ok, merr
		}
	}
	if err != nil {
		return o, false, k.writeError(err, d.Get("_id"))
	}
	r.made(&res)
	return made, false, nil
}

// matchesNow reports whether the stored document with d's identity, or with its unique values, matches the statement's
// query. conflict is the error of the insert of d.
func (r *request) matchesNow(k *coll, d value.Value, st statement, conflict error) (bool, error) {
	if dup := (*core.Duplicate)(nil); errors.As(conflict, &dup) {
		src := newSource(k, st.f, nil, st.shown, 0, 1, r.exprEnv())
		defer src.Close()
		it, err := src.next()
		r.charge += src.charge
		return it != nil, err
	}
	pk, id, err := k.KeyOf(d.Bytes())
	if err != nil {
		return false, err
	}
	it, err := k.Read(r.ctx, pk, id)
	if err != nil {
		return status.Is(err, status.NotFound), nil
	}
	return st.f.Match(r.exprEnv(), value.ObjectOf(it.Doc))
}

// change runs the statement on one item. known means that the query determines the item, so an upsert inserts exactly
// that one.
func (r *request) change(k *coll, pk core.PartitionKey, id value.Value, st statement, want, known bool) (
	o outcome, again bool, err error) {
	w := core.Write{Kind: core.Update, PK: pk, ID: id, Partial: st.u != nil && !st.u.IsReplacement()}
	if !st.multi {
		w.With = r.record(st.number, func() outcome { return o.kept(&st, want) })
		w.Mark = r.mark(st.number, func() outcome { return o.kept(&st, want) })
	}
	w.Update = func(old *core.Item) (core.Change, error) {
		o, again = outcome{}, false // the function may run again after a conflict
		if old == nil {
			if !known {
				again = true
				return core.Change{Keep: true}, nil
			}
			if !st.upsert {
				return core.Change{Keep: true}, nil
			}
			d, err := r.upsertDoc(k, st)
			if err != nil {
				return core.Change{}, err
			}
			o.upserted, o.after = d.Get("_id"), d.Bytes()
			return core.Change{Doc: d.Bytes()}, nil
		}
		return r.changeItem(k, old, st, want, known, &o, &again)
	}
	res, err := k.Write(r.ctx, w)
	if err != nil {
		if status.Is(err, status.NotFound) && !st.upsert {
			return outcome{}, false, nil
		}
		return outcome{}, false, k.writeError(err, id)
	}
	r.made(&res)
	return o, again, nil
}

// changeItem computes the change of an existing item.
func (r *request) changeItem(k *coll, old *core.Item, st statement, want, known bool, o *outcome, again *bool) (
	core.Change, error) {
	if known && !st.multi { // else the query that has found it has counted it
		r.c.did.read(1, 1)
	}
	doc := value.ObjectOf(old.Doc)
	ok, err := st.f.Match(r.exprEnv(), doc)
	if err != nil {
		return core.Change{}, err
	}
	if !ok {
		if known && st.upsert { // the `_id` exists, but the rest of the query doesn't match
			return core.Change{}, k.duplicateKey(doc.Get("_id").Clone())
		}
		*again = !known
		return core.Change{Keep: true}, nil
	}
	o.matched = 1
	if want {
		o.before = append([]byte(nil), old.Doc...)
	}
	if st.u == nil {
		o.modified = 1
		return core.Change{Delete: true}, nil
	}
	now, err := st.u.Apply(doc, update.Context{Env: r.exprEnv(), Filter: st.f, Stamp: r.stamp})
	if err != nil {
		return core.Change{}, err
	}
	if len(now) > maxDocument {
		return core.Change{}, merr.New(merr.BSONObjectTooLarge, "Resulting document after update is larger than %d",
			maxDocument)
	}
	if bson.Deeper(now, storedDepth, nil) {
		return core.Change{}, merr.New(merr.Overflow, "Document exceeds maximum nesting depth of %d", storedDepth)
	}
	nv := value.ObjectOf(now)
	if err := k.checkShardKey(doc, nv); err != nil {
		return core.Change{}, err
	}
	if err := k.checkStored(nv); err != nil {
		return core.Change{}, err
	}
	o.after = now
	if bytes.Equal(now, old.Doc) && !st.u.Rewrites() {
		return core.Change{Keep: true}, nil
	}
	if err := r.validate(k, doc, nv); err != nil {
		return core.Change{}, err
	}
	o.modified = 1
	return core.Change{Doc: now}, nil
}

// upsertDoc returns the document that an upsert inserts.
func (r *request) upsertDoc(k *coll, st statement) (value.Value, error) {
	var base []byte
	var err error
	if st.u.IsReplacement() {
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "_id", st.f.Equal("_id"))
		base = bson.End(b, at)
	} else if base, err = update.Base(st.f.Equalities()); err != nil {
		return value.Undef(), err
	}
	out, err := st.u.Apply(value.ObjectOf(base), update.Context{Env: r.exprEnv(), Filter: st.f, Insert: true,
		Stamp: r.stamp})
	if err != nil {
		return value.Undef(), err
	}
	if len(out) > maxDocument {
		return value.Undef(), merr.New(17420, "Document to upsert is larger than %d", maxDocument)
	}
	d, err := r.newDocument(k, value.ObjectOf(out))
	if err != nil {
		return d, err
	}
	return d, r.validate(k, value.Undef(), d)
}

// identityOverhead is the approximate size in bytes of an identity without its own bytes.
const identityOverhead = 160

type identity struct {
	pk core.PartitionKey
	id value.Value
}

func clonePK(pk core.PartitionKey) core.PartitionKey {
	out := make(core.PartitionKey, len(pk))
	for i, v := range pk {
		out[i] = v.Clone()
	}
	return out
}

// applyAll changes every document that the statement finds. It collects their identities first, so that a change that
// moves a document within an index doesn't find it again.
func (r *request) applyAll(k *coll, st statement) (outcome, error) {
	var total outcome
	src := newSource(k, st.f, nil, exec.AnyOrder, 0, 0, r.exprEnv())
	defer src.Close()
	mem := r.s.eng.Budget().Open("list of documents")
	defer mem.Close()
	var ids []identity
	for {
		it, err := src.next()
		if err != nil {
			return total, err
		}
		if it == nil {
			break
		}
		ids = append(ids, identity{clonePK(it.PK()), it.ID().Clone()})
		if err := mem.Grow(int64(identityOverhead + 2*len(it.Identity()))); err != nil {
			return total, err
		}
	}
	r.charge += src.charge
	if len(ids) == 0 && st.upsert {
		one := st
		one.multi = false
		return r.apply(k, one, false)
	}
	for _, id := range ids {
		if err := r.ctx.Err(); err != nil {
			return total, err
		}
		one := st
		one.upsert = false
		o, _, err := r.change(k, id.pk, id.id, one, false, true)
		if err != nil {
			return total, err
		}
		total.matched += o.matched
		total.modified += o.modified
	}
	return total, nil
}
