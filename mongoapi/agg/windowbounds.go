package agg

import (
	"math"
	"sort"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// windowBounds tell which documents of its partition belong to a document's window: all from one bound to the other,
// both included. A bound is a distance in documents or in values of the sort field, or there is none.
//
// Example: {range: [-10, "current"]} with sortBy {t: 1} is every document whose t is in [t - 10, t].
type windowBounds struct {
	lo, hi bound
	values bool   // the distances are in values of the sort field
	unit   string // of distances between dates, "" for numbers
}

// bound is one end of a window.
type bound struct {
	open bool // there is no end
	by   value.Value
}

// whole reports whether each window is the whole partition.
func (b *windowBounds) whole() bool { return b.lo.open && b.hi.open }

// field returns the object {name: v}.
func field(name string, v value.Value) value.Value {
	at, b := bson.Begin(nil)
	return value.ObjectOf(bson.End(value.AppendElement(b, name, v), at))
}

func errBounds() error {
	return merr.New(merr.FailedToParse, "'window' field can only contain 'documents' as the only argument or 'range' "+
		"with an optional 'unit' field")
}

// bounds compiles the argument window of an output; Undefined is the whole partition.
func (w *windowSpec) bounds(spec value.Value) (windowBounds, error) {
	b := windowBounds{lo: bound{open: true}, hi: bound{open: true}}
	var pair value.Value
	for it := spec.Iter(); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "documents":
			pair = v
		case "range":
			pair, b.values = v, true
		case "unit":
			var err error
			if b.unit, err = expr.Unit("window", v); err != nil {
				return b, err
			}
		default:
			return b, errBounds()
		}
	}
	docs, values := spec.Get("documents").IsDefined(), spec.Get("range").IsDefined()
	switch {
	case docs && (values || b.unit != ""), b.unit != "" && !values:
		return b, errBounds()
	case !docs && !values:
		return b, nil
	case pair.Kind() != value.Array || pair.Len() != 2:
		return b, merr.New(merr.FailedToParse, "Window bounds must be a 2-element array")
	}
	var err error
	if b.lo, err = b.end(pair.At(0)); err != nil {
		return b, err
	}
	if b.hi, err = b.end(pair.At(1)); err != nil {
		return b, err
	}
	switch {
	case values && (len(w.sortBy) != 1 || w.sortBy[0].Desc):
		return b, merr.New(5339902, "Range-based bounds require sortBy a single field, ascending")
	case docs && !b.whole() && len(w.sortBy) == 0:
		return b, merr.New(5339901, "Document-based bounds require a sortBy")
	case !b.lo.open && !b.hi.open && value.CompareBSON(b.lo.by, b.hi.by) > 0:
		return b, merr.New(5339900, "Lower bound must not exceed upper bound: %s", merr.Show(pair))
	}
	return b, nil
}

// end compiles one bound.
func (b *windowBounds) end(v value.Value) (bound, error) {
	switch {
	case v.Kind() == value.String && v.Str() == "unbounded":
		return bound{open: true}, nil
	case v.Kind() == value.String && v.Str() == "current":
		return bound{by: value.Int32Of(0)}, nil
	}
	n, whole := num.ToInt64(v, false)
	if !v.IsNumber() {
		return bound{}, merr.New(merr.FailedToParse, "Window bounds must be 'unbounded', 'current', or a number.")
	}
	if b.values && b.unit == "" {
		return bound{by: v}, nil
	}
	if !whole || n > math.MaxInt32 || n < math.MinInt32 {
		return bound{}, merr.New(merr.FailedToParse, "Numeric document-based bounds must be an integer")
	}
	return bound{by: value.Int64Of(n)}, nil
}

// of returns the window of document i: the documents lo to hi-1.
func (b *windowBounds) of(p *partition, i int) (lo, hi int, err error) {
	n := len(p.docs)
	if b.values {
		return b.ofRange(p, i)
	}
	hi = n
	if !b.lo.open {
		lo = min(max(i+int(b.lo.by.Int()), 0), n)
	}
	if !b.hi.open {
		hi = min(max(i+int(b.hi.by.Int())+1, 0), n)
	}
	return lo, max(lo, hi), nil
}

// ofRange is of for distances in values.
func (b *windowBounds) ofRange(p *partition, i int) (lo, hi int, err error) {
	n := len(p.docs)
	at := p.keys[i][0]
	if b.unit == "" && !at.IsNumber() {
		return 0, 0, merr.New(5429414, "Invalid range: Expected the sortBy field to be a number, but it was %s",
			expr.TypeName(at))
	}
	if b.unit != "" && at.Kind() != value.Date {
		return 0, 0, merr.New(5429513, "Invalid range: Expected the sortBy field to be a Date, but it was %s",
			expr.TypeName(at))
	}
	hi = n
	if !b.lo.open {
		v := b.shift(at, b.lo.by)
		lo = sort.Search(n, func(j int) bool { return value.CompareBSON(p.keys[j][0], v) >= 0 })
	}
	if !b.hi.open {
		v := b.shift(at, b.hi.by)
		hi = sort.Search(n, func(j int) bool { return value.CompareBSON(p.keys[j][0], v) > 0 })
	}
	return lo, max(lo, hi), nil
}

// shift returns the value at a distance.
func (b *windowBounds) shift(v, by value.Value) value.Value {
	if b.unit == "" {
		return num.Widen(num.Add, v, by)
	}
	return value.DateOf(expr.AddUnits(time.UnixMilli(v.DateMS()).UTC(), b.unit, int(by.Int())).UnixMilli(), 0)
}
