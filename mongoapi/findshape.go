package mongoapi

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
	"github.com/orrerydb/orrery/mongoapi/project"
)

// The options min and max of find bound the keys of an index, which the hint must name. The store indexes every path,
// so
// they become a condition on the documents, and the order of the index that of the result.
//
// Example: min {a: 1, b: 5}, max {a: 2, b: 0} and the index {a: 1, b: 1} select {a: 1, b: 7} and {a: 1.5}, not {a: 1,
// b: 4}.
type keyBounds struct {
	cols     []keyColumn
	min, max []value.Value // nil: no bound
	coll     *collate.Collation
}

type keyColumn struct {
	path string
	desc bool
}

// keyColumnsOf returns the columns of an index.
func keyColumnsOf(key value.Value) (out []keyColumn) {
	for it := key.Iter(); it.Next(); {
		n, _ := num.ToInt64(it.Value(), true)
		out = append(out, keyColumn{string(it.Key()), n < 0})
	}
	return out
}

// hinted returns the index that the hint names, Undefined if it names none.
func (k *coll) hinted(body value.Value) value.Value {
	h := args.Given(body, "hint")
	for _, s := range append([]value.Value{k.idIndex()}, k.indexSpecs()...) {
		if h.Kind() == value.String && s.Get("name").Str() == h.Str() ||
			h.Kind() == value.Object && h.Len() > 0 && value.CompareBSON(s.Get("key"), h) == 0 {
			return s
		}
	}
	return value.Undef()
}

// bounds reads min and max, nil if there are none.
func (r *request) bounds(k *coll, a findArgs) (*keyBounds, error) {
	if a.min.Len() == 0 && a.max.Len() == 0 {
		return nil, nil
	}
	index := k.hinted(r.body)
	if !index.IsDefined() {
		return nil, merr.New(51173, "When using min()/max() a hint of which index to use must be provided")
	}
	b := &keyBounds{cols: keyColumnsOf(index.Get("key")), coll: r.exprEnv().Run.Collation()}
	for _, x := range []struct {
		v  value.Value
		to *[]value.Value
	}{{a.min, &b.min}, {a.max, &b.max}} {
		if x.v.Len() == 0 {
			continue
		}
		i := 0
		for it := x.v.Iter(); it.Next(); i++ {
			if i >= len(b.cols) || b.cols[i].path != string(it.Key()) {
				return nil, notForIndex()
			}
			*x.to = append(*x.to, it.Value())
		}
		if i < len(b.cols) {
			return nil, notForIndex()
		}
	}
	if b.min != nil && b.max != nil && b.compare(b.min, b.max) >= 0 {
		return nil, merr.New(51175, "The value provided for min() does not come before the value provided for max() "+
			"in the hinted index.")
	}
	return b, nil
}

func notForIndex() error { return merr.New(51174, "The index chosen is not compatible with min/max") }

// compare compares two keys in the order of the index.
func (b *keyBounds) compare(x, y []value.Value) int {
	for i, c := range b.cols {
		r := b.coll.Compare(x[i], y[i])
		if c.desc {
			r = -r
		}
		if r != 0 {
			return r
		}
	}
	return 0
}

// holds reports whether a key of a document is within the bounds. A document with an array has a key for each element.
func (b *keyBounds) holds(doc value.Value) bool {
	return b.any(doc, make([]value.Value, 0, len(b.cols)))
}

func (b *keyBounds) any(doc value.Value, key []value.Value) bool {
	if len(key) == len(b.cols) {
		return (b.min == nil || b.compare(key, b.min) >= 0) && (b.max == nil || b.compare(key, b.max) < 0)
	}
	found, ok := false, false
	filter.Visit(doc, b.cols[len(key)].path, false, func(v value.Value) {
		found = true
		ok = ok || b.any(doc, append(key, v))
	})
	if !found {
		return b.any(doc, append(key, value.NullValue()))
	}
	return ok
}

