package mongoapi

import (
	"errors"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/project"
	"github.com/orrerydb/orrery/mongoapi/update"
)

func findAndModify(r *request, dst []byte) ([]byte, error) {
	name, k, err := r.openNamed()
	if err != nil {
		return dst, err
	}
	st, fields, err := r.compileFAM(k)
	if err != nil {
		return dst, err
	}
	if k == nil && st.upsert {
		if k, _, err = r.ensure(r.db, name); err != nil {
			return dst, err
		}
	}
	var o outcome
	if k != nil {
		if o, err = r.apply(k, st, true); err != nil {
			return dst, r.whileModifying(err)
		}
	}
	r.c.did.wrote(st.class(), &o)
	at, dst := bson.BeginObject(dst, "lastErrorObject")
	n := o.matched
	if o.upserted.IsDefined() {
		n = 1
	}
	dst = bson.AppendInt32(dst, "n", n)
	if st.u != nil {
		dst = bson.AppendBool(dst, "updatedExisting", o.matched > 0)
		dst = value.AppendElement(dst, "upserted", o.upserted)
	}
	dst = bson.End(dst, at)
	shown := o.before
	if st.new && st.u != nil {
		shown = o.after
	}
	if shown == nil {
		return bson.AppendNull(dst, "value"), nil
	}
	p, err := project.Compile(fields, project.Options{Find: true, Run: r.exprEnv().Run, Query: st.f})
	if err != nil {
		return dst, err
	}
	if err := r.c.room(r.ctx, len(dst)+len(shown), true); err != nil {
		return dst, err
	}
	return p.Append(bson.AppendHead(dst, bson.TypeDocument, "value"), r.exprEnv(), value.ObjectOf(shown))
}

// whileModifying returns the error of a findAndModify that was executed, with the server's words about where it
// happened. Programs look for them.
func (r *request) whileModifying(err error) error {
	var e *merr.Error
	if r.failure != nil || !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Msg = "Plan executor error during findAndModify :: caused by :: " + e.Msg
	return &c
}

func (r *request) compileFAM(k *coll) (st statement, fields value.Value, err error) {
	b := r.body
	fields = args.Given(b, "fields")
	if err = r.collate(k, args.Given(b, "collation")); err != nil {
		return st, fields, err
	}
	if err = checkHint(k, args.Given(b, "hint")); err != nil {
		return st, fields, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return st, fields, err
	}
	if st.f, err = filter.Compile(args.Given(b, "query"), r.filterOptions(scope)); err != nil {
		return st, fields, err
	}
	st.shown = naturalOrder(exec.Creation, b.Get("sort"), args.Given(b, "hint"))
	if st.sort, err = order.Compile(b.Get("sort")); err != nil {
		return st, fields, err
	}
	// Check it before anything is written.
	if _, err = project.Compile(fields, project.Options{Find: true, Run: r.exprEnv().Run, Query: st.f}); err != nil {
		return st, fields, err
	}
	u := b.Get("update")
	remove := args.Flag(b, "remove", false)
	st.upsert, st.new = args.Flag(b, "upsert", false), args.Flag(b, "new", false)
	switch {
	case remove && u.IsDefined():
		return st, fields, merr.New(merr.FailedToParse, "Cannot specify both an update and remove=true")
	case remove && st.upsert:
		return st, fields, merr.New(merr.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case remove && st.new:
		return st, fields, merr.New(merr.FailedToParse, "Cannot specify both new=true and remove=true; 'remove' "+
			"always returns the deleted document")
	case remove:
		return st, fields, nil
	case !u.IsDefined():
		return st, fields, merr.New(merr.FailedToParse, "Either an update or remove=true must be specified")
	case k.series().IsDefined():
		return st, fields, merr.New(merr.InvalidOptions, "Cannot perform a non-multi update on a time-series "+
			"collection")
	}
	st.u, err = update.Compile(u, r.updateOptions(k, b, scope))
	return st, fields, err
}
