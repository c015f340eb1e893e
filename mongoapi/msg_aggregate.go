package mongoapi

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
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
	if flag(r.body, "explain", false) {
		return r.explain(dst, r.body, false)
	}
	opts := given(r.body, "cursor")
	if !opts.IsDefined() {
		return dst, merr.New(merr.FailedToParse, "The 'cursor' option is required, except for aggregate with the "+
			"explain argument")
	}
	n := firstBatch
	if b := opts.Get("batchSize"); b.IsDefined() {
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
	p, err := r.pipeline(r.body)
	if err != nil {
		return nil, nil, err
	}
	if r.arg.IsNumber() && p.ReadsCollection() {
		return nil, nil, merr.New(merr.InvalidNamespace, "{aggregate: 1} is not valid for this pipeline: it needs a "+
			"collection")
	}
	k, err := r.open(r.db, name)
	if err != nil {
		return nil, nil, err
	}
	if err := checkHint(k, r.body); err != nil {
		return nil, nil, err
	}
	h := &host{r: r, db: r.db, coll: name, k: k, natural: naturalOrder(exec.AnyOrder, given(r.body, "hint"))}
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

func (r *request) pipeline(body value.Value) (*agg.Pipeline, error) {
	if err := checkCollation(given(body, "collation")); err != nil {
		return nil, err
	}
	scope, err := r.scope(body)
	if err != nil {
		return nil, err
	}
	return agg.Compile(body.Get("pipeline"), agg.Options{Scope: scope, Run: r.exprEnv().Run})
}

// runPipeline opens a pipeline on the host's collection, which may not exist.
func (r *request) runPipeline(h *host, p *agg.Pipeline) (agg.Iter, error) {
	x, k := &agg.Exec{Env: r.exprEnv(), Host: h}, h.k
	if !p.ReadsCollection() {
		return p.Run(x, agg.NewSlice(nil))
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
	shown := exec.Creation
	switch {
	case k == h.k && h.natural != exec.AnyOrder:
		shown = h.natural
	case q.Unseen:
		shown = exec.AnyOrder
	}
	return h.add(newSource(k, q.Filter, q.Sort, shown, q.Skip, q.Limit, e)), nil
}

// Find implements agg.Host.
func (h *host) Find(name string, q agg.Lead, e *expr.Env) (agg.Iter, error) {
	k, err := h.r.open(h.db, name)
	if err != nil {
		return nil, err
	}
	return h.find(k, q, e)
}

// CollStats implements agg.Host.
func (h *host) CollStats(spec value.Value) ([]value.Value, error) {
	if h.k == nil {
		return nil, merr.New(merr.NamespaceNotFound, "Unable to retrieve storageStats in $collStats stage :: caused "+
			"by :: Collection [%s.%s] not found.", h.db, h.coll)
	}
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "ns", h.k.namespace())
	b = bson.AppendString(b, "host", h.r.c.nc.LocalAddr().String())
	b = bson.AppendDate(b, "localTime", h.r.s.clk.Now().UnixMilli())
	if s := spec.Get("storageStats"); s.IsDefined() {
		sa, sb := bson.BeginObject(b, "storageStats")
		sb, err := h.k.appendStats(h.r.ctx, sb, s.Get("scale"))
		if err != nil {
			return nil, err
		}
		b = bson.End(sb, sa)
	}
	if spec.Get("count").IsDefined() {
		n, err := h.k.Count(h.r.ctx)
		if err == nil {
			err = h.k.Settle()
		}
		if err != nil {
			return nil, err
		}
		b = value.AppendElement(b, "count", value.IntOf(n))
	}
	return []value.Value{value.ObjectOf(bson.End(b, at))}, nil
}

// IndexStats implements agg.Host.
func (h *host) IndexStats() ([]value.Value, error) { return nil, merr.NotSupported("$indexStats") }

// CurrentOp implements agg.Host.
func (h *host) CurrentOp() ([]value.Value, error) {
	if h.db != "admin" || h.coll != noCollection {
		return nil, merr.New(merr.InvalidNamespace, "$currentOp must be run against the 'admin' database with "+
			"{aggregate: 1}")
	}
	return h.r.s.operations(), nil
}

// Write implements agg.Host.
func (h *host) Write(w agg.WriteSpec, docs agg.Iter) error {
	db := h.db
	if w.DB != "" {
		db = w.DB
	}
	if err := validDB(db); err != nil {
		return err
	}
	if err := validCollection(db, w.Coll); err != nil {
		return err
	}
	if w.Replace {
		return h.out(db, w.Coll, docs)
	}
	d, ok, err := docs.Next() // reads them all
	if err != nil {
		return err
	}
	k, _, err := h.r.ensure(db, w.Coll)
	if err != nil {
		return err
	}
	for ; ok; d, ok, err = docs.Next() {
		if err := h.r.ctx.Err(); err != nil {
			return err
		}
		if err := h.merge(k, d, w); err != nil {
			return err
		}
	}
	return err
}

// outBatch is the number of bytes of documents that $out writes at a time.
const outBatch = 256 << 10

// out replaces a collection: it writes the new documents to a collection with a temporary name, which then replaces the
// target in one commit.
func (h *host) out(db, name string, docs agg.Iter) (err error) {
	batch, mem := []value.Value(nil), h.r.s.eng.Budget().Open("result")
	defer mem.Close()
	more, err := nextBatch(docs, &batch, mem) // reads all documents
	if err != nil {
		return err
	}
	old, err := h.r.open(db, name)
	if err != nil {
		return err
	}
	if old != nil && !old.byID {
		return merr.New(merr.IllegalOperation, "namespace '%s.%s' is sharded so it can't be used for $out'", db, name)
	}
	temp := "tmp.agg_out." + h.r.s.clk.UUID().String()
	k, _, err := h.r.ensure(db, temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // the command's own context may have ended
			_ = h.r.s.eng.DropContainer(context.WithoutCancel(h.r.ctx), db, temp)
		}
	}()
	if old != nil && len(old.indexSpecs()) > 0 {
		if err := h.r.replaceIndexes(k, old.indexSpecs()); err != nil {
			return err
		}
	}
	for len(batch) > 0 {
		var w writeReply
		if err := h.r.insertMany(k, batch, true, &w); err != nil {
			return err
		}
		if w.errors > 0 {
			first := value.ArrayOf(bson.End(append([]byte{0, 0, 0, 0}, w.errs...), 0)).At(0)
			return merr.New(int32(first.Get("code").Int()), "%s", first.Get("errmsg").Str())
		}
		if batch = batch[:0]; more {
			if more, err = nextBatch(docs, &batch, mem); err != nil {
				return err
			}
		}
	}
	_, err = h.r.s.eng.RenameContainer(h.r.ctx, db, temp, name, true)
	return err
}

