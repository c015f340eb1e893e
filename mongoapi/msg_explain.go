package mongoapi

import (
	"encoding/json"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/collation"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/stages"
)

func explain(r *request, dst []byte) ([]byte, error) {
	if r.arg.Kind() != value.Object {
		return dst, merr.New(merr.TypeMismatch, "BSON field 'explain.explain' is the wrong type '%s', expected type "+
			"'object'", expr.TypeName(r.arg))
	}
	verbosity := "allPlansExecution"
	if v := args.Given(r.body, "verbosity"); v.IsDefined() {
		verbosity = v.Str()
	}
	switch verbosity {
	case "queryPlanner", "executionStats", "allPlansExecution":
	default:
		return dst, merr.New(merr.BadValue,
			"Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", verbosity)
	}
	// The command's arguments are checked like by the command itself.
	inner := request{s: r.s, c: r.c, txn: -1, body: r.arg, db: r.db, legacy: true}
	if _, _, err := inner.readArguments(); err != nil {
		return dst, err
	}
	for _, name := range []string{"updates", "deletes"} {
		if err := checkOne(r.arg.Get(name)); err != nil {
			return dst, err
		}
	}
	return r.explain(dst, r.arg, verbosity != "queryPlanner")
}

// explained is the part of a command that finds documents.
type explained struct {
	coll  string
	spec  value.Value // the command, or its first statement
	query value.Value
	f     *filter.Filter
	o     order.Order
	limit int64
	shown exec.Shown
	cover func(q *exec.Query)
	above string // the stage on top of those that find documents, "" for none
	near  *agg.VectorField
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
	k, v, err := r.openRead(r.db, x.coll)
	if err != nil {
		return x, err
	}
	if v != nil {
		switch name {
		case "find", "aggregate", "count", "distinct":
		default:
			return x, notOnView(r.db, x.coll)
		}
		if cmd, err = r.aggregation(v, name, cmd); err != nil {
			return x, err
		}
		return r.explained(cmd)
	}
	scope, err := r.scope(cmd)
	if err != nil {
		return x, err
	}
	x.query = args.Given(cmd, "query")
	switch name {
	case "find":
		x.query = args.Given(cmd, "filter")
		x.shown = naturalOrder(exec.Creation, args.Given(cmd, "sort"), args.Given(cmd, "hint"))
		x.limit = rowsOf(cmd)
		x.o, err = order.Compile(cmd.Get("sort"))
	case "count":
		x.above = "COUNT"
		x.cover = func(q *exec.Query) { coverCount(q, x.f) }
	case "distinct":
		x.cover = func(q *exec.Query) { coverDistinct(q, x.f, cmd.Get("key").Str()) }
	case "findAndModify", "findandmodify":
		if x.above = "UPDATE"; expr.Truthy(cmd.Get("remove")) {
			x.above = "DELETE"
		}
		x.o, err = order.Compile(cmd.Get("sort"))
	case "update":
		x.spec, x.above = r.firstOf(cmd, "updates"), "UPDATE"
		x.query = x.spec.Get("q")
	case "delete":
		x.spec, x.above = r.firstOf(cmd, "deletes"), "DELETE"
		x.query = x.spec.Get("q")
	case "aggregate":
		if err := r.explainedPipeline(x, k, cmd); err != nil {
			return x, err
		}
	}
	if x.f == nil && err == nil {
		err = r.collate(k, args.Given(x.spec, "collation"))
	}
	if x.f == nil && err == nil {
		x.f, err = filter.Compile(x.query, r.filterOptions(scope))
	}
	if x.query.Kind() != value.Object {
		x.query = value.ObjectOf(bson.Empty)
	}
	if name == "distinct" && k != nil && err == nil {
		if x.shown, err = r.distinctOrder(k, x.f, cmd.Get("key").Str()); x.shown != exec.AnyOrder {
			x.cover = nil
		}
	}
	return x, err
}

