package mongoapi

import (
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/bw"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

func explain(r *request, dst []byte) ([]byte, error) {
	if r.arg.Kind() != value.Object {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'explain.explain' is the wrong type '%s', expected type 'object'", expr.TypeName(r.arg))
	}
	return r.explain(dst, r.arg)
}

// explained is the part of a command that finds documents.
type explained struct {
	coll  string
	query value.Value
	f     *filter.Filter
	o     order.Order
	limit int64
	cover func(q *exec.Query)
}

// explained reads the command that is to be explained.
func (r *request) explained(cmd value.Value) (x *explained, err error) {
	x = &explained{}
	it := cmd.Iter()
	if !it.Next() {
		return x, merr.New(merr.FailedToParse, "explain needs a command")
	}
	name := string(it.Key())
	x.coll, x.query = it.Value().Str(), cmd.Get("query")
	switch name {
	case "find":
		x.query = cmd.Get("filter")
		x.o, err = order.Compile(cmd.Get("sort"))
	case "count":
		x.cover = func(q *exec.Query) { coverCount(q, x.f) }
	case "distinct":
		x.cover = func(q *exec.Query) { coverDistinct(q, x.f, cmd.Get("key").Str()) }
	case "findAndModify", "findandmodify":
		x.o, err = order.Compile(cmd.Get("sort"))
	case "update":
		x.query = cmd.Get("updates").At(0).Get("q")
	case "delete":
		x.query = cmd.Get("deletes").At(0).Get("q")
	case "aggregate":
		p, err := r.pipeline(cmd)
		if err != nil {
			return x, err
		}
		if x.f, x.o, x.limit = p.Lead.Filter, p.Lead.Sort, p.Lead.Limit; p.CountOnly != nil {
			x.cover = func(q *exec.Query) { coverCount(q, x.f) }
		}
	default:
		return x, merr.New(merr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	if x.f == nil && err == nil {
		x.f, err = filter.Compile(x.query, filter.Options{})
	}
	if x.query.Kind() != value.Object {
		x.query = value.ObjectOf(bw.Empty)
	}
	return x, err
}

// explain tells how the store would find the documents of a command. It runs nothing, whatever the verbosity.
func (r *request) explain(dst []byte, cmd value.Value) ([]byte, error) {
	x, err := r.explained(cmd)
	if err != nil {
		return dst, err
	}
	k, err := r.open(r.db, x.coll)
	if err != nil {
		return dst, err
	}
	stage, text := "EOF", "the collection does not exist"
	if k != nil {
		if _, _, ok := k.point(x.f); ok {
			stage, text = "IDHACK", "the filter names one document"
		} else {
			q := k.query(x.f, x.o, x.limit, r.exprEnv())
			if x.cover != nil {
				x.cover(q)
			}
			plan, err := k.Explain(r.ctx, q)
			if err != nil {
				return dst, err
			}
			stage, text = stageName(plan.Kind), plan.Explain()
		}
	}
	dst = bw.String(dst, "explainVersion", "1")
	at, dst := bw.BeginObject(dst, "queryPlanner")
	dst = bw.String(dst, "namespace", r.db+"."+x.coll)
	dst = bw.Value(dst, "parsedQuery", x.query)
	pa, dst := bw.BeginObject(dst, "winningPlan")
	dst = bw.String(dst, "stage", stage)
	dst = bw.String(dst, "orrery", text)
	dst = bw.End(dst, pa)
	dst = bw.Value(dst, "rejectedPlans", bw.ArrayValue(nil))
	dst = bw.End(dst, at)
	dst = bw.Value(dst, "command", cmd)
	sa, dst := bw.BeginObject(dst, "serverInfo")
	dst = bw.String(dst, "host", r.c.nc.LocalAddr().String())
	return bw.End(bw.String(dst, "version", Version), sa), nil
}

func stageName(k access.Kind) string {
	switch k {
	case access.Nothing:
		return "EOF"
	case access.Points:
		return "IDHACK"
	case access.Index, access.Ordered:
		return "IXSCAN"
	}
	return "COLLSCAN"
}