// nextBatch adds copies of the next documents to a batch. more is false behind the last one.
func nextBatch(docs agg.Iter, batch *[]value.Value, mem *budget.Account) (more bool, err error) {
	mem.Close()
	for size := 0; size < outBatch; {
		d, ok, err := docs.Next()
		if !ok || err != nil {
			return false, err
		}
		size += len(d.Bytes()) + 64
		mem.Take(int64(len(d.Bytes()) + 64))
		*batch = append(*batch, d.Clone())
	}
	return true, nil
}

func (h *host) merge(k *coll, d value.Value, w agg.WriteSpec) error {
	d, err := h.r.newDocument(k, d)
	if err != nil {
		return err
	}
	_, err = k.Write(h.r.ctx, core.Write{
		Kind: core.Update, Partial: w.WhenMatched == "merge", Doc: d.Bytes(),
		Update: func(old *core.Item) (core.Change, error) {
			if old == nil {
				switch w.WhenNotMatched {
				case "insert":
					return core.Change{Doc: d.Bytes()}, nil
				case "discard":
					return core.Change{Keep: true}, nil
				}
				return core.Change{}, merr.New(13113, "$merge could not find a matching document in the target "+
					"collection for at least one document in the source collection")
			}
			switch w.WhenMatched {
			case "replace":
				return core.Change{Doc: d.Bytes()}, nil
			case "keepExisting":
				return core.Change{Keep: true}, nil
			case "fail":
				return core.Change{}, k.duplicateKey(d.Get("_id"))
			}
			m := expr.NewMerger()
			m.Add(value.ObjectOf(old.Doc))
			m.Add(d)
			return core.Change{Doc: m.Value().Bytes()}, nil
		}})
	return err
}
