package agg

import (
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// densifySpec is a compiled $densify. It inserts documents where the values of a field have gaps wider than a step.
//
// The documents are sorted by the field (behind the partition fields, for the bounds "partition") and read once. For
// each partition it keeps the last value on the grid, which is its first value, or the lower bound, plus a multiple of
// the step. Before a document come the values of the grid between that and the document.
//
// Example: field n, step 2, bounds "full", over n = 1, 4, 5. The grid is 1, 3, 5. Nothing comes before 1; 3 comes
// before 4, which isn't on the grid; 5 is the next value of the grid itself.
type densifySpec struct {
	field []string
	parts [][]string
	step  value.Value
	unit  string // of dates; "" for numbers
	mode  string // full, partition, or "" for explicit bounds
	// explicit bounds
	lo, hi value.Value
}

// maxDensified is the largest number of documents that one $densify inserts.
const maxDensified = 500_000

func densify(_ *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "The $densify stage specification must be an object, found %s",
			expr.TypeName(arg))
	}
	d := &densifySpec{}
	var field, parts, ranges value.Value
	for it := arg.Iter(); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "field":
			if field = v; v.Kind() != value.String {
				return nil, wrongType("$densify.field", v, "string")
			}
		case "partitionByFields":
			if parts = v; v.Kind() != value.Array {
				return nil, wrongType("$densify.partitionByFields", v, "array")
			}
		case "range":
			if ranges = v; v.Kind() != value.Object {
				return nil, wrongType("$densify.range", v, "object")
			}
		default:
			return nil, merr.New(merr.UnknownField, "BSON field '$densify.%s' is an unknown field.", it.Key())
		}
	}
	switch {
	case !field.IsDefined():
		return nil, missingField("$densify.field")
	case !ranges.IsDefined():
		return nil, missingField("$densify.range")
	}
	if err := d.setRange(ranges); err != nil {
		return nil, err
	}
	var err error
	if d.field, err = expr.FieldPath(field.Str()); err != nil {
		return nil, err
	}
	for it := parts.Iter(); parts.IsDefined() && it.Next(); {
		if it.Value().Kind() != value.String {
			return nil, wrongType("$densify.partitionByFields."+string(it.Key()), it.Value(), "string")
		}
		path, err := expr.FieldPath(it.Value().Str())
		if err != nil {
			return nil, err
		}
		d.parts = append(d.parts, path)
	}
	if d.mode == "partition" && len(d.parts) == 0 {
		return nil, merr.New(5733408, "One cannot specify the bounds as 'partition' without specifying a non-empty "+
			"array of partitionByFields. You may have meant to specify 'full' bounds.")
	}
	return d.run, nil
}

// missingField is the error for an argument of a stage that is missing.
func missingField(name string) error {
	return merr.New(merr.MissingField, "BSON field '%s' is missing but a required field", name)
}

// wrongType is the error for an argument of a stage that has another type.
func wrongType(name string, v value.Value, want string) error {
	return merr.New(merr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", name,
		expr.TypeName(v), want)
}

// setRange compiles the argument range.
func (d *densifySpec) setRange(r value.Value) error {
	var bounds value.Value
	for it := r.Iter(); it.Next(); {
		switch v := it.Value(); string(it.Key()) {
		case "step":
			d.step = v
		case "bounds":
			bounds = v
		case "unit":
			if v.Kind() != value.String {
				return wrongType("RangeSpec.unit", v, "string")
			}
			var err error
			if d.unit, err = expr.Unit("$densify", v); err != nil {
				return err
			}
		default:
			return merr.New(merr.UnknownField, "BSON field '$densify.range.%s' is an unknown field.", it.Key())
		}
	}
	switch {
	case !d.step.IsDefined():
		return missingField("$densify.range.step")
	case !bounds.IsDefined():
		return missingField("$densify.range.bounds")
	case !d.step.IsNumber() || !(num.ToFloat(d.step) > 0):
		return merr.New(5733401, "The step parameter in a range statement must be a strictly positive numeric value")
	}
	if _, whole := num.ToInt64(d.step, false); d.unit != "" && !whole {
		return merr.New(6586400, "The step parameter in a range statement must be a whole number when densifying a "+
			"date range")
	}
	switch bounds.Kind() {
	case value.Array:
		return d.setBounds(bounds)
	case value.String:
		if d.mode = bounds.Str(); d.mode != "full" && d.mode != "partition" {
			return merr.New(5946802, "Bounds string must either be 'full' or 'partition'")
		}
		return nil
	}
	return merr.New(5733404, "The bounds in a range statement must be the string 'full', 'partition', or an "+
		"ascending array of two numbers or two dates")
}

