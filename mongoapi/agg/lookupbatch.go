package agg

import (
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// A $lookup by two fields joins many documents with one query of the foreign collection: it asks for the documents with
// any of their values, and gives each document those that match it. The first batch is one document, so that a reader
// of a few documents doesn't pay for more; each further one has twice as many.
//
// Example: the orders {item: 1}, {item: 2}, {item: 1} are joined with one query for {_id: {$in: [1, 2]}}.

const (
	mostJoined = 128     // documents of a batch
	mostValues = 1000    // different values of a batch
	mostFound  = 1 << 20 // bytes of what a batch finds; a larger one is joined document by document
)

// joinIter joins documents in batches.
type joinIter struct {
	l    *lookupSpec
	x    *Exec
	src  Iter
	h    *hold
	size int
	out  []value.Value // joined documents that weren't given yet
}

// Next implements Iter. The source may have no document now and others later, so its end isn't remembered.
func (j *joinIter) Next() (value.Value, bool, error) {
	if len(j.out) == 0 {
		j.h.release()
		if err := j.fill(); err != nil {
			return value.Undef(), false, err
		}
		if len(j.out) == 0 {
			return value.Undef(), false, nil
		}
	}
	d := j.out[0]
	j.out = j.out[1:]
	return d, true, j.x.Env.Run.Step()
}

// fill reads and joins the next batch.
func (j *joinIter) fill() error {
	j.size = min(2*j.size, mostJoined)
	if j.size == 0 {
		j.size = 1
	}
	var docs []value.Value
	for held := 0; len(docs) < j.size && held < mostFound; {
		d, ok, err := j.src.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		held += docSize(d)
		docs = append(docs, d.Clone())
		if err := j.h.add(docSize(d)); err != nil {
			if len(docs) > 1 {
				break // these can be joined one by one
			}
			return err
		}
	}
	found, err := j.l.joinMany(j.x, docs, j.h)
	if err != nil {
		return err
	}
	for i, d := range docs {
		var res []value.Value
		if found != nil {
			res = found[i]
		} else if res, err = j.l.join(j.x, d, j.h); err != nil {
			return err
		}
		j.out = append(j.out, setPath(d, j.l.as, value.MakeArray(res)))
	}
	return nil
}

// Close implements Iter.
func (j *joinIter) Close() {
	j.src.Close()
	j.h.release()
}

// joinMany returns the foreign documents of each document, nil if they must be joined one by one.
func (l *lookupSpec) joinMany(x *Exec, docs []value.Value, h *hold) ([][]value.Value, error) {
	if len(docs) < 2 {
		return nil, nil
	}
	b := batch{l: l, coll: x.Env.Run.Collation(), known: map[uint64][]value.Value{}, byValue: map[uint64][]int{}}
	for i, d := range docs {
		if err := b.add(x, i, d); err != nil {
			return nil, err
		}
	}
	if len(b.values) > mostValues {
		return nil, nil
	}
	f, err := filter.Compile(l.equals(b.values), filter.Options{Run: x.Env.Run})
	if err != nil {
		return nil, err
	}
	src, err := x.Host.Find(l.from, Lead{Filter: f}, x.Env.Fork())
	if err != nil {
		return nil, err
	}
	defer src.Close()
	found := make([][]value.Value, len(docs))
	size := 0
	for {
		d, ok, err := src.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return found, nil
		}
		d = d.Clone()
		for _, i := range b.candidates(d) {
			match, err := b.filters[i].Match(x.Env, d)
			if err != nil {
				return nil, err
			}
			if !match {
				continue
			}
			if size += docSize(d); size > mostFound || h.add(docSize(d)) != nil {
				h.release()
				return nil, nil
			}
			found[i] = append(found[i], d)
		}
	}
}

// batch has the conditions of several documents.
type batch struct {
	l       *lookupSpec
	filters []*filter.Filter
	coll    *collate.Collation
	values  []value.Value            // the different local values
	known   map[uint64][]value.Value // values, by their hash
	byValue map[uint64][]int         // the documents with a value, by its hash
	always  []int                    // documents that may match any foreign document: with null
	seen    []int                    // of candidates
}

func (b *batch) add(x *Exec, i int, d value.Value) error {
	vs := b.l.values(d)
	f, err := filter.Compile(b.l.equals(vs), filter.Options{Run: x.Env.Run})
	if err != nil {
		return err
	}
	b.filters = append(b.filters, f)
	for _, v := range vs {
		h := b.coll.Hash(v)
		if v.Kind() == value.Null {
			b.always = append(b.always, i)
		}
		if !slices.ContainsFunc(b.known[h], func(o value.Value) bool { return b.coll.Compare(o, v) == 0 }) {
			b.values, b.known[h] = append(b.values, v), append(b.known[h], v)
		}
		b.byValue[h] = append(b.byValue[h], i)
	}
	return nil
}

// candidates returns the documents that may match a foreign document, each once.
func (b *batch) candidates(d value.Value) []int {
	b.seen = append(b.seen[:0], b.always...)
	filter.Visit(d, b.l.foreign, true, func(v value.Value) {
		b.seen = append(b.seen, b.byValue[b.coll.Hash(v)]...)
	})
	slices.Sort(b.seen)
	b.seen = slices.Compact(b.seen)
	return b.seen
}
