package expr

import (
	"math"
	"sort"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// Accumulator computes one value from many. Add must copy v if it keeps it. Size returns the approximate number of
// bytes that the accumulator holds. State returns the state in a form that Join accepts: Join adds it to an accumulator
// of the same kind that has read the earlier documents. State may be called once, and no other method after it.
//
// Example: $avg over 1, 2, 6. One accumulator adds 1 and 2, another adds 6. Join of the first with the state of the
// second gives the count 3 and the sum 9, and Result is 3.
type Accumulator interface {
	Add(v value.Value) error
	Result() value.Value
	Size() int
	State() value.Value
	Join(state value.Value) error
}

// Collated is an Accumulator whose result depends on the order of strings.
type Collated interface {
	Accumulator
	Collate(c *collate.Collation)
}

// Fresh returns a new accumulator that compares strings by c.
func Fresh(mk func() Accumulator, c *collate.Collation) Accumulator {
	a := mk()
	if c != nil {
		if x, ok := a.(Collated); ok {
			x.Collate(c)
		}
	}
	return a
}

// Accumulators is the registry of accumulators with one argument. Accumulators of $group with several arguments are in
// package agg.
var Accumulators = map[string]func() Accumulator{
	"$addToSet":     func() Accumulator { return &addToSetAcc{set: NewSet(nil)} },
	"$avg":          func() Accumulator { return &sumAcc{avg: true} },
	"$first":        func() Accumulator { return &endAcc{} },
	"$last":         func() Accumulator { return &endAcc{last: true} },
	"$max":          func() Accumulator { return &extremeAcc{dir: 1} },
	"$mergeObjects": func() Accumulator { return &mergeAcc{m: NewMerger()} },
	"$min":          func() Accumulator { return &extremeAcc{dir: -1} },
	"$push":         func() Accumulator { return &pushAcc{} },
	"$stdDevPop":    func() Accumulator { return &devAcc{} },
	"$stdDevSamp":   func() Accumulator { return &devAcc{sample: true} },
	"$sum":          func() Accumulator { return &sumAcc{} },
}

// accumulatorOps returns the accumulators that are also expressions. They run over the elements of a single array
// argument, or over all arguments.
func accumulatorOps() map[string]operator {
	ops := map[string]operator{"$median": {special: quantileOp}, "$percentile": {special: quantileOp}}
	for _, name := range []string{"$avg", "$max", "$min", "$stdDevPop", "$stdDevSamp", "$sum"} {
		mk := Accumulators[name]
		ops[name] = variadic(func(e *Env, a []value.Value) (value.Value, error) {
			if len(a) == 1 && a[0].Kind() == value.Array {
				a = value.Elements(a[0])
			}
			acc := Fresh(mk, e.Run.Collation())
			for _, v := range a {
				if err := acc.Add(v); err != nil {
					return v, err
				}
			}
			return acc.Result(), nil
		})
	}
	return ops
}

// accLimit is the largest size of one accumulator in bytes.
const accLimit = 64 << 20

func tooMuch(name string) error {
	return merr.New(merr.ExceededMemoryLimit,
		"%s used too much memory and cannot spill to disk. Memory limit: %d bytes", name, accLimit)
}

// sumAcc is $sum or $avg.
type sumAcc struct {
	avg  bool
	long bool // one of the numbers was a long
	sum  num.Sum
	n    int64
}

// narrow returns a sum or product of ints that became a long on the way as an int if it fits one again. Example: of
// 2147483647, 1 and -1 the sum is the int 2147483647. One long among the numbers makes the result a long.
func narrow(v value.Value, long bool) value.Value {
	if long || v.Kind() != value.Int64 {
		return v
	}
	return value.IntOf(v.Int())
}

func (s *sumAcc) Add(v value.Value) error {
	if v.IsNumber() {
		s.n++
		s.long = s.long || v.Kind() == value.Int64
		s.sum.Add(v)
	}
	return nil
}

// total returns the sum of at least one number.
func (s *sumAcc) total() value.Value { return narrow(s.sum.Value(), s.long) }

func (s *sumAcc) Result() value.Value {
	if s.avg {
		if s.n == 0 {
			return value.NullValue()
		}
		return num.Div(s.total(), value.Int64Of(s.n))
	}
	if s.n == 0 {
		return value.Int32Of(0)
	}
	return s.total()
}

// Size implements Accumulator.
func (s *sumAcc) Size() int { return 128 }

type extremeAcc struct {
	coll *collate.Collation
	dir  int
	best value.Value
}

// Collate implements Collated.
func (x *extremeAcc) Collate(c *collate.Collation) { x.coll = c }

func (x *extremeAcc) Add(v value.Value) error {
	if nullish(v) {
		return nil
	}
	if !x.best.IsDefined() || x.dir*x.coll.Compare(v, x.best) > 0 {
		x.best = v.Clone()
	}
	return nil
}

func (x *extremeAcc) Result() value.Value {
	if !x.best.IsDefined() {
		return value.NullValue()
	}
	return x.best
}

// Size implements Accumulator.
func (x *extremeAcc) Size() int { return 64 + len(x.best.Bytes()) }

type endAcc struct {
	last, any bool
	v         value.Value
}

func (f *endAcc) Add(v value.Value) error {
	if f.last || !f.any {
		f.v, f.any = v.Clone(), true
	}
	return nil
}

func (f *endAcc) Result() value.Value {
	if !f.v.IsDefined() {
		return value.NullValue()
	}
	return f.v
}

// Size implements Accumulator.
func (f *endAcc) Size() int { return 64 + len(f.v.Bytes()) }

type pushAcc struct {
	b  []byte
	at int
	n  int
}

func (p *pushAcc) Add(v value.Value) error {
	if !v.IsDefined() {
		return nil
	}
	if p.n == 0 {
		p.at, p.b = bson.Begin(p.b)
	}
	p.b = value.AppendIndexed(p.b, p.n, v)
	p.n++
	if len(p.b) > accLimit {
		return tooMuch("$push")
	}
	return nil
}

func (p *pushAcc) Result() value.Value {
	if p.n == 0 {
		return value.ArrayOf(bson.Empty)
	}
	return value.ArrayOf(bson.End(p.b[:len(p.b):len(p.b)], p.at))
}

// Size implements Accumulator.
func (p *pushAcc) Size() int { return 64 + cap(p.b) }

type addToSetAcc struct {
	set  *Set
	size int
}

// Collate implements Collated.
func (a *addToSetAcc) Collate(c *collate.Collation) { a.set.coll = c }

func (a *addToSetAcc) Add(v value.Value) error {
	if !v.IsDefined() || a.set.Has(v) {
		return nil
	}
	a.set.Add(v.Clone())
	if a.size += len(v.Bytes()) + 96; a.size > accLimit {
		return tooMuch("$addToSet")
	}
	return nil
}

func (a *addToSetAcc) Result() value.Value { return value.MakeArray(a.set.vals) }

// Size implements Accumulator.
func (a *addToSetAcc) Size() int { return 128 + a.size }

type mergeAcc struct {
	m    *Merger
	size int
}

func (a *mergeAcc) Add(v value.Value) error {
	if nullish(v) {
		return nil
	}
	if v.Kind() != value.Object {
		return merr.New(40400, "$mergeObjects requires object inputs, but input is of type %s", TypeName(v))
	}
	a.m.Add(v.Clone())
	if a.size += len(v.Bytes()) + 48*v.Len(); a.size > accLimit {
		return tooMuch("$mergeObjects")
	}
	return nil
}

func (a *mergeAcc) Result() value.Value { return a.m.Value() }

// Size implements Accumulator.
func (a *mergeAcc) Size() int { return 128 + a.size }

// devAcc computes the variance with Welford's algorithm, in one pass.
type devAcc struct {
	sample   bool
	n        int64
	mean, m2 float64
}

func (d *devAcc) Add(v value.Value) error {
	if !v.IsNumber() {
		return nil
	}
	d.n++
	x := num.ToFloat(v)
	delta := x - d.mean
	d.mean += delta / float64(d.n)
	d.m2 += delta * (x - d.mean)
	return nil
}

func (d *devAcc) Result() value.Value {
	n := d.n
	if d.sample {
		n--
	}
	if n <= 0 {
		return value.NullValue()
	}
	return value.DoubleOf(math.Sqrt(d.m2 / float64(n)))
}

// Size implements Accumulator.
func (d *devAcc) Size() int { return 64 }

// NewN returns the accumulator $firstN, $lastN, $maxN or $minN for n values; nil for another name.
func NewN(name string, n int) Accumulator {
	switch name {
	case "$firstN", "$lastN", "$maxN", "$minN":
		return &nAcc{name: name, n: n}
	}
	return nil
}

// Collate implements Collated.
func (a *nAcc) Collate(c *collate.Collation) { a.coll = c }

type nAcc struct {
	coll *collate.Collation
	name string
	n    int
	size int
	vals []value.Value
}

func (a *nAcc) Add(v value.Value) error {
	switch {
	case a.name == "$firstN" && len(a.vals) >= a.n:
		return nil
	case (a.name == "$maxN" || a.name == "$minN") && nullish(v):
		return nil
	}
	if !v.IsDefined() {
		v = value.NullValue()
	}
	a.vals = append(a.vals, v.Clone())
	a.size += len(v.Bytes()) + 48
	if len(a.vals) > 2*a.n+16 {
		a.trim()
	}
	if a.size > accLimit {
		return tooMuch(a.name)
	}
	return nil
}

func (a *nAcc) trim() {
	switch a.name {
	case "$lastN":
		a.vals = append([]value.Value(nil), a.vals[max(0, len(a.vals)-a.n):]...)
	case "$maxN", "$minN":
		dir := 1
		if a.name == "$maxN" {
			dir = -1
		}
		sort.SliceStable(a.vals, func(i, j int) bool { return dir*a.coll.Compare(a.vals[i], a.vals[j]) < 0 })
		a.vals = a.vals[:min(a.n, len(a.vals))]
	}
	a.size = 0
	for _, v := range a.vals {
		a.size += len(v.Bytes()) + 48
	}
}

func (a *nAcc) Result() value.Value {
	a.trim()
	return value.MakeArray(a.vals)
}

// Size implements Accumulator.
func (a *nAcc) Size() int { return 64 + a.size }
