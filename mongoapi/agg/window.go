package agg

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// windowSpec is a compiled $setWindowFields. The documents are sorted by partition and sortBy, with temporary files if
// they don't fit into memory. Then one partition after another is held in memory and its outputs are computed.
//
// Example: partitionBy "$k", sortBy {t: 1}, output {sum: {$sum: "$n", window: {documents: ["unbounded", "current"]}}}.
// For {k: 1, t: 1, n: 5}, {k: 1, t: 2, n: 3}, {k: 2, t: 1, n: 4} the sums are 5, 8 and 4.
type windowSpec struct {
	by      expr.Expr // nil: one partition
	sortBy  order.Order
	outputs []windowOutput
}

// windowOutput is one field of the output.
type windowOutput struct {
	path    []string
	compute windowFunc
}

// windowFunc returns one value for each document of a partition.
type windowFunc func(p *partition) ([]value.Value, error)

// partition is what an output is computed from.
type partition struct {
	env  *expr.Env
	docs []value.Value
	keys [][]value.Value // sort keys of docs
	o    order.Order
	mem  *hold
}

func setWindowFields(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "the $setWindowFields stage specification must be an object, found %s",
			expr.TypeName(arg))
	}
	w := &windowSpec{}
	for it := arg.Iter(); it.Next(); {
		var err error
		switch v := it.Value(); string(it.Key()) {
		case "partitionBy":
			w.by, err = expr.Compile(v, c.o.Scope)
		case "sortBy":
			w.sortBy, err = compileSort(v)
		case "output":
			if v.Kind() != value.Object {
				err = merr.New(merr.TypeMismatch, "BSON field '$setWindowFields.output' is the wrong type '%s', "+
					"expected type 'object'", expr.TypeName(v))
			}
		default:
			err = merr.New(merr.UnknownField, "BSON field '$setWindowFields.%s' is an unknown field.", it.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	outputs := arg.Get("output")
	if !outputs.IsDefined() {
		return nil, merr.New(merr.MissingField, "BSON field '$setWindowFields.output' is missing but a required field")
	}
	for it := outputs.Iter(); it.Next(); {
		path, err := expr.FieldPath(string(it.Key()))
		if err != nil {
			return nil, err
		}
		compute, err := w.output(c, string(it.Key()), it.Value())
		if err != nil {
			return nil, err
		}
		w.outputs = append(w.outputs, windowOutput{path, compute})
	}
	return w.run, nil
}

// output compiles the function of one output field.
func (w *windowSpec) output(c *compiler, name string, spec value.Value) (windowFunc, error) {
	if spec.Kind() != value.Object {
		return nil, merr.New(merr.FailedToParse, "The field '%s' must be an object", name)
	}
	op, arg, window := "", value.Undef(), value.Undef()
	for it := spec.Iter(); it.Next(); {
		switch key := string(it.Key()); {
		case key == "window":
			if window = it.Value(); window.Kind() != value.Object {
				return nil, merr.New(merr.FailedToParse, "'window' field must be an object")
			}
		case op == "" && key != "" && key[0] == '$':
			op, arg = key, it.Value()
		default:
			return nil, merr.New(merr.FailedToParse, "The window function of '%s' has an unexpected argument: %s", name,
				key)
		}
	}
	if op == "" {
		return nil, merr.New(merr.FailedToParse, "Expected a $-prefixed window function of '%s'", name)
	}
	if mk, ok := windowed[op]; ok {
		return mk(w, c, op, arg, window)
	}
	if mk, ok := windowFunctions[op]; ok {
		if window.IsDefined() {
			return nil, merr.New(merr.FailedToParse, "%s does not accept a 'window' field", op)
		}
		return mk(w, c, op, arg)
	}
	if expr.Accumulators[op] == nil && !groupOnly[op] {
		return nil, merr.New(merr.FailedToParse, "Unrecognized window function, %s", op)
	}
	acc, err := compileAccumulator(accumulation{name: name}, op, arg, c.o.Scope)
	if err != nil {
		return nil, err
	}
	b, err := w.bounds(window)
	if err != nil {
		return nil, err
	}
	return func(p *partition) ([]value.Value, error) { return p.accumulate(acc, b) }, nil
}

// groupOnly are the accumulators that compileAccumulation handles itself.
var groupOnly = map[string]bool{"$count": true, "$firstN": true, "$lastN": true, "$maxN": true, "$minN": true,
	"$top": true, "$bottom": true, "$topN": true, "$bottomN": true, "$median": true, "$percentile": true}

// run sorts the documents and returns them with the outputs.
func (w *windowSpec) run(x *Exec, src Iter) (Iter, error) {
	o := append(order.Order(nil), keyOrder...)
	for _, c := range w.sortBy {
		c.Path = append([]string{"d"}, c.Path...)
		o = append(o, c)
	}
	return lazyFrom(x, src, "$setWindowFields", func(src Iter, h *hold) (Iter, error) {
		keyed := &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			key := value.NullValue()
			if w.by != nil {
				v, err := w.by(x.Env.With(d))
				if err != nil {
					return v, err
				}
				if v.Kind() == value.Array {
					return v, merr.New(merr.TypeMismatch, "An expression used to partition cannot evaluate to value "+
						"of type array")
				}
				if v.IsDefined() {
					key = v
				}
			}
			return keyedRow(key, d), nil
		}}
		s, err := fill(keyed, h, collated(x, o), 0)
		if err != nil {
			return nil, err
		}
		rows, err := s.docs()
		if err != nil {
			return nil, err
		}
		return &windowIter{w: w, x: x, rows: rows, h: h}, nil
	}), nil
}

