package mongoapi

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/changes"
	"github.com/orrerydb/orrery/mongoapi/collation"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// A view is a document of the collection system.views of its database: its name, the collection or view that it is on,
// and a pipeline. A command that reads a view becomes an aggregation of the collection below, whose pipeline begins
// with those of the views.
//
// Example: the view v on c has the pipeline [{$match: {a: 1}}]. {find: "v", filter: {b: 2}} runs {aggregate: "c",
// pipeline: [{$match: {a: 1}}, {$match: {b: 2}}]}.

// maxViewDepth is how many views may be on each other.
const maxViewDepth = 20

// view is a view with those below it.
type view struct {
	name, on  string        // on is the collection at the end
	stages    []value.Value // of all pipelines, that of the lowest view first
	collation value.Value   // of the view; Undefined: none
}

// notOnView is the error of a command that needs a collection.
func notOnView(db, name string) error {
	return merr.New(merr.NotSupportedOnView, "Namespace %s.%s is a view, not a collection", db, name)
}

// viewDoc returns the document of a view, Undefined if there is none.
func (r *request) viewDoc(db, name string) (value.Value, error) {
	c, err := r.s.eng.Within(r.ctx).Container(db, changes.Views)
	if status.Is(err, status.NotFound) || name == changes.Views {
		return value.Undef(), nil
	}
	if err != nil {
		return value.Undef(), err
	}
	id := value.StringOf(db + "." + name)
	it, err := c.Read(r.ctx, core.PartitionKey{id}, id)
	if status.Is(err, status.NotFound) {
		return value.Undef(), nil
	}
	if err != nil {
		return value.Undef(), err
	}
	return value.ObjectOf(it.Doc), nil
}