func (d *densifySpec) setBounds(bounds value.Value) error {
	if bounds.Len() != 2 {
		return merr.New(5733403, "A bounding array in a range statement must have exactly two elements")
	}
	d.lo, d.hi = bounds.At(0), bounds.At(1)
	const both = "A bounding array must contain either both dates or both numeric types"
	switch {
	case value.CompareBSON(d.lo, d.hi) > 0:
		return merr.New(5733402, "A bounding array must be an ascending array of either two dates or two numbers")
	case d.lo.IsNumber():
		switch {
		case d.unit != "":
			return merr.New(5733409, "Numeric bounds may not have unit parameter")
		case !d.hi.IsNumber():
			return merr.New(5733406, both)
		case d.lo.Kind() != d.hi.Kind() || d.lo.Kind() != d.step.Kind():
			return merr.New(5876900, "Upper bound, lower bound, and step must all have the same type")
		}
	case d.lo.Kind() == value.Date:
		switch {
		case d.hi.Kind() != value.Date:
			return merr.New(5733405, both)
		case d.unit == "":
			return merr.New(5733410, "A bounding array of dates must specify a unit")
		}
	default:
		return merr.New(5946800, "Explicit bounds must be numeric or dates")
	}
	return nil
}

// next returns the value one step behind v.
func (d *densifySpec) next(v value.Value) value.Value {
	if d.unit == "" {
		return num.Widen(num.Add, v, d.step)
	}
	n, _ := num.ToInt64(d.step, true)
	return value.DateOf(expr.AddUnits(time.UnixMilli(v.DateMS()).UTC(), d.unit, int(n)).UnixMilli(), 0)
}

func (d *densifySpec) run(x *Exec, src Iter) (Iter, error) {
	var o order.Order
	if d.mode != "full" {
		for _, p := range d.parts {
			o = append(o, order.Column{Path: p})
		}
	}
	o = append(o, order.Column{Path: d.field})
	return &densifyIter{d: d, x: x, src: sorted(x, src, "$densify", o), h: x.hold("$densify"),
		one: x.hold("$densify"), grids: map[uint64][]*grid{}}, nil
}

// grid is the state of one partition.
type grid struct {
	part value.Value // the document with the partition fields
	next value.Value // the first value of the grid that hasn't come yet; Undefined: none came
}

// densifyIter gives the documents in order, and between them those of the gaps.
type densifyIter struct {
	d     *densifySpec
	x     *Exec
	src   Iter
	h     *hold // of grids
	one   *hold // of doc
	grids map[uint64][]*grid
	list  []*grid // in the order of their first documents

	doc       value.Value // comes when the grid g has passed its value; Undefined: none
	g         *grid
	upTo      value.Value // of doc, or of the end
	first     value.Value // the least value of all, for the bounds "full"
	last      value.Value // the greatest
	ended     bool
	left      []*grid // at the end: those that may still have gaps
	generated int
}

// Next implements Iter.
func (i *densifyIter) Next() (value.Value, bool, error) {
	for {
		if i.g != nil {
			if n := i.g.next; n.IsDefined() && value.CompareBSON(n, i.upTo) < 0 {
				i.g.next = i.d.next(n)
				return i.made(n)
			}
			if g := i.g; i.doc.IsDefined() && g.next.IsDefined() && value.CompareBSON(g.next, i.upTo) == 0 {
				g.next = i.d.next(g.next)
			}
			i.g = nil
			if i.doc.IsDefined() {
				return i.doc, true, nil
			}
		}
		if i.ended {
			if len(i.left) == 0 {
				return value.Undef(), false, nil
			}
			i.g, i.doc, i.left = i.left[0], value.Undef(), i.left[1:]
			continue
		}
		doc, ok, err := i.src.Next()
		if err != nil {
			return doc, false, err
		}
		if !ok {
			i.end()
			continue
		}
		if again, err := i.take(doc); !again || err != nil {
			return doc, err == nil, err
		}
	}
}