// order returns the order of the index.
func (b *keyBounds) order() (o order.Order) {
	for _, c := range b.cols {
		o = append(o, order.Column{Path: strings.Split(c.path, "."), Desc: c.desc})
	}
	return o
}

// pred returns the part of the bounds that the store's index can answer: those of the first column, if both are values
// of one kind that an index has in this order.
func (b *keyBounds) pred() *access.Pred {
	if b.min == nil || b.max == nil || b.coll != nil || strings.Contains(b.cols[0].path, "$**") {
		return access.All()
	}
	lo, hi := b.min[0], b.max[0]
	if b.cols[0].desc {
		lo, hi = hi, lo
	}
	both := func(is func(value.Value) bool) bool { return is(lo) && is(hi) }
	text := func(v value.Value) bool { return v.Kind() == value.String }
	date := func(v value.Value) bool { return v.Kind() == value.Date }
	if !both(value.Value.IsNumber) && !both(text) && !both(date) {
		return access.All()
	}
	segs, ok := filter.PathOf(b.cols[0].path)
	if !ok {
		return access.All()
	}
	path := access.NewPath(segs...)
	if b.cols[0].path != "_id" {
		path = path.Element()
	}
	return access.Range(path, &access.Bound{Value: lo, Inclusive: true}, &access.Bound{Value: hi, Inclusive: true})
}

// bound restricts a source that hasn't been read yet.
func (s *source) bound(b *keyBounds) {
	match := s.q.Match
	s.q.Match = func(it *core.Item) (bool, error) {
		if ok := b.holds(value.ObjectOf(it.Doc)); !ok || match == nil {
			return ok, nil
		}
		return match(it)
	}
	if p := b.pred(); p.Op != access.OpAll {
		if s.q.Pred == nil || s.q.Pred.Op == access.OpAll {
			s.q.Pred = p
		} else {
			s.q.Pred = access.And(s.q.Pred, p)
		}
	}
}

// reshape makes the documents of a source what returnKey and showRecordId show. A projection is applied before. With
// returnKey there is neither a projection nor a number.
func (s *source) reshape(e *expr.Env, p *project.Projection, key []keyColumn, onlyKey, number bool) {
	s.q.Number = number
	s.shape = func(it *core.Item) (value.Value, error) {
		d := value.ObjectOf(it.Doc)
		var err error
		switch {
		case onlyKey:
			at, b := bson.Begin(nil)
			for _, c := range key {
				v := order.Key(d, order.Column{Path: strings.Split(c.path, ".")})
				b = value.AppendElement(b, c.path, v)
			}
			d = value.ObjectOf(bson.End(b, at))
		case p != nil:
			if d, err = p.Apply(e, d); err != nil {
				return d, err
			}
		}
		if !number || onlyKey { // a key has no other fields
			return d, nil
		}
		at, b := bson.Begin(make([]byte, 0, len(d.Bytes())+24))
		for el := d.Iter(); el.Next(); {
			b = append(b, el.Element()...)
		}
		return value.ObjectOf(bson.End(bson.AppendInt64(b, "$recordId", int64(it.Number)), at)), nil
	}
}

// shownKey returns the columns that returnKey shows: those of the hinted index, else of the first one that begins with
// the first field of the sort or with a field of the filter. Without one there is no key, as after a scan.
func (r *request) shownKey(k *coll, a findArgs) []keyColumn {
	if s := k.hinted(r.body); s.IsDefined() {
		return keyColumnsOf(s.Get("key"))
	}
	first := value.Undef()
	if it := a.sort.Iter(); a.sort.Kind() == value.Object && it.Next() {
		first = value.StringBytes(it.Key())
	}
	for _, s := range append([]value.Value{k.idIndex()}, k.indexSpecs()...) {
		cols := keyColumnsOf(s.Get("key"))
		if cols[0].path == first.Str() && first.IsDefined() || a.filter.Get(cols[0].path).IsDefined() {
			return cols
		}
	}
	return nil
}