// view returns a view, nil if the name isn't that of one.
func (r *request) view(db, name string) (*view, error) {
	d, err := r.viewDoc(db, name)
	if err == nil && r.hasConfig(db, name) {
		return &view{name: name, on: noCollection, stages: []value.Value{r.configStage()}}, nil
	}
	if !d.IsDefined() || err != nil {
		return nil, err
	}
	v := &view{name: name, collation: d.Get("collation")}
	for depth := 1; d.IsDefined(); depth++ {
		if depth > maxViewDepth {
			return nil, merr.New(merr.ViewDepthLimitExceeded, "View depth too deep or view cycle detected; maximum "+
				"depth is %d", maxViewDepth)
		}
		v.on = d.Get("viewOn").Str()
		v.stages = append(value.Elements(d.Get("pipeline")), v.stages...)
		if d, err = r.viewDoc(db, v.on); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// openRead returns a collection or a view; neither if there is none of this name.
func (r *request) openRead(db, name string) (*coll, *view, error) {
	k, err := r.lookUp(db, name)
	if k != nil || err != nil {
		return k, nil, err
	}
	v, err := r.view(db, name)
	return nil, v, err
}

// aggregation returns the aggregation of the collection below that a reading command on a view is.
func (r *request) aggregation(v *view, command string, cmd value.Value) (value.Value, error) {
	stages, err := v.with(command, cmd)
	if err != nil {
		return cmd, err
	}
	at, b := bson.Begin(nil)
	if v.on == noCollection {
		b = bson.AppendInt32(b, "aggregate", 1)
	} else {
		b = bson.AppendString(b, "aggregate", v.on)
	}
	b = value.AppendElement(b, "pipeline", value.MakeArray(stages))
	ca, b := bson.BeginObject(b, "cursor")
	if n := args.Given(cmd, "batchSize"); n.IsDefined() {
		b = value.AppendElement(b, "batchSize", n)
	}
	if n := args.Given(cmd, "cursor").Get("batchSize"); n.IsDefined() {
		b = value.AppendElement(b, "batchSize", n)
	}
	b = bson.End(b, ca)
	asked := args.Given(cmd, "collation")
	if asked.Len() > 0 {
		if err := v.sameCollation(r.db, asked); err != nil {
			return cmd, err
		}
	}
	// A view without a collation has the order of bytes, also on a collection with one.
	if v.collation.IsDefined() {
		b = value.AppendElement(b, "collation", v.collation)
	} else {
		b = value.AppendElement(b, "collation", single("locale", value.StringOf("simple")))
	}
	first := true
	for it := cmd.Iter(); it.Next(); first = false {
		_, generic := genericArgs[string(it.Key())]
		if !first && (generic || keptOnView[string(it.Key())]) {
			b = append(b, it.Element()...)
		}
	}
	return value.ObjectOf(bson.End(b, at)), nil
}

// with returns the view's stages, and after them those that a reading command is.
func (v *view) with(command string, cmd value.Value) ([]value.Value, error) {
	stages := slices.Clone(v.stages)
	stage := func(name string, arg value.Value) {
		if arg.IsDefined() && (arg.Kind() != value.Object || arg.Len() > 0) {
			stages = append(stages, single(name, arg))
		}
	}
	if command == "aggregate" {
		return append(stages, value.Elements(cmd.Get("pipeline"))...), nil
	}
	condition := "query"
	if command == "find" {
		condition = "filter"
	}
	stage("$match", args.Given(cmd, condition))
	stage("$sort", args.Given(cmd, "sort"))
	skip, limit, err := window(cmd)
	if err != nil {
		return nil, err
	}
	if skip > 0 {
		stage("$skip", value.IntOf(skip))
	}
	if limit > 0 {
		stage("$limit", value.IntOf(limit))
	}
	stage("$project", args.Given(cmd, "projection"))
	if command == "count" {
		stage("$count", value.StringOf("n"))
	}
	return stages, nil
}

// keptOnView are arguments that the aggregation has too, besides the generic ones.
var keptOnView = map[string]bool{"let": true, "allowDiskUse": true, "lsid": true, "txnNumber": true, "autocommit": true,
	"startTransaction": true, "maxTimeMS": true, "readConcern": true, "$clusterTime": true, "$db": true}

// window returns skip and limit of a command; a negative limit counts as a positive one.
func window(cmd value.Value) (skip, limit int64, err error) {
	for _, x := range []struct {
		name string
		to   *int64
	}{{"skip", &skip}, {"limit", &limit}} {
		v := args.Given(cmd, x.name)
		if !v.IsDefined() {
			continue
		}
		if n, ok := num.ToInt64(v, true); ok && n < 0 && x.name == "limit" {
			*x.to = -n
		} else if *x.to, err = count64([]byte(x.name), v); err != nil {
			return 0, 0, err
		}
	}
	return skip, limit, nil
}

// sameCollation refuses a collation that isn't the view's own.
func (v *view) sameCollation(db string, asked value.Value) error {
	a, err := collation.Parse(asked)
	if err != nil {
		return err
	}
	b, err := collation.Parse(v.collation)
	if err == nil && value.CompareBSON(collation.Doc(a), collation.Doc(b)) != 0 {
		err = merr.New(merr.OptionNotSupportedOnView, "Cannot override the collation of the view %s.%s", db, v.name)
	}
	return err
}

// single returns {name: v}.
func single(name string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(value.AppendElement(b, name, v), at))
}

// readView makes the request an aggregation, and opens its cursor, which is named after the view.
func (r *request) readView(v *view, command string) (*cursor, *agg.Pipeline, error) {
	cmd, err := r.aggregation(v, command, r.body)
	if err != nil {
		return nil, nil, err
	}
	r.body, r.arg = cmd, cmd.Get("aggregate")
	c, p, err := r.aggregateCursor(v.on)
	if err != nil {
		return nil, nil, err
	}
	c.ns = r.db + "." + v.name
	return c, p, nil
}

// findOnView is find on a view.
func (r *request) findOnView(dst []byte, v *view, a findArgs) ([]byte, error) {
	n := firstBatch
	if a.batch >= 0 {
		n = int(min(a.batch, 1<<31-1))
	}
	if a.single && a.batch < 0 {
		n = -1
	}
	c, _, err := r.readView(v, "find")
	if err != nil {
		return dst, err
	}
	return r.first(dst, c, n, a.single)
}

// countOnView is count on a view.
func (r *request) countOnView(dst []byte, v *view) ([]byte, error) {
	c, _, err := r.readView(v, "count")
	if err != nil {
		return dst, err
	}
	defer c.src.Close()
	d, ok, err := c.src.Next()
	if err != nil {
		return dst, failed(err)
	}
	n := value.Int32Of(0)
	if ok {
		n = d.Get("n")
	}
	return value.AppendElement(dst, "n", n), nil
}

// findView implements agg.Host's Find for a view: the stages of the view, then what the stage wants.
func (h *host) findView(v *view, q agg.Lead, e *expr.Env) (agg.Iter, error) {
	p, err := agg.Compile(value.MakeArray(v.stages), agg.Options{Run: e.Run, Sub: true, Coll: v.on,
		Places: h.r.placeIndex})
	if err != nil {
		return nil, err
	}
	x := &agg.Exec{Env: e, Host: h}
	src := agg.Iter(agg.NewSlice(nil))
	if p.ReadsCollection() {
		if src, err = h.Find(v.on, p.Lead, e); err != nil {
			return nil, err
		}
	}
	if src, err = p.Run(x, src); err != nil {
		return nil, err
	}
	return (&agg.Pipeline{Lead: q}).RunAll(x, src)
}

// checkView checks the definition of a view, whose name is r.arg.
func (r *request) checkView(name, on string, pipeline, collation value.Value) error {
	if on == "" {
		return merr.New(merr.BadValue, "'viewOn' cannot be empty")
	}
	if err := validCollection(r.db, on); err != nil {
		return err
	}
	for i, s := range value.Elements(pipeline) {
		it := s.Iter()
		if s.Kind() != value.Object || !it.Next() {
			continue
		}
		switch op := string(it.Key()); op {
		case "$out", "$merge", "$changeStream":
			return merr.New(merr.OptionNotSupportedOnView, "The aggregation stage %s in location %d of the pipeline "+
				"cannot be used in a view definition", op, i)
		}
	}
	if pipeline.IsDefined() {
		run := expr.NewRun(r.ctx, r.s.eng.Budget())
		if _, err := agg.Compile(pipeline, agg.Options{Run: run, Coll: on, Places: r.placeIndex}); err != nil {
			return err
		}
	}
	path := []string{r.db + "." + name}
	for below := on; ; {
		path = append(path, r.db+"."+below)
		if below == name {
			return merr.New(merr.GraphContainsCycle, "View cycle detected: %s", strings.Join(path, " => "))
		}
		d, err := r.viewDoc(r.db, below)
		if err != nil {
			return err
		}
		if !d.IsDefined() {
			return nil
		}
		if len(path) > maxViewDepth+1 {
			return merr.New(merr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", maxViewDepth)
		}
		if value.CompareBSON(d.Get("collation"), collation) != 0 {
			return merr.New(merr.OptionNotSupportedOnView, "View %s.%s has a collation that does not match the "+
				"collation of view %s.%s", r.db, name, r.db, below)
		}
		below = d.Get("viewOn").Str()
	}
}

// createView makes the view r.arg. opts are the options of create besides.
func (r *request) createView(name string) error {
	on, pipeline := r.body.Get("viewOn").Str(), args.Given(r.body, "pipeline")
	for _, other := range []string{"capped", "timeseries", "clusteredIndex", "validator",
		"changeStreamPreAndPostImages", "expireAfterSeconds", "storageEngine"} {
		if v := args.Given(r.body, other); v.IsDefined() && !(v.Kind() == value.Bool && !v.Bool()) {
			return merr.New(merr.InvalidOptions, "the 'viewOn' option cannot be used with the option '%s'", other)
		}
	}
	if err := validCollection(r.db, name); err != nil {
		return err
	}
	c, err := collation.Parse(args.Given(r.body, "collation"))
	if err != nil {
		return err
	}
	listed := collation.Doc(c)
	if err := r.checkView(name, on, pipeline, listed); err != nil {
		return err
	}
	if k, err := r.lookUp(r.db, name); k != nil || err != nil {
		if err == nil {
			err = merr.New(merr.NamespaceExists, "A collection already exists. NS: %s.%s", r.db, name)
		}
		return err
	}
	old, err := r.viewDoc(r.db, name)
	if err != nil {
		return err
	}
	d := viewDocument(r.db, name, on, pipeline, listed)
	if old.IsDefined() {
		if value.CompareBSON(old, d) == 0 {
			return nil
		}
		return merr.New(merr.NamespaceExists, "A view already exists. NS: %s.%s", r.db, name)
	}
	k, err := r.ensureViews()
	if err != nil {
		return err
	}
	res, err := k.Write(r.ctx, core.Write{Kind: core.Create, Doc: d.Bytes()})
	if status.Is(err, status.Conflict) {
		return merr.New(merr.NamespaceExists, "A view already exists. NS: %s.%s", r.db, name)
	}
	if err == nil {
		r.charge += res.Charge
	}
	return err
}

func viewDocument(db, name, on string, pipeline, collation value.Value) value.Value {
	if !pipeline.IsDefined() {
		pipeline = value.MakeArray(nil)
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "_id", db+"."+name)
	b = bson.AppendString(b, "viewOn", on)
	b = value.AppendElement(b, "pipeline", pipeline)
	return value.ObjectOf(bson.End(value.AppendElement(b, "collation", collation), at))
}

// ensureViews returns the collection of the database's views. It creates it if necessary.
func (r *request) ensureViews() (*coll, error) {
	for {
		k, err := r.lookUp(r.db, changes.Views)
		if k != nil || err != nil {
			return k, err
		}
		if k, err = r.makeCollection(r.db, changes.Views); k != nil || err != nil {
			return k, err
		}
	}
}

// changeView is collMod on a view.
func (r *request) changeView(name string) error {
	on, pipeline := args.Given(r.body, "viewOn"), args.Given(r.body, "pipeline")
	for it := r.body.Iter(); it.Next(); {
		switch key := string(it.Key()); key {
		case "index", "validator", "validationLevel", "validationAction":
			return merr.New(merr.InvalidOptions, "option not supported on a view: %s", key)
		}
	}
	d, err := r.viewDoc(r.db, name)
	if err != nil || !on.IsDefined() && !pipeline.IsDefined() {
		return err
	}
	if !on.IsDefined() {
		on = d.Get("viewOn")
	}
	if !pipeline.IsDefined() {
		pipeline = d.Get("pipeline")
	}
	if err := r.checkView(name, on.Str(), pipeline, d.Get("collation")); err != nil {
		return err
	}
	k, err := r.ensureViews()
	if err != nil {
		return err
	}
	now := viewDocument(r.db, name, on.Str(), pipeline, d.Get("collation"))
	_, err = k.Write(r.ctx, core.Write{Kind: core.Upsert, Doc: now.Bytes()})
	return err
}

// dropView removes a view. found is false if there is none.
func (r *request) dropView(name string) (found bool, err error) {
	d, err := r.viewDoc(r.db, name)
	if !d.IsDefined() || err != nil {
		return false, err
	}
	k, err := r.lookUp(r.db, changes.Views)
	if k == nil || err != nil {
		return false, err
	}
	id := d.Get("_id")
	_, err = k.Write(r.ctx, core.Write{Kind: core.Delete, PK: core.PartitionKey{id}, ID: id})
	if status.Is(err, status.NotFound) {
		return false, nil
	}
	return true, err
}

// listedViews returns the database's views as listCollections shows them.
func (r *request) listedViews(nameOnly bool) (out []value.Value, err error) {
	k, err := r.lookUp(r.db, changes.Views)
	if k == nil || err != nil {
		return nil, err
	}
	all, err := filter.Compile(value.Undef(), r.filterOptions(nil))
	if err != nil {
		return nil, err
	}
	src := newSource(k, all, nil, exec.AnyOrder, 0, 0, r.exprEnv())
	defer src.Close()
	for {
		d, ok, err := src.Next()
		if !ok || err != nil {
			slices.SortFunc(out, func(a, b value.Value) int { return value.CompareBSON(a.Get("name"), b.Get("name")) })
			return out, err
		}
		_, name, ok := strings.Cut(d.Get("_id").Str(), ".")
		if !ok {
			continue
		}
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "name", name)
		b = bson.AppendString(b, "type", "view")
		if !nameOnly {
			oa, ob := bson.BeginObject(b, "options")
			for _, o := range []string{"viewOn", "pipeline", "collation"} {
				ob = value.AppendElement(ob, o, d.Get(o))
			}
			b = bson.End(ob, oa)
			ia, ib := bson.BeginObject(b, "info")
			b = bson.End(bson.AppendBool(ib, "readOnly", true), ia)
		}
		out = append(out, value.ObjectOf(bson.End(b, at)))
	}
}