// take considers a document. again means that it comes later, behind those of the gap before it.
func (i *densifyIter) take(doc value.Value) (again bool, err error) {
	v := getPath(doc, i.d.field)
	switch {
	case nullish(v):
		return false, nil
	case !v.IsNumber() && v.Kind() != value.Date:
		return false, merr.New(5733201, "Densify field type must be numeric or a date")
	case i.d.unit != "" && v.Kind() != value.Date:
		return false, merr.New(6053600, "Encountered numeric densify value in collection when step has a date unit.")
	case i.d.unit == "" && v.Kind() == value.Date:
		return false, merr.New(6053600, "Encountered date densify value in collection when step does not have a date "+
			"unit.")
	}
	if !i.first.IsDefined() {
		i.first = v.Clone()
	}
	g, err := i.grid(doc)
	if err != nil {
		return false, err
	}
	i.last = v.Clone()
	if !g.next.IsDefined() {
		switch i.d.mode {
		case "partition":
			g.next = i.last
		case "full":
			g.next = i.first
		default:
			g.next = i.d.lo
		}
	}
	i.upTo = i.last
	if i.d.mode == "" {
		if value.CompareBSON(v, i.d.lo) < 0 {
			return false, nil
		}
		if value.CompareBSON(v, i.d.hi) > 0 {
			i.upTo = i.d.hi
		}
	}
	if err := i.one.one(doc); err != nil {
		return false, err
	}
	i.doc, i.g = doc.Clone(), g
	return true, nil
}

// grid returns the grid of a document's partition.
func (i *densifyIter) grid(doc value.Value) (*grid, error) {
	part := value.ObjectOf(bson.Empty)
	for _, p := range i.d.parts {
		if v := expr.Path(doc, p); v.IsDefined() {
			part = setPath(part, p, v)
		}
	}
	h := value.HashBSON(part)
	for _, g := range i.grids[h] {
		if value.CompareBSON(g.part, part) == 0 {
			return g, nil
		}
	}
	if at := getPath(part, i.d.field[:len(i.d.field)-1]); len(i.d.field) > 1 && at.IsDefined() {
		switch at.Kind() {
		case value.Array:
			return nil, merr.New(5733307, "$densify cannot generate fields nested inside arrays")
		case value.Object:
		default:
			return nil, merr.New(5733308, "$densify cannot overwrite non-object values with objects")
		}
	}
	if i.d.mode == "partition" { // the documents are sorted by partition, so the others are complete
		clear(i.grids)
		i.list = i.list[:0]
	}
	g := &grid{part: part.Clone()}
	if err := i.h.add(len(part.Bytes()) + 256); err != nil {
		return nil, err
	}
	i.grids[h] = append(i.grids[h], g)
	i.list = append(i.list, g)
	return g, nil
}

// made returns a document of a gap.
func (i *densifyIter) made(v value.Value) (value.Value, bool, error) {
	if i.generated++; i.generated > maxDensified {
		return v, false, merr.New(5897900, "Generated %d documents in $densify, which is over the limit of %d. "+
			"Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
			i.generated, maxDensified)
	}
	if err := i.x.Env.Run.Step(); err != nil {
		return v, false, err
	}
	return setPath(i.g.part, i.d.field, v), true, nil
}

// end begins the gaps behind the last documents.
func (i *densifyIter) end() {
	i.ended = true
	switch i.d.mode {
	case "partition":
	case "full":
		if len(i.d.parts) > 0 && i.last.IsDefined() {
			// the greatest value itself comes too where it is on the grid
			i.left, i.upTo = i.list, i.last
			for v := i.first; ; v = i.d.next(v) {
				c := value.CompareBSON(v, i.last)
				if c == 0 {
					i.upTo = i.d.next(i.last)
				}
				if c >= 0 || i.x.Env.Run.Step() != nil {
					return
				}
			}
		}
	default:
		if i.left, i.upTo = i.list, i.d.hi; len(i.d.parts) == 0 {
			g := &grid{part: value.ObjectOf(bson.Empty), next: i.d.lo}
			if len(i.list) > 0 {
				g = i.list[0]
			}
			if !g.next.IsDefined() {
				g.next = i.d.lo
			}
			i.left = []*grid{g}
		}
	}
}

// Close implements Iter.
func (i *densifyIter) Close() {
	i.src.Close()
	i.h.release()
	i.one.release()
}