// explainedPipeline reads the stages of an aggregation that run as a query.
func (r *request) explainedPipeline(x *explained, k *coll, cmd value.Value) error {
	p, err := r.pipeline(k, cmd, x.coll)
	if err != nil {
		return err
	}
	if first := cmd.Get("pipeline").At(0).Get("$match"); first.Kind() == value.Object {
		x.query = first
	}
	x.f, x.o, x.limit = p.Lead.Filter, p.Lead.Sort, p.Lead.Limit
	if x.limit > 0 {
		x.limit += p.Lead.Skip
	}
	switch {
	case p.CountOnly != nil:
		x.cover = func(q *exec.Query) { coverCount(q, x.f) }
	case k != nil:
		x.shown = leadOrder(p.Lead, naturalOrder(exec.AnyOrder, args.Given(cmd, "hint")))
		x.cover = func(q *exec.Query) { k.coverLead(q, p.Lead) }
	}
	if x.near = p.Lead.Nearest; x.near != nil {
		x.above = vectorStage
	}
	return nil
}

// explainedName returns the collection of the command to be explained.
func (r *request) explainedName(command string, arg value.Value) (string, error) {
	if command == "aggregate" && arg.IsNumber() {
		return noCollection, nil
	}
	switch {
	case explains[command]:
	case command == "mapReduce", command == "mapreduce":
		return "", merr.NotSupported("explain of mapReduce")
	case commands[command].fn != nil:
		return "", merr.New(merr.IllegalOperation, "Cannot explain cmd: %s", command)
	default:
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

// checkOne refuses to explain a write command that has not exactly one statement.
func checkOne(statements value.Value) error {
	if statements.Kind() == value.Array && statements.Len() != 1 {
		return merr.New(merr.InvalidLength, "explained write batches must be of size 1")
	}
	return nil
}

// rowsOf is how many documents a find takes at most, with those that it skips; 0: all.
func rowsOf(cmd value.Value) int64 {
	limit, _ := num.ToInt64(args.Given(cmd, "limit"), true)
	skip, _ := num.ToInt64(args.Given(cmd, "skip"), true)
	if limit < 0 {
		limit = -limit
	}
	if limit == 0 || limit > 1<<31 || skip < 0 || skip > 1<<31 {
		return 0
	}
	return limit + skip
}

// explain tells how the store finds the documents of a command. With run it looks them up, and tells what that cost;
// it never changes any.
func (r *request) explain(dst []byte, cmd value.Value, run bool) ([]byte, error) {
	x, err := r.explained(cmd)
	if err != nil {
		return dst, err
	}
	p, err := r.planOf(x, run)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "explainVersion", "1")
	at, dst := bson.BeginObject(dst, "queryPlanner")
	dst = bson.AppendString(dst, "namespace", r.db+"."+x.coll)
	dst = bson.AppendBool(dst, "indexFilterSet", false)
	dst = value.AppendElement(dst, "parsedQuery", x.query)
	pa, dst := bson.BeginObject(dst, "winningPlan")
	p.shown.Filter = x.query
	dst = p.write(dst, false, x.above)
	dst = bson.End(bson.AppendString(dst, "orrery", p.text), pa)
	ra, dst := bson.BeginArray(dst, "rejectedPlans")
	for i := range p.lost() {
		la, d := bson.Begin(bson.AppendIndexHead(dst, bson.TypeDocument, i))
		dst = bson.End(p.shown.Write(d, p.tree.Lost[i].Node(), false), la)
	}
	dst = bson.End(dst, ra)
	if p.tree != nil {
		dst = value.AppendElement(dst, "orrery", p.steps)
	}
	dst = bson.End(dst, at)
	if run {
		sa, d := bson.BeginObject(dst, "executionStats")
		d = bson.AppendBool(d, "executionSuccess", true)
		d = bson.AppendInt64(d, "nReturned", p.returned(x.above))
		d = bson.AppendInt64(d, "executionTimeMillis", p.took.Milliseconds())
		d = bson.AppendInt64(d, "totalKeysExamined", int64(p.stats.Entries))
		d = bson.AppendInt64(d, "totalDocsExamined", int64(p.stats.Items))
		ea, d := bson.BeginObject(d, "executionStages")
		d = bson.End(p.write(d, true, x.above), ea)
		dst = bson.End(d, sa)
	}
	dst = value.AppendElement(dst, "command", cmd)
	sa, dst := bson.BeginObject(dst, "serverInfo")
	dst = bson.AppendString(dst, "host", r.c.nc.LocalAddr().String())
	return bson.End(bson.AppendString(dst, "version", r.s.release.version()), sa), nil
}

// planned is how the documents of a command are found.
type planned struct {
	text  string     // in a sentence
	tree  *plan.Tree // nil: there is no collection
	steps value.Value
	stats exec.Stats
	took  time.Duration

	shown stages.Plan
	near  *agg.VectorField // of a search for vectors
}

// vectorStage is the stage of a search for vectors. The store sorts for it.
const vectorStage = "VECTOR_SEARCH"

// write appends the stages to an object that is open, below the command's own.
func (p *planned) write(dst []byte, ran bool, above string) []byte {
	if p.tree == nil {
		return stages.Head(dst, "EOF", 0, ran)
	}
	if above == "" {
		return p.shown.Write(dst, p.tree.Root, ran)
	}
	dst = stages.Head(dst, above, p.returned(above), ran)
	if p.near != nil {
		dst = bson.AppendString(dst, "path", p.near.Path)
		dst = bson.AppendInt32(dst, "numDimensions", int32(p.near.Dims))
		dst = bson.AppendString(dst, "similarity", p.near.Metric.String())
	}
	if ran && above == "COUNT" {
		dst = bson.AppendInt64(dst, "nCounted", int64(p.stats.Rows))
	}
	return p.shown.Input(dst, p.tree.Root, ran)
}

// lost are the alternatives that lost.
func (p *planned) lost() []plan.Alternative {
	if p.tree == nil {
		return nil
	}
	return p.tree.Lost
}

// returned is how many documents a command gives: those that count or change give none.
func (p *planned) returned(above string) int64 {
	if above != "" && above != vectorStage {
		return 0
	}
	return int64(p.stats.Rows)
}

// planOf plans what is to be explained, and with run finds its documents.
func (r *request) planOf(x *explained, run bool) (*planned, error) {
	k, err := r.open(r.db, x.coll)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return &planned{text: "the collection does not exist"}, nil
	}
	if err := checkHint(k, args.Given(x.spec, "hint")); err != nil {
		return nil, err
	}
	if err = k.prepare(x.f, r.exprEnv()); err == nil {
		x.o, err = x.o.Bind(r.exprEnv())
	}
	if err != nil {
		return nil, err
	}
	q := k.query(x.f, x.o, x.limit, r.exprEnv())
	if q.Shown, q.Explain = x.shown, true; x.cover != nil {
		x.cover(q)
	}
	begun := r.s.clk.Now()
	rows, err := k.Query(r.ctx, q)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for n := 0; run && (q.Limit == 0 || n < q.Limit) && rows.Next(); n++ {
	}
	if rows.Err() != nil {
		return nil, rows.Err()
	}
	p := &planned{near: x.near, tree: rows.Stats().Tree, took: r.s.clk.Now().Sub(begun), shown: stages.Plan{
		Newest:   q.Shown == exec.Newest,
		Indexes:  append([]value.Value{indexes.OnID(), k.idIndex()}, k.indexSpecs()...),
		Descends: len(q.OrderBy) > 0 && q.OrderBy[0].Desc, Several: map[*access.Pred]bool{}, Listed: collation.Doc}}
	p.tree.EachLeaf(func(l *access.Pred) { p.shown.Several[l] = rows.MayHoldElements(l) })
	text, err := json.Marshal(rows.Explain(run))
	if err != nil {
		return nil, err
	}
	if p.steps, err = doc.ValueFromJSON(text); err != nil {
		return nil, err
	}
	p.stats = *rows.Stats()
	p.text = p.stats.Plan.Explain()
	return p, nil
}
