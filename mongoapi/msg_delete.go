package mongoapi

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
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
	k, err := r.open(r.db, name)
	if err != nil {
		return dst, err
	}
	var w writeReply
	ordered := r.ordered()
	for i, spec := range specs {
		st, err := compileDelete(spec)
		if err == nil {
			err = checkHint(k, spec)
		}
		if err == nil {
			err = r.collate(k, given(spec, "collation"))
		}
		if err == nil {
			st.f, err = filter.Compile(spec.Get("q"), r.filterOptions(scope))
		}
		var o outcome
		if st.number = i; err == nil && k != nil {
			o, err = r.apply(k, st, false)
		}
		w.n += o.modified
		r.endRun()
		if r.ends(err) && (!st.multi || r.multi != nil) || r.stopped(err) {
			return dst, err
		}
		if err != nil {
			w.fail(i, err)
			if ordered || r.multi != nil {
				break
			}
		}
	}
	return r.wrote(dst, &w, false), nil
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
	if !given(spec, "q").IsDefined() {
		return st, merr.New(merr.MissingField, "BSON field 'delete.deletes.q' is missing but a required field")
	}
	st.multi = limit == 0
	return st, nil
}
