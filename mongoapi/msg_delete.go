package mongoapi

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

func deleteDocs(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	specs, err := r.statements("deletes", deleteStatement)
	if err != nil {
		return dst, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return dst, err
	}
	for _, spec := range specs { // a malformed one is an error of the command, before anything is deleted
		if _, err := compileDelete(spec); err != nil {
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
		o, ends, err := t.delete(spec, i)
		if ends {
			return dst, err
		}
		w.n += o.modified
		if err != nil {
			w.fail(i, r.brief(err))
			if ordered || r.multi != nil {
				break
			}
		}
	}
	return r.wrote(dst, &w, false), nil
}

// delete executes a statement of a delete, as update does with one of an update.
func (t *writeTarget) delete(spec value.Value, number int) (o outcome, ends bool, err error) {
	st, err := compileDelete(spec)
	if err == nil {
		err = checkHint(t.k, args.Given(spec, "hint"))
	}
	if err == nil {
		err = t.collate(t.k, args.Given(spec, "collation"))
	}
	if err == nil {
		st.f, err = filter.Compile(spec.Get("q"), t.filterOptions(t.scope))
	}
	return t.execute(opDelete, spec, st, number, err)
}

func compileDelete(spec value.Value) (statement, error) {
	st := statement{shown: exec.Creation}
	limit, ok := num.ToInt64(spec.Get("limit"), false)
	if !spec.Get("limit").IsDefined() {
		return st, merr.New(merr.MissingField, "BSON field 'delete.deletes.limit' is missing but a required field")
	}
	if !ok || limit != 0 && limit != 1 {
		return st, merr.New(merr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", limit)
	}
	if !args.Given(spec, "q").IsDefined() {
		return st, merr.New(merr.MissingField, "BSON field 'delete.deletes.q' is missing but a required field")
	}
	st.multi = limit == 0
	return st, nil
}
