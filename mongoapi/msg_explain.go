package mongoapi

import (
	"github.com/orrerydb/orrery/core/access"
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

// explain tells how the store would find the documents of a command. It runs nothing, whatever the verbosity.
func (r *request) explain(dst []byte, cmd value.Value) ([]byte, error) {
	it := cmd.Iter()
	if !it.Next() {
		return dst, merr.New(merr.FailedToParse, "explain needs a command")
	}
	name, target := string(it.Key()), it.Value()
	var f *filter.Filter
	var o order.Order
	var err error
	limit := int64(0)
	q := cmd.Get("query")
	switch name {
	case "find":
		q = cmd.Get("filter")
		o, err = order.Compile(cmd.Get("sort"))
	case "count", "distinct":
	case "findAndModify", "findandmodify":
		o, err = order.Compile(cmd.Get("sort"))
	case "update":
		q = cmd.Get("updates").At(0).Get("q")
	case "delete":
		q = cmd.Get("deletes").At(0).Get("q")
	case "aggregate":
		p, perr := r.pipeline(cmd)
		if perr != nil {
			return dst, perr
		}
		f, o, limit, q = p.Lead.Filter, p.Lead.Sort, p.Lead.Limit, value.Undef()
	default:
		return dst, merr.New(merr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	if err != nil {
		return dst, err
	}
	if f == nil {
		if f, err = filter.Compile(q, filter.Options{}); err != nil {
			return dst, err
		}
	}
	if q.Kind() != value.Object {
		q = value.ObjectOf(bw.Empty)
	}
	k, err := r.open(r.db, target.Str())
	if err != nil {
		return dst, err
	}
	stage, text := "EOF", "the collection does not exist"
	if k != nil {
		if _, _, ok := k.point(f); ok {
			stage, text = "IDHACK", "the filter names one document"
		} else {
			plan, err := k.Explain(r.ctx, k.query(f, o, limit, r.exprEnv()))
			if err != nil {
				return dst, err
			}
			stage, text = stageName(plan.Kind), plan.Explain()
		}
	}
	dst = bw.String(dst, "explainVersion", "1")
	at, dst := bw.BeginObject(dst, "queryPlanner")
	dst = bw.String(dst, "namespace", r.db+"."+target.Str())
	dst = bw.Value(dst, "parsedQuery", q)
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
