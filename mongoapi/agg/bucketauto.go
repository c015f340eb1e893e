package agg

import (
	"math"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// autoBuckets is a compiled $bucketAuto.
//
// Example: groupBy "$a", buckets 2, over a = 1, 2, 2, 2, 9. A bucket should have round(5 / 2) = 3 documents. The first
// takes 1, 2, 2 and the other document with 2. The second takes the rest. The first ends where the second begins: {_id:
// {min: 1, max: 9}, count: 4}, {_id: {min: 9, max: 9}, count: 1}.
type autoBuckets struct {
	by      expr.Expr
	buckets int64
	accs    []accumulation
	round   *granularity // nil: none
}

func bucketAuto(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() != value.Object {
		return nil, merr.New(40240, "The argument to $bucketAuto must be an object, but found type: %s.",
			expr.TypeName(arg))
	}
	a := &autoBuckets{accs: []accumulation{countOne()}}
	for it := arg.Iter(); it.Next(); {
		if err := a.set(c, string(it.Key()), it.Value()); err != nil {
			return nil, err
		}
	}
	if a.by == nil || a.buckets == 0 {
		return nil, merr.New(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified.")
	}
	return a.run, nil
}

// set compiles one argument.
func (a *autoBuckets) set(c *compiler, name string, v value.Value) (err error) {
	switch name {
	case "groupBy":
		text := v.Str()
		if v.Kind() != value.Object && (v.Kind() != value.String || text == "" || text[0] != '$') {
			return merr.New(40239, "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an "+
				"expression object, but found: %s.", merr.Show(v))
		}
		a.by, err = expr.Compile(v, c.o.Scope)
		return err
	case "buckets":
		if !v.IsNumber() {
			return merr.New(40241, "The $bucketAuto 'buckets' field must be a numeric value, but found type: %s.",
				expr.TypeName(v))
		}
		n, whole := num.ToInt64(v, false)
		if !whole || n > math.MaxInt32 || n < math.MinInt32 {
			return merr.New(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but "+
				"found %s.", merr.Show(v))
		}
		if n <= 0 {
			return merr.New(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %d.", n)
		}
		a.buckets = n
		return nil
	case "output":
		a.accs, err = c.output("$bucketAuto", 40244, v)
		return err
	case "granularity":
		return a.setGranularity(v)
	}
	return merr.New(40245, "Unrecognized option to $bucketAuto: %s.", name)
}

// keyOrder sorts the rows {k: {v: key}, d: document}. The key is in an object because a sort compares the least element
// of an array and not the array.
var keyOrder = order.Order{{Path: []string{"k"}}}

func keyedRow(key, d value.Value) value.Value {
	at, b := bson.Begin(nil)
	ka, b := bson.BeginObject(b, "k")
	b = bson.End(value.AppendElement(b, "v", key), ka)
	return value.ObjectOf(bson.End(value.AppendElement(b, "d", d), at))
}

func (a *autoBuckets) run(x *Exec, src Iter) (Iter, error) {
	return lazyFrom(x, src, "$bucketAuto", func(src Iter, h *hold) (Iter, error) {
		n := int64(0)
		keyed := &mapIter{src, x.Env.Run, func(d value.Value) (value.Value, error) {
			n++
			key, err := a.by(x.Env.With(d))
			if err == nil && a.round != nil {
				err = a.round.check(key)
			}
			if !key.IsDefined() {
				key = value.NullValue()
			}
			return keyedRow(key, d), err
		}}
		s, err := fill(keyed, h, collated(x, keyOrder), 0)
		if err != nil {
			return nil, err
		}
		rows, err := s.docs()
		if err != nil {
			return nil, err
		}
		size := max(1, int64(math.Round(float64(n)/float64(a.buckets))))
		return &bucketIter{a: a, x: x, rows: rows, h: h, size: size}, nil
	}), nil
}

// bucketIter cuts sorted rows into buckets.
type bucketIter struct {
	a       *autoBuckets
	x       *Exec
	rows    Iter
	h       *hold
	size    int64 // documents that a bucket should have
	done    int64 // buckets
	ahead   value.Value
	key     value.Value // of ahead
	bound   value.Value // with a granularity: where the bucket before ends
	started bool
}

// read reads the next row into ahead, Undefined at the end.
func (b *bucketIter) read() error {
	row, ok, err := b.rows.Next()
	if err != nil || !ok {
		b.ahead, b.key = value.Undef(), value.Undef()
		return err
	}
	row = row.Clone()
	b.ahead, b.key = row.Get("d"), row.Get("k").Get("v")
	return nil
}

// Next implements Iter.
func (b *bucketIter) Next() (value.Value, bool, error) {
	if !b.started {
		b.started = true
		if err := b.read(); err != nil {
			return b.ahead, false, err
		}
	}
	if !b.ahead.IsDefined() {
		return value.Undef(), false, nil
	}
	b.done++
	least, greatest := b.key, b.key
	if b.a.round != nil {
		if least = b.bound; b.done == 1 {
			least = b.a.round.down(b.key)
		}
	}
	accs := make([]expr.Accumulator, len(b.a.accs))
	for i, a := range b.a.accs {
		accs[i] = expr.Fresh(a.mk, b.x.Env.Run.Collation())
	}
	held := 0
	for n := int64(0); b.ahead.IsDefined(); n++ {
		if n >= b.size && b.done < b.a.buckets && b.beyond(greatest) {
			break
		}
		greatest = b.key
		size := 0
		for i, a := range b.a.accs {
			v, err := a.x(b.x.Env.With(b.ahead))
			if err == nil {
				err = accs[i].Add(v)
			}
			if err != nil {
				return v, false, err
			}
			size += accs[i].Size()
		}
		if err := b.h.take(size - held); err != nil {
			return b.ahead, false, err
		}
		held = size
		if err := b.x.Env.Run.Step(); err != nil {
			return b.ahead, false, err
		}
		if err := b.read(); err != nil {
			return b.ahead, false, err
		}
	}
	if greatest = b.end(greatest); b.a.round != nil {
		b.bound = greatest
	}
	at, doc := bson.Begin(nil)
	id, doc := bson.BeginObject(doc, "_id")
	doc = value.AppendElement(doc, "min", least)
	doc = bson.End(value.AppendElement(doc, "max", greatest), id)
	for i, a := range b.a.accs {
		v, err := result(accs[i])
		if err != nil {
			return v, false, err
		}
		doc = value.AppendElement(doc, a.name, v)
	}
	return value.ObjectOf(bson.End(doc, at)), true, b.h.take(-held)
}

// beyond reports whether the next row is beyond a bucket with this greatest key.
func (b *bucketIter) beyond(greatest value.Value) bool {
	if b.x.Env.Run.Collation().Compare(b.key, greatest) == 0 {
		return false
	}
	return b.a.round == nil || value.CompareBSON(b.a.round.up(greatest), b.key) <= 0
}

// end returns the upper bound of a bucket with this greatest key: the least key of the next bucket, or a preferred
// number.
func (b *bucketIter) end(greatest value.Value) value.Value {
	if b.a.round == nil {
		if b.ahead.IsDefined() {
			return b.key
		}
		return greatest
	}
	if num.IsZero(greatest) && b.ahead.IsDefined() {
		return b.a.round.down(b.key)
	}
	return b.a.round.up(greatest)
}

// Close implements Iter.
func (b *bucketIter) Close() { b.rows.Close() }
