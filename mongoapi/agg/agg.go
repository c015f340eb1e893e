// Package agg compiles and runs aggregation pipelines.
//
// A stage is a function from an iterator to an iterator. Documents are pulled one at a time. Only a stage that must
// read all of its documents (a blocking stage) holds them in memory, within memoryLimit. The registry is the table
// stages (stages.go). A new stage needs an entry there, its implementation and lines in testdata.
//
// Example: [{$match: {a: 1}}, {$sort: {b: 1}}, {$group: {_id: "$c", n: {$sum: 1}}}] compiles to the Lead {match a = 1,
// sort by b}, which the store can answer with an index, and one stage, $group. $group reads all documents of the lead,
// then returns one document per group.
package agg

import (
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// memoryLimit is the memory in bytes that one blocking stage may hold.
const memoryLimit = 100 << 20

// maxStages is the largest number of stages in a pipeline.
const maxStages = 1000

// Iter returns documents one at a time. A document is valid until the next call.
type Iter interface {
	Next() (doc value.Value, ok bool, err error)
	Close()
}

// Host is what stages need from the server.
type Host interface {
	// Find reads a collection of the pipeline's database. A collection that doesn't exist is empty. The filter is
	// evaluated in e.
	Find(coll string, q Lead, e *expr.Env) (Iter, error)
	// CollStats and IndexStats return the documents of the stages with these names.
	CollStats(spec value.Value) ([]value.Value, error)
	IndexStats() ([]value.Value, error)
	// ListCatalog returns what the catalog has of the collection, or of all collections.
	ListCatalog() ([]value.Value, error)
	// SearchIndexes returns the search indexes of the collection, all or the one that spec names, as
	// $listSearchIndexes shows them.
	SearchIndexes(spec value.Value) ([]value.Value, error)
	// CurrentOp returns the running operations. It fails when the pipeline isn't run on the whole server.
	CurrentOp(o Ops) ([]value.Value, error)
	// Sessions returns the sessions of this server, for $listLocalSessions, or of all servers. It fails when the
	// pipeline isn't run where MongoDB wants it.
	Sessions(local bool, of SessionUsers) ([]value.Value, error)
	// Write writes documents into a collection, for $out and $merge.
	Write(spec WriteSpec, docs Iter) error
}

// WriteSpec is the target of $out or $merge and what to do with existing documents.
type WriteSpec struct {
	DB, Coll       string // DB "": the pipeline's
	Replace        bool   // $out: the collection's existing documents are removed
	On             []string
	WhenMatched    string // replace, merge, keepExisting, fail, pipeline
	Pipeline       *MergePipeline
	WhenNotMatched string // insert, discard, fail
}

// Exec is one execution of a pipeline.
type Exec struct {
	Env  *expr.Env
	Host Host
}

// Lead is the beginning of a pipeline that the store can execute: match, then sort, then skip, then limit.
type Lead struct {
	Filter *filter.Filter
	Sort   order.Order
	Skip   int64
	Limit  int64 // 0: none
	// Needs are the paths that the lead and the stages read; nil: the whole documents.
	Needs []access.Path
	// Nearest is set when the order is that of a search for vectors.
	Nearest *VectorField
	// Unseen is true when the order of the lead's documents doesn't change the result of the stages after it.
	Unseen bool
}

type stage func(x *Exec, src Iter) (Iter, error)

// Pipeline is a compiled pipeline.
type Pipeline struct {
	Lead Lead
	// source is set when the pipeline produces its own documents ($collStats, $documents) and doesn't read the
	// collection.
	source func(x *Exec) (Iter, error)
	stages []stage
	// Writes is set when the last stage is $out or $merge.
	Writes bool
	// PerDocument is set when each stage after the lead transforms one document after another, and keeps nothing when
	// it has returned all that became of one. Then the position in the lead is the position of the pipeline.
	PerDocument bool
	// CountOnly is set when the whole pipeline only counts: `{$match}? {$group: {_id: constant, n: {$sum: 1}}}`.
	CountOnly *CountOnly
}

// CountOnly describes the single document that a counting pipeline returns.
type CountOnly struct {
	ID    value.Value
	Field string
}

// Options tell the compiler where the pipeline is used.
type Options struct {
	Scope *expr.Scope
	// Run is the Run of the Env in which the pipeline will be executed; nil when nothing can end it.
	Run *expr.Run
	// Coll is the collection that the pipeline reads.
	Coll string
	// Places returns the path of the only index on places of a collection, for $geoNear. Nil: there is none.
	Places func(coll string) (path string, err error)
	// Vectors returns an index on vectors of a collection: that with a name, or without one, or if the name is that of
	// none, an index of the service's form on the path. Nil: there is none.
	Vectors func(coll, index, path string) (*VectorIndex, error)
	// Facet is true for a pipeline of $facet, which doesn't read a collection by itself.
	Facet bool
	// Sub is true for a pipeline inside a stage. Some stages are refused there.
	Sub bool
	// Union is true for a pipeline of $unionWith, which may begin with a search.
	Union bool
}

// Compile compiles a pipeline. p must not change while the result is in use.
func Compile(p value.Value, o Options) (*Pipeline, error) {
	if p.Kind() != value.Array {
		return nil, merr.New(merr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	specs := value.Elements(p)
	if len(specs) > maxStages {
		return nil, merr.New(7749501, "Pipeline length must be no longer than %d stages", maxStages)
	}
	if arranged := arrange(specs); len(specs) > 0 && &arranged[0] != &specs[0] {
		if out, err := compile(arranged, o); err == nil {
			return out, nil
		} // the error is that of the first wrong stage as it is written
	}
	return compile(specs, o)
}

// compile compiles stages in their order.
func compile(specs []value.Value, o Options) (*Pipeline, error) {
	out := &Pipeline{PerDocument: true}
	c := &compiler{o: o, out: out, leading: true}
	for i, s := range specs {
		c.rest = specs[i+1:]
		if err := c.stage(i, len(specs), s); err != nil {
			return nil, err
		}
	}
	if out.Lead.Filter == nil {
		var err error
		if out.Lead.Filter, err = filter.Compile(value.Undef(), filter.Options{}); err != nil {
			return nil, err
		}
	}
	out.Lead.Unseen = unseen(specs)
	if c.behind > 0 {
		it := specs[c.behind-1].Iter()
		it.Next()
		out.Lead.Needs = out.Lead.needs(string(it.Key()), it.Value())
	}
	return out, c.findCount(specs)
}

type compiler struct {
	o       Options
	out     *Pipeline
	leading bool          // all stages so far can be executed by the store
	behind  int           // the number of the first stage that can't, counted from 1
	rest    []value.Value // the stages behind the one that is compiled
	top     *topOf        // of the $sort before, if only $skip has come since
}

// topOf says which documents of a $sort are wanted.
type topOf struct{ skip, limit int64 } // limit 0: all

func (c *compiler) stage(i, n int, spec value.Value) error {
	if spec.Kind() != value.Object {
		return merr.New(merr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
	}
	it := spec.Iter()
	if !it.Next() {
		return merr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	name, arg := string(it.Key()), it.Value()
	if it.Next() {
		return merr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	def, ok := stages[name]
	if !ok {
		if Unsupported[name] {
			return merr.NotSupported("the aggregation stage " + name)
		}
		return merr.New(merr.UnrecognizedStage, "Unrecognized pipeline stage name: '%s'", name)
	}
	switch {
	case c.o.Facet && (def.first || def.last || name == "$facet"):
		return inFacet(name)
	case def.first && i != 0:
		return merr.New(40602, "%s is only valid as the first stage in a pipeline", name)
	case def.last && i != n-1:
		return merr.New(40601, "%s can only be the final stage in the pipeline", name)
	case (def.first || def.last) && c.o.Sub && name != "$documents" && name != "$geoNear" &&
		!(c.o.Union && name == "$vectorSearch"):
		return merr.New(51047, "%s is not allowed within a nested pipeline", name)
	}
	if c.leading && def.lead != nil {
		done, err := def.lead(c, arg)
		if done || err != nil {
			return err
		}
	}
	if c.leading {
		c.leading, c.behind = false, i+1
	}
	c.out.PerDocument = c.out.PerDocument && def.order == perDocument
	if name != "$skip" && name != "$limit" {
		c.top = nil
	}
	st, err := def.compile(c, arg)
	if err != nil {
		return err
	}
	if st != nil {
		c.out.stages = append(c.out.stages, st)
	}
	c.out.Writes = c.out.Writes || def.last
	return nil
}

// findCount recognizes the pipeline that drivers send for countDocuments.
func (c *compiler) findCount(specs []value.Value) error {
	n := len(specs)
	if n == 0 || n > 2 || len(c.out.stages) != 1 || n == 2 && !specs[0].Get("$match").IsDefined() {
		return nil
	}
	g := specs[n-1].Get("$group")
	if g.Kind() != value.Object || g.Len() != 2 {
		return nil
	}
	id := g.Get("_id")
	switch id.Kind() {
	case value.Null, value.Bool, value.Int32, value.Int64, value.Double:
	default:
		return nil
	}
	for it := g.Iter(); it.Next(); {
		if s := it.Value().Get("$sum"); string(it.Key()) != "_id" && s.Kind() == value.Int32 && s.Int() == 1 {
			c.out.CountOnly = &CountOnly{ID: id, Field: string(it.Key())}
		}
	}
	return nil
}

// ReadsCollection reports whether the pipeline reads the collection's documents.
func (p *Pipeline) ReadsCollection() bool { return p.source == nil }

// Run executes the pipeline. src returns the collection's documents with Lead already applied. It isn't used when the
// pipeline produces its own documents.
func (p *Pipeline) Run(x *Exec, src Iter) (Iter, error) {
	if p.source != nil {
		var err error
		if src, err = p.source(x); err != nil {
			return nil, err
		}
	}
	for _, s := range p.stages {
		next, err := s(x, src)
		if err != nil {
			src.Close()
			return nil, err
		}
		src = next
	}
	return src, nil
}

// Streams reports whether the pipeline has no stage after the lead, so that the store's documents are the answer.
func (p *Pipeline) Streams() bool { return len(p.stages) == 0 && p.source == nil }

// Slice is an Iter over documents in memory.
type Slice struct{ docs []value.Value }

// NewSlice returns an Iter over docs.
func NewSlice(docs []value.Value) *Slice { return &Slice{docs} }

// Next implements Iter.
func (s *Slice) Next() (value.Value, bool, error) {
	if len(s.docs) == 0 {
		return value.Undef(), false, nil
	}
	d := s.docs[0]
	s.docs = s.docs[1:]
	return d, true, nil
}

// Close implements Iter.
func (s *Slice) Close() { s.docs = nil }

// Empty reports whether all documents have been returned.
func (s *Slice) Empty() bool { return len(s.docs) == 0 }

// Len returns the number of documents that have not been returned yet.
func (s *Slice) Len() int { return len(s.docs) }

// Size returns the approximate size in bytes of the documents that have not been returned yet.
func (s *Slice) Size() int {
	n := 0
	for _, d := range s.docs {
		n += docSize(d)
	}
	return n
}

// mapIter applies fn to each document. An undefined result is left out.
type mapIter struct {
	src Iter
	run *expr.Run
	fn  func(doc value.Value) (value.Value, error)
}

func (m *mapIter) Next() (value.Value, bool, error) {
	for {
		d, ok, err := m.src.Next()
		if !ok || err != nil {
			return d, ok, err
		}
		if err = m.run.Step(); err != nil {
			return d, false, err
		}
		if d, err = m.fn(d); err != nil {
			return d, false, err
		}
		if d.IsDefined() {
			return d, true, nil
		}
	}
}

func (m *mapIter) Close() { m.src.Close() }

// lazyIter calls fill once, at the first Next, and then returns the documents of the result.
type lazyIter struct {
	src  Iter
	h    *hold
	fill func(src Iter, h *hold) (Iter, error)
	out  Iter
}

func lazyFrom(x *Exec, src Iter, what string, fill func(src Iter, h *hold) (Iter, error)) *lazyIter {
	return &lazyIter{src: src, h: x.hold(what), fill: fill}
}

// lazy is lazyFrom for documents that are held in memory.
func lazy(x *Exec, src Iter, what string, fill func(src Iter, h *hold) ([]value.Value, error)) *lazyIter {
	return lazyFrom(x, src, what, func(src Iter, h *hold) (Iter, error) {
		docs, err := fill(src, h)
		return NewSlice(docs), err
	})
}

// Next implements Iter.
func (l *lazyIter) Next() (value.Value, bool, error) {
	if l.out == nil {
		out, err := l.fill(l.src, l.h)
		l.src.Close()
		if err != nil {
			l.out = NewSlice(nil)
			l.h.release()
			return value.Undef(), false, err
		}
		l.h.filled()
		l.out = out
	}
	d, ok, err := l.out.Next()
	if !ok {
		l.out.Close()
		l.out = NewSlice(nil)
		l.h.release()
	}
	return d, ok, err
}

// Close implements Iter.
func (l *lazyIter) Close() {
	l.src.Close()
	if l.out != nil {
		l.out.Close()
	}
	l.out = NewSlice(nil)
	l.h.release()
}

// docSize returns the approximate memory in bytes of a document that is kept.
func docSize(d value.Value) int { return len(d.Bytes()) + 64 }

// all returns copies of all documents of src. It fails when they exceed the memory limit.
func all(src Iter, h *hold) ([]value.Value, error) {
	var out []value.Value
	for {
		d, ok, err := src.Next()
		if !ok || err != nil {
			return out, err
		}
		if err := h.add(docSize(d)); err != nil {
			return nil, err
		}
		out = append(out, d.Clone())
	}
}

// Transform is an update in pipeline form. Each of its stages transforms one document into one document.
type Transform struct {
	fns []func(e *expr.Env, doc value.Value) (value.Value, error)
}

// CheckNames refuses an update pipeline with a stage that no pipeline can have. An update of another form has no
// stages.
func CheckNames(p value.Value) error {
	if p.Kind() != value.Array {
		return nil
	}
	for _, spec := range value.Elements(p) {
		it := spec.Iter()
		if spec.Kind() != value.Object || !it.Next() {
			continue
		}
		if name := string(it.Key()); !known(name) {
			return merr.New(merr.UnrecognizedStage, "Unrecognized pipeline stage name: '%s'", name)
		}
	}
	return nil
}

// known reports whether MongoDB has a stage of this name.
func known(name string) bool {
	_, ok := stages[name]
	return ok || Unsupported[name]
}

// CompileTransform compiles an update pipeline.
func CompileTransform(p value.Value, s *expr.Scope) (*Transform, error) {
	t := &Transform{}
	for _, spec := range value.Elements(p) {
		it := spec.Iter()
		if spec.Kind() != value.Object || !it.Next() {
			return nil, merr.New(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		mk, ok := transforms[string(it.Key())]
		if !ok {
			if !known(string(it.Key())) {
				return nil, merr.New(merr.UnrecognizedStage, "Unrecognized pipeline stage name: '%s'", it.Key())
			}
			return nil, merr.New(merr.InvalidOptions, "%s is not allowed to be used within an update", it.Key())
		}
		fn, err := mk(it.Value(), s)
		if err != nil {
			return nil, err
		}
		t.fns = append(t.fns, fn)
	}
	return t, nil
}

// Apply transforms a document.
func (t *Transform) Apply(e *expr.Env, doc value.Value) (value.Value, error) {
	var err error
	for _, fn := range t.fns {
		if doc, err = fn(e, doc); err != nil {
			return doc, err
		}
	}
	return doc, nil
}
