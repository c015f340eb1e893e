package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// validator is the condition that the documents of a collection must satisfy when they are written. An existing
// document that doesn't satisfy it stays, and with the level moderate it may be changed too.
type validator struct {
	spec     value.Value
	f        *filter.Filter
	opts     filter.Options
	env      *expr.Env
	moderate bool
	warn     bool // documents are written in any case
}

// checkValidator checks the arguments of create and collMod for validators.
func (r *request) checkValidator(command string, body value.Value) error {
	for _, c := range []struct {
		name string
		in   []string
	}{{"validationLevel", []string{"off", "strict", "moderate"}}, {"validationAction", []string{"error", "warn"}}} {
		v := args.Given(body, c.name)
		ok := !v.IsDefined()
		for _, s := range c.in {
			ok = ok || v.Str() == s
		}
		if !ok {
			return args.NotInEnum(v.Str(), command+"."+c.name)
		}
	}
	spec := args.Given(body, "validator")
	if spec.Len() == 0 {
		return nil
	}
	if r.db == "admin" || r.db == "local" || r.db == "config" {
		return merr.New(merr.InvalidOptions, "Document validators are not allowed on collection %s.%s in the %s "+
			"internal database", r.db, r.arg.Str(), r.db)
	}
	f, err := filter.Compile(spec, filter.Options{Run: expr.NewRun(r.ctx, r.s.eng.Budget()), NoNear: true})
	if err == nil && f.Text() != nil {
		err = merr.New(merr.BadValue, "$text is not allowed in this context")
	}
	return err
}

// validator returns the collection's validator, nil if there is none.
func (r *request) validator(k *coll) (*validator, error) {
	if k.opts == nil || k.validated {
		return k.valid, nil
	}
	k.validated = true
	spec, level := k.option("validator"), k.option("validationLevel").Str()
	if spec.Len() == 0 || level == "off" {
		return nil, nil
	}
	v := &validator{spec: spec, moderate: level == "moderate", warn: k.option("validationAction").Str() == "warn"}
	e := r.exprEnv()
	run := expr.NewRun(r.ctx, r.s.eng.Budget())
	c, err := k.collation()
	if err != nil {
		return nil, err
	}
	run.Collate(c)
	v.env = &expr.Env{NowMS: e.NowMS, Random: e.Random, Later: e.Later, Run: run}
	v.opts = filter.Options{Run: run}
	if v.f, err = filter.Compile(spec, v.opts); err != nil {
		return nil, err
	}
	k.valid = v
	return v, nil
}

// validate checks a document that will be written in place of old, Undefined if it is new.
func (r *request) validate(k *coll, old, now value.Value) error {
	if k.opts == nil {
		return nil
	}
	if err := k.checkMeasurement(now); err != nil {
		return err
	}
	v, err := r.validator(k)
	if v == nil || err != nil || args.Flag(r.body, "bypassDocumentValidation", false) {
		return err
	}
	ok, err := v.f.Match(v.env, now)
	if ok || err != nil {
		return err
	}
	if v.moderate && old.IsDefined() {
		if ok, err := v.f.Match(v.env, old); !ok || err != nil {
			return err
		}
	}
	if v.warn {
		r.s.log.Warn("mongo document fails validation", "collection", k.namespace(),
			"_id", merr.Show(now.Get("_id")))
		return nil
	}
	details, err := filter.Broken(v.spec, v.opts, v.env, now)
	if err != nil {
		return err
	}
	e := merr.New(merr.DocumentValidationFailure, "Document failed validation")
	at, b := bson.BeginObject(nil, "errInfo")
	b = value.AppendElement(b, "failingDocumentId", now.Get("_id"))
	e.Extra = bson.End(value.AppendElement(b, "details", details), at)
	return e
}
