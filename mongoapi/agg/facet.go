package agg

import (
	"iter"
	"slices"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// A $facet gives each of its documents to several pipelines. A pipeline pulls its documents, so each runs in a
// coroutine that rests while it waits for the next one. The input is read once, and none of it is kept.
//
// Example: {$facet: {page: [{$sort: {n: 1}}, {$limit: 10}], all: [{$count: "n"}]}}. A document is read. The coroutine
// of page adds it to the first ten, or not, and asks for the next one. That of all counts it, and asks for the next
// one. Then the next document is read.

// inFacet is the error of a stage that can't be in the pipelines of $facet.
func inFacet(stage string) error {
	return merr.New(40600, "%s is not allowed to be used within a $facet stage", stage)
}

func facet(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object || arg.Len() == 0 {
		return nil, merr.New(40169, "the $facet specification must be a non-empty object")
	}
	type part struct {
		name string
		p    *Pipeline
	}
	var parts []part
	for it := arg.Iter(); it.Next(); {
		o := c.sub(c.o.Coll, c.o.Scope)
		o.Facet = true
		p, err := Compile(it.Value(), o)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{string(it.Key()), p})
	}
	return func(x *Exec, src Iter) (Iter, error) {
		return lazyFrom(x, src, "$facet", func(src Iter, h *hold) (Iter, error) {
			runs := make([]*partRun, len(parts))
			for i, p := range parts {
				runs[i] = startPart(x, p.p, h)
				defer runs[i].stop()
			}
			if err := feed(src, runs); err != nil {
				return nil, err
			}
			at, b := bson.Begin(nil)
			for i, r := range runs {
				b = value.AppendElement(b, parts[i].name, value.MakeArray(r.out))
			}
			return NewSlice([]value.Value{value.ObjectOf(bson.End(b, at))}), nil
		}), nil
	}, nil
}

// partRun is one pipeline of a $facet that runs. It implements Iter for its pipeline.
type partRun struct {
	goOn  func() (struct{}, bool) // until it asks for the next document; false: it is over
	stop  func()                  // ends it
	ask   func(struct{}) bool
	doc   value.Value // what it gets next
	more  bool        // there is one
	ended bool
	out   []value.Value
	err   error
}

// startPart starts a pipeline, whose result h holds. It first asks for a document when it is told to go on.
func startPart(x *Exec, p *Pipeline, h *hold) *partRun {
	r := &partRun{}
	r.goOn, r.stop = iter.Pull(func(ask func(struct{}) bool) {
		r.ask = ask
		it, err := p.RunAll(&Exec{Env: x.Env.Fork(), Host: x.Host}, r)
		if err != nil {
			r.err = err
			return
		}
		defer it.Close()
		r.out, r.err = all(it, h)
	})
	return r
}

// Next implements Iter.
func (r *partRun) Next() (value.Value, bool, error) {
	if r.ended || !r.ask(struct{}{}) || !r.more {
		r.ended = true
		return value.Undef(), false, nil
	}
	return r.doc, true, nil
}

// Close implements Iter.
func (r *partRun) Close() { r.ended = true }

// feed gives all documents of src to each pipeline, until all are over.
func feed(src Iter, runs []*partRun) (err error) {
	var doc value.Value
	more := false
	over := func(r *partRun) bool {
		if err != nil {
			return false
		}
		r.doc, r.more = doc, more
		_, asks := r.goOn()
		err = r.err
		return !asks
	}
	waiting := slices.DeleteFunc(slices.Clone(runs), over) // they ask for the first one
	for err == nil && len(waiting) > 0 {
		if doc, more, err = src.Next(); err == nil {
			waiting = slices.DeleteFunc(waiting, over)
		}
	}
	return err
}