// windowIter reads sorted rows partition by partition.
type windowIter struct {
	w     *windowSpec
	x     *Exec
	rows  Iter
	h     *hold
	ahead value.Value // first row of the next partition
	ended bool
	out   Slice
	held  int // bytes of the partition
}

// Next implements Iter.
func (i *windowIter) Next() (value.Value, bool, error) {
	for i.out.Empty() {
		if i.ended {
			return value.Undef(), false, nil
		}
		err := i.h.add(-i.held)
		i.held = 0
		if err == nil {
			err = i.load()
		}
		if err != nil {
			return value.Undef(), false, err
		}
	}
	return i.out.Next()
}

// load computes the next partition.
func (i *windowIter) load() error {
	p := &partition{env: i.x.Env, o: collated(i.x, i.w.sortBy), mem: i.h}
	key := i.ahead.Get("k")
	before := i.h.size
	for {
		if i.ahead.IsDefined() {
			d := i.ahead.Get("d")
			if err := i.h.add(2*docSize(d) + 72*len(p.o)); err != nil {
				return err
			}
			p.docs, p.keys = append(p.docs, d), append(p.keys, p.o.Keys(d))
		}
		row, ok, err := i.rows.Next()
		if err != nil {
			return err
		}
		if !ok {
			i.ended, i.ahead = true, value.Undef()
			break
		}
		first := !i.ahead.IsDefined()
		if i.ahead = row.Clone(); first {
			key = i.ahead.Get("k")
		} else if i.x.Env.Run.Collation().Compare(key, i.ahead.Get("k")) != 0 {
			break
		}
	}
	out := append([]value.Value(nil), p.docs...)
	for _, f := range i.w.outputs {
		vs, err := f.compute(p)
		if err != nil {
			return err
		}
		for j, v := range vs {
			if err := i.h.add(len(v.Bytes())); err != nil {
				return err
			}
			out[j] = setPath(out[j], f.path, v)
		}
	}
	i.out, i.held = Slice{out}, i.h.size-before
	return nil
}

// Close implements Iter.
func (i *windowIter) Close() { i.rows.Close() }

// values returns the values of an expression for the documents of the partition.
func (p *partition) values(x expr.Expr) ([]value.Value, error) {
	vs := make([]value.Value, len(p.docs))
	for i, d := range p.docs {
		if err := p.env.Run.Step(); err != nil {
			return nil, err
		}
		v, err := x(p.env.With(d))
		if err != nil {
			return nil, err
		}
		if err := p.mem.add(len(v.Bytes()) + 96); err != nil {
			return nil, err
		}
		vs[i] = v
	}
	return vs, nil
}

// accumulate computes an accumulator over the window of each document. A window that only grows from one document to
// the next is computed once. Any other is computed for each document from its own documents.
func (p *partition) accumulate(a accumulation, b windowBounds) ([]value.Value, error) {
	vs, err := p.values(a.x)
	if err != nil {
		return nil, err
	}
	return p.fold(vs, a.mk, b)
}

// fold is accumulate for values that are computed already.
func (p *partition) fold(vs []value.Value, mk func() expr.Accumulator, b windowBounds) ([]value.Value, error) {
	out := make([]value.Value, len(vs))
	var acc expr.Accumulator
	from, done := 0, 0 // acc has the values from .. done-1
	size := 0
	for i := range vs {
		lo, hi, err := b.of(p, i)
		if err != nil {
			return nil, err
		}
		if acc == nil || lo != from || hi < done {
			acc, from, done = expr.Fresh(mk, p.env.Run.Collation()), lo, lo
		}
		grown := done < hi
		for ; done < hi; done++ {
			if err := p.env.Run.Step(); err != nil {
				return nil, err
			}
			if err := acc.Add(vs[done]); err != nil {
				return nil, err
			}
		}
		if i > 0 && lo == from && !grown && out[i-1].IsDefined() && b.whole() {
			out[i] = out[i-1]
			continue
		}
		out[i] = acc.Result().Clone()
		if err := p.mem.add(acc.Size() - size + len(out[i].Bytes())); err != nil {
			return nil, err
		}
		size = acc.Size()
	}
	return out, nil
}
