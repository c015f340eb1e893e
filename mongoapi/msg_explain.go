package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

func explain(r *request, dst []byte) ([]byte, error) {
	if r.arg.Kind() != value.Object {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'explain.explain' is the wrong type '%s', expected type "+
			"'object'", expr.TypeName(r.arg))
	}
	switch v := given(r.body, "verbosity"); v.Str() {
	case "queryPlanner", "executionStats", "allPlansExecution":
	default:
		if v.IsDefined() {
			return dst, merr.New(merr.BadValue,
				"Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", v.Str())
		}
	}
	// The command's arguments are checked like by the command itself.
	inner := request{s: r.s, c: r.c, txn: -1, body: r.arg, db: r.db, legacy: true}
	if _, _, err := inner.readArguments(); err != nil {
		return dst, err
	}
	return r.explain(dst, r.arg)
}

// explained is the part of a command that finds documents.
type explained struct {
	coll  string
	spec  value.Value // the command, or its first statement
	query value.Value
	f     *filter.Filter
	o     order.Order
	limit int64
	cover func(q *exec.Query)
}

// explained reads the command to be explained.
func (r *request) explained(cmd value.Value) (x *explained, err error) {
	x = &explained{spec: cmd}
	it := cmd.Iter()
	if !it.Next() {
		return x, merr.New(merr.FailedToParse, "explain needs a command")
	}
	name := string(it.Key())
	if x.coll, err = r.explainedName(name, it.Value()); err != nil {
		return x, err
	}
	scope, err := r.scope(cmd)
	if err != nil {
		return x, err
	}
	x.query = given(cmd, "query")
	switch name {
	case "find":
		x.query = given(cmd, "filter")
		x.o, err = order.Compile(cmd.Get("sort"))
	case "count":
		x.cover = func(q *exec.Query) { coverCount(q, x.f) }
	case "distinct":
		x.cover = func(q *exec.Query) { coverDistinct(q, x.f, cmd.Get("key").Str()) }
	case "findAndModify", "findandmodify":
		x.o, err = order.Compile(cmd.Get("sort"))
	case "update":
		x.spec = r.firstOf(cmd, "updates")
		x.query = x.spec.Get("q")
	case "delete":
		x.spec = r.firstOf(cmd, "deletes")
		x.query = x.spec.Get("q")
	case "aggregate":
		p, err := r.pipeline(cmd)
		if err != nil {
			return x, err
		}
		if x.f, x.o, x.limit = p.Lead.Filter, p.Lead.Sort, p.Lead.Limit; p.CountOnly != nil {
			x.cover = func(q *exec.Query) { coverCount(q, x.f) }
		}
	}
	if x.f == nil && err == nil {
		x.f, err = filter.Compile(x.query, r.filterOptions(scope))
	}
	if x.query.Kind() != value.Object {
		x.query = value.ObjectOf(bson.Empty)
	}
	return x, err
}

// explainedName returns the collection of the command to be explained.
func (r *request) explainedName(command string, arg value.Value) (string, error) {
	if command == "aggregate" && arg.IsNumber() {
		return noCollection, nil
	}
	if !explains[command] {
		return "", merr.New(merr.CommandNotFound, "Explain failed due to unknown command: %s", command)
	}
	return collectionOf(r.db, arg)
}

// firstOf returns the first statement of a write command, which may be in a document sequence.
func (r *request) firstOf(cmd value.Value, name string) value.Value {
	for _, s := range r.seqs {
		if string(s.Name) == name {
			d, _ := s.Next()
			return value.ObjectOf(d)
		}
	}
	return cmd.Get(name).At(0)
}

// explain describes how the store would find the documents of a command. It runs nothing, for all verbosities.
func (r *request) explain(dst []byte, cmd value.Value) ([]byte, error) {
	x, err := r.explained(cmd)
	if err != nil {
		return dst, err
	}
	stage, text, err := r.planOf(x)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "explainVersion", "1")
	at, dst := bson.BeginObject(dst, "queryPlanner")
	dst = bson.AppendString(dst, "namespace", r.db+"."+x.coll)
	dst = value.AppendElement(dst, "parsedQuery", x.query)
	pa, dst := bson.BeginObject(dst, "winningPlan")
	dst = bson.AppendString(dst, "stage", stage)
	dst = bson.AppendString(dst, "orrery", text)
	dst = bson.End(dst, pa)
	dst = value.AppendElement(dst, "rejectedPlans", value.MakeArray(nil))
	dst = bson.End(dst, at)
	dst = value.AppendElement(dst, "command", cmd)
	sa, dst := bson.BeginObject(dst, "serverInfo")
	dst = bson.AppendString(dst, "host", r.c.nc.LocalAddr().String())
	return bson.End(bson.AppendString(dst, "version", Version), sa), nil
}
