package mongoapi

import (
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// noCollection is the collection's name in the namespace of {aggregate: 1}, a pipeline that reads no collection.
const noCollection = "$cmd.aggregate"

func aggregate(r *request, dst []byte) ([]byte, error) {
	name := noCollection
	if !r.arg.IsNumber() {
		var err error
		if name, err = r.collection(); err != nil {
			return dst, err
		}
	}
	if !args.Given(r.body, "pipeline").IsDefined() {
		return dst, missingField("aggregate.pipeline")
	}
	if args.Flag(r.body, "explain", false) {
		return r.explain(dst, r.body, false)
	}
	opts := args.Given(r.body, "cursor")
	if !opts.IsDefined() {
		return dst, merr.New(merr.FailedToParse, "The 'cursor' option is required, except for aggregate with the "+
			"explain argument")
	}
	if err := cursorOptions.Check("aggregate.cursor", opts); err != nil {
		return dst, err
	}
	n := firstBatch
	if b := args.Given(opts, "batchSize"); b.IsDefined() {
		size, ok := num.ToInt64(b, false)
		if !ok || size < 0 {
			return dst, merr.New(merr.BadValue, "cursor.batchSize must be a non-negative number")
		}
		n = int(min(size, 1<<31-1))
	}
	if _, ok := isStream(r.body); ok {
		c, err := r.streamCursor(name)
		if err != nil {
			return dst, err
		}
		dst, err = r.first(dst, c, n, false)
		return dst, failed(err)
	}
	c, p, err := r.aggregateCursor(name)
	if err != nil {
		return dst, err
	}
	if p.Writes {
		defer c.src.Close()
		if r.concern.Level == "linearizable" {
			stages := r.body.Get("pipeline")
			return dst, r.notWithConcern(stageName(stages.At(stages.Len()-1)) +
				" cannot be used with a 'linearizable' read concern level")
		}
		if _, _, err := c.src.Next(); err != nil { // runs it
			return dst, failed(err)
		}
		c.src = agg.NewSlice(nil)
	}
	dst, err = r.first(dst, c, n, false)
	return dst, failed(err)
}

// aggregateCursor makes the cursor of a pipeline. It may outlive the request's bytes.
func (r *request) aggregateCursor(name string) (*cursor, *agg.Pipeline, error) {
	if err := r.own(); err != nil {
		return nil, nil, err
	}
	k, v, err := r.openRead(r.db, name)
	if err != nil {
		return nil, nil, err
	}
	first := firstStage(r.body.Get("pipeline"))
	if v != nil && first != "$collStats" && first != "$listCatalog" { // which are about the view itself
		return r.readView(v, "aggregate")
	}
	p, err := r.pipeline(k, r.body, name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case r.arg.IsNumber() && first == "":
		return nil, nil, merr.New(merr.InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	case r.arg.IsNumber() && p.ReadsCollection():
		return nil, nil, merr.New(merr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is "+
			"required.", first)
	case !r.arg.IsNumber() && first == "$documents":
		return nil, nil, merr.New(merr.InvalidNamespace, "'$documents' can only be run with {aggregate: 1}")
	}
	if err := checkHint(k, args.Given(r.body, "hint")); err != nil {
		return nil, nil, err
	}
	if o := p.Lead.Sort; o != nil {
		keys := slices.Clone(o).With(r.exprEnv().Run.Collation())
		r.exprEnv().SortKey = func(doc value.Value) value.Value { return value.MakeArray(keys.Keys(doc)) }
	}
	h := &host{r: r, db: r.db, coll: name, k: k, view: v != nil,
		natural: naturalOrder(exec.AnyOrder, args.Given(r.body, "hint"))}
	c := &cursor{ns: r.db + "." + name, env: r.exprEnv(), run: r.exprEnv().Run, live: h.reads, cmd: r.body.Bytes()}
	if c.src, err = r.runPipeline(h, p); err != nil {
		return nil, nil, failed(err)
	}
	if p.PerDocument && len(h.open) > 0 {
		c.lead = h.open[0]
	}
	return c, p, nil
}

// failed adds the source of an error in a running pipeline to its text, like the server.
func failed(err error) error {
	e, ok := err.(*merr.Error)
	if !ok {
		return err
	}
	c := *e
	c.Msg = "PlanExecutor error during aggregation :: caused by :: " + e.Msg
	return &c
}

// pipeline compiles the pipeline of a command on a collection, whose k is nil if it doesn't exist.
func (r *request) pipeline(k *coll, body value.Value, name string) (*agg.Pipeline, error) {
	if err := r.checkStages(body.Get("pipeline")); err != nil {
		return nil, err
	}
	if err := r.collate(k, args.Given(body, "collation")); err != nil {
		return nil, err
	}
	scope, err := r.scope(body)
	if err != nil {
		return nil, err
	}
	return agg.Compile(body.Get("pipeline"), agg.Options{Scope: scope, Run: r.exprEnv().Run, Coll: name,
		Places: r.placeIndex, Vectors: r.vectorIndex})
}

// cursorOptions are the options in the argument cursor.
var cursorOptions = args.Set{"batchSize": args.Number}

// firstStage returns the name of a pipeline's first stage, "" without one.
func firstStage(p value.Value) string {
	it := p.At(0).Iter()
	if p.Len() == 0 || !it.Next() {
		return ""
	}
	return string(it.Key())
}

// runPipeline opens a pipeline on the host's collection, which may not exist.
func (r *request) runPipeline(h *host, p *agg.Pipeline) (agg.Iter, error) {
	x, k := &agg.Exec{Env: r.exprEnv(), Host: h}, h.k
	if !p.ReadsCollection() {
		return p.Run(x, agg.NewSlice(nil))
	}
	if r.hasOplog(h.db, h.coll) {
		src, err := r.oplogEntries()
		if err != nil {
			return nil, err
		}
		return p.RunAll(x, src)
	}
	if k != nil && p.CountOnly != nil {
		n, err := r.count(k, p.Lead.Filter, p.Lead.Skip, p.Lead.Limit)
		if err != nil || n == 0 {
			return agg.NewSlice(nil), err
		}
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "_id", p.CountOnly.ID)
		b = value.AppendElement(b, p.CountOnly.Field, value.IntOf(n))
		return agg.NewSlice([]value.Value{value.ObjectOf(bson.End(b, at))}), nil
	}
	src, err := h.find(k, p.Lead, x.Env)
	if err != nil {
		return nil, err
	}
	return p.Run(x, src)
}

// host gives pipelines access to the server's collections.
type host struct {
	r        *request
	db, coll string
	k        *coll
	view     bool       // coll is a view, and k is nil
	natural  exec.Shown // requested by the hint; AnyOrder: none
	open     []*source
}

// reads returns the open sources.
func (h *host) reads() []*source { return h.open }

// add records a source and removes those that have ended.
func (h *host) add(s *source) *source {
	h.open = append(slices.DeleteFunc(h.open, func(o *source) bool { return o.done }), s)
	return s
}

var _ agg.Host = (*host)(nil)

func (h *host) find(k *coll, q agg.Lead, e *expr.Env) (agg.Iter, error) {
	if k == nil {
		return agg.NewSlice(nil), nil
	}
	natural := exec.AnyOrder
	if k == h.k {
		natural = h.natural
	}
	src := newSource(k, q.Filter, q.Sort, leadOrder(q, natural), q.Skip, q.Limit, e)
	k.coverLead(src.q, q)
	return h.add(src), nil
}

// leadOrder returns the order without a sort in which the documents of a pipeline are read.
func leadOrder(q agg.Lead, natural exec.Shown) exec.Shown {
	switch {
	case natural != exec.AnyOrder:
		return natural
	case q.Unseen:
		return exec.AnyOrder
	}
	return exec.Creation
}

// coverLead tells the core which paths a pipeline reads.
func (k *coll) coverLead(to *exec.Query, q agg.Lead) {
	if q.Needs != nil {
		to.Needs, to.Whole = q.Needs, k.inOneIndex(q.Needs)
	}
}

// Find implements agg.Host.
func (h *host) Find(name string, q agg.Lead, e *expr.Env) (agg.Iter, error) {
	k, v, err := h.r.openRead(h.db, name)
	if err != nil {
		return nil, err
	}
	if v != nil {
		return h.findView(v, q, e)
	}
	return h.find(k, q, e)
}
