package run

import (
	"math"
	"math/big"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

type countReducer struct{ n int64 }

func (r *countReducer) add(_ *exec, t *trav) error {
	n, err := addCount(r.n, t.bulk)
	r.n = n
	return err
}

func (r *countReducer) result(*exec) (any, bool, error) { return r.n, true, nil }

func buildCount(c *compiler, in *inst) (step, error) {
	if s, _ := scopeOf(in.args); s == gvalue.Local {
		return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
			switch v := t.v.(type) {
			case *gvalue.Map:
				return int64(v.Len()), true, nil
			case *gvalue.Tree:
				return int64(len(v.Entries)), true, nil
			case *gvalue.BulkSet:
				n := int64(0)
				for _, i := range v.Items() {
					n += i.Bulk
				}
				return n, true, nil
			}
			return int64(len(listOf(t.v))), true, nil
		}}, nil
	}
	return &reduceStep{make: func(*exec) reducer { return &countReducer{} }}, nil
}

// aggReducer is sum, min, max and mean. Nulls are ignored, unless there is nothing else: the result is null then.
type aggReducer struct {
	op   string
	acc  any
	n    int64
	any  bool
	null bool
}

func (r *aggReducer) add(_ *exec, t *trav) error {
	if t.v == nil {
		r.null = true
		return nil
	}
	v := t.v
	if r.op == "sum" || r.op == "mean" {
		if family(v) != famNumber {
			return errf(Runtime, "The step %s() can only be applied to numbers, not to a %s", r.op, typeName(v))
		}
		var err error
		if v, err = multiply(v, t.bulk); err != nil {
			return err
		}
	}
	var err error
	if r.n, err = addCount(r.n, t.bulk); err != nil {
		return err
	}
	if !r.any {
		r.acc, r.any = v, true
		return nil
	}
	r.acc, err = combineAgg(r.op, r.acc, v)
	return err
}

func (r *aggReducer) result(*exec) (any, bool, error) {
	if !r.any {
		return nil, r.null, nil
	}
	if r.op == "mean" {
		return meanOf(r.acc, r.n), true, nil
	}
	return r.acc, true, nil
}

// meanOf divides a sum by n. The result is a double, or a decimal if the numbers were big.
func meanOf(sum any, n int64) any {
	if isBig(sum) {
		q := new(big.Rat).Quo(ratOf(sum), new(big.Rat).SetInt64(n))
		if d, ok := gvalue.ParseBigDecimal(q.FloatString(20)); ok {
			return d
		}
	}
	return toFloat(sum) / float64(n)
}

func combineAgg(op string, a, b any) (any, error) {
	switch op {
	case "min", "max":
		fa, fb := family(a), family(b)
		if fa != fb {
			return nil, errf(Runtime, "The step %s() can't compare a %s with a %s", op, typeName(a), typeName(b))
		}
		if isNaN(a) {
			return b, nil
		}
		if isNaN(b) {
			return a, nil
		}
		if c := compareAll(b, a); op == "min" && c < 0 || op == "max" && c > 0 {
			return b, nil
		}
		return a, nil
	}
	return addNumbers(a, b)
}

// multiply returns v times n, in the type of v or, if it doesn't fit, in a wider one.
func multiply(v any, n int64) (any, error) {
	if n == 1 {
		return v, nil
	}
	if i, ok := gvalue.Integer(v); ok {
		p, over := arithInt('*', i, n)
		if over {
			return nil, errOverflow()
		}
		return narrow(p, numberRank(v)), nil
	}
	return arith('*', v, n)
}

func addNumbers(a, b any) (any, error) { return arith('+', a, b) }

// numberRank orders the types by widening.
func numberRank(v any) int {
	switch v.(type) {
	case int8:
		return 0
	case int16:
		return 1
	case int32:
		return 2
	case int64:
		return 3
	case *big.Int:
		return 4
	case float32:
		return 5
	case float64:
		return 6
	case *gvalue.BigDecimal:
		return 7
	}
	return -1
}

// arith computes + - * / in the wider type of two numbers. An integer overflow widens the type; beyond Long it is an
// error, as in TinkerPop.
func arith(op byte, a, b any) (any, error) {
	ra, rb := numberRank(a), numberRank(b)
	if ra < 0 || rb < 0 {
		return nil, errf(Runtime, "Arithmetic needs numbers, not a %s and a %s", typeName(a), typeName(b))
	}
	r := max(ra, rb)
	switch {
	case r <= 4 && (ra == 4 || rb == 4), r == 7, r >= 5 && (ra == 4 || rb == 4):
		return arithBig(op, a, b, r == 4)
	case r >= 5:
		f := arithFloat(op, toFloat(a), toFloat(b))
		if r == 5 {
			return float32(f), nil
		}
		return f, nil
	}
	x, _ := gvalue.Integer(a)
	y, _ := gvalue.Integer(b)
	if op == '/' && y == 0 {
		return nil, errf(Runtime, "Division by zero")
	}
	v, over := arithInt(op, x, y)
	if over {
		return nil, errOverflow()
	}
	return narrow(v, r), nil
}

// narrow converts an integer to the type of rank r, or to a wider one if necessary.
func narrow(v int64, r int) any {
	switch {
	case r <= 0 && v == int64(int8(v)):
		return int8(v)
	case r <= 1 && v == int64(int16(v)):
		return int16(v)
	case r <= 2 && v == int64(int32(v)):
		return int32(v)
	}
	return v
}

func arithInt(op byte, x, y int64) (v int64, overflow bool) {
	switch op {
	case '+':
		v = x + y
		return v, (x >= 0) == (y >= 0) && (v >= 0) != (x >= 0)
	case '-':
		v = x - y
		return v, (x >= 0) != (y >= 0) && (v >= 0) != (x >= 0)
	case '*':
		if x == 0 || y == 0 {
			return 0, false
		}
		v = x * y
		return v, v/y != x || x == -1 && y == math.MinInt64 || y == -1 && x == math.MinInt64
	}
	if x == math.MinInt64 && y == -1 {
		return 0, true
	}
	return x / y, false
}

func arithFloat(op byte, x, y float64) float64 {
	switch op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	}
	return x / y
}

// maxBigBits limits the size of exact numbers, so that repeated multiplication can't exhaust the memory.
const maxBigBits = 1 << 16

func arithBig(op byte, a, b any, integer bool) (any, error) {
	x, y := ratOf(a), ratOf(b)
	r := new(big.Rat)
	switch op {
	case '+':
		r.Add(x, y)
	case '-':
		r.Sub(x, y)
	case '*':
		r.Mul(x, y)
	default:
		if y.Sign() == 0 {
			return nil, errf(Runtime, "Division by zero")
		}
		r.Quo(x, y)
	}
	if r.Num().BitLen() > maxBigBits || r.Denom().BitLen() > maxBigBits {
		return nil, errf(Runtime, "The number is too large")
	}
	if integer {
		q := new(big.Int).Quo(r.Num(), r.Denom())
		return q, nil
	}
	if r.IsInt() {
		return &gvalue.BigDecimal{Unscaled: new(big.Int).Set(r.Num())}, nil
	}
	if d, ok := gvalue.ParseBigDecimal(trimZeros(r.FloatString(34))); ok {
		return d, nil
	}
	return nil, errf(Runtime, "The number is too large")
}

func trimZeros(s string) string {
	for len(s) > 1 && s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}

// buildAgg makes sum min max mean.
func buildAgg(c *compiler, in *inst) (step, error) {
	op := in.op
	if s, _ := scopeOf(in.args); s == gvalue.Local {
		return &mapStep{f: func(x *exec, t *trav) (any, bool, error) { return aggLocal(op, t.v) }}, nil
	}
	return &reduceStep{make: func(*exec) reducer { return &aggReducer{op: op} }}, nil
}

func aggLocal(op string, v any) (any, bool, error) {
	if m, ok := v.(*gvalue.Map); ok {
		v, _, _ = columnOf(m, gvalue.Values)
	}
	var acc any
	n, null := int64(0), false
	for _, e := range listOf(v) {
		if e == nil {
			null = true
			continue
		}
		if (op == "sum" || op == "mean") && family(e) != famNumber {
			return nil, false, errf(Runtime, "The step %s() can only be applied to numbers, not to a %s", op,
				typeName(e))
		}
		if n++; n == 1 {
			acc = e
			continue
		}
		var err error
		if acc, err = combineAgg(op, acc, e); err != nil {
			return nil, false, err
		}
	}
	if n == 0 {
		return nil, null, nil
	}
	if op == "mean" {
		return meanOf(acc, n), true, nil
	}
	return acc, true, nil
}

type foldReducer struct {
	l    []any
	held holder
}

func (r *foldReducer) add(x *exec, t *trav) error {
	for range t.bulk {
		if err := r.held.hold(x, 1, sizeOf(t.v)); err != nil {
			return err
		}
		r.l = append(r.l, t.v)
	}
	return nil
}

func (r *foldReducer) result(x *exec) (any, bool, error) {
	r.held.release() // the step that keeps the list counts it as one value
	if r.l == nil {
		r.l = []any{}
	}
	return r.l, true, nil
}

// opReducer is fold(seed, operator).
type opReducer struct {
	acc  any
	op   gvalue.Operator
	held holder // of addAll
}

func (r *opReducer) add(x *exec, t *trav) error {
	for range t.bulk {
		if err := x.tick(); err != nil {
			return err
		}
		if r.op == gvalue.OpAddAll {
			if err := r.held.hold(x, 1, sizeOf(t.v)); err != nil {
				return err
			}
		}
		v, err := operate(r.op, r.acc, t.v)
		if err != nil {
			return err
		}
		r.acc = v
	}
	return nil
}

func (r *opReducer) result(*exec) (any, bool, error) {
	r.held.release() // as that of foldReducer
	return r.acc, true, nil
}

func buildFold(c *compiler, in *inst) (step, error) {
	switch len(in.args) {
	case 0:
		return &reduceStep{make: func(*exec) reducer { return &foldReducer{} }}, nil
	case 2:
		op, ok := in.args[1].(gvalue.Operator)
		if !ok {
			return nil, in.argErr("an operator is expected")
		}
		seed := in.args[0]
		return &reduceStep{make: func(*exec) reducer { return &opReducer{acc: seed, op: op} }}, nil
	}
	return nil, in.argErr("a seed and an operator are expected")
}

// operate applies an Operator of the language.
func operate(op gvalue.Operator, a, b any) (any, error) {
	switch op {
	case gvalue.OpSum, gvalue.OpSumLong:
		if a == nil {
			return b, nil
		}
		return arith('+', a, b)
	case gvalue.OpMinus:
		return arith('-', a, b)
	case gvalue.OpMult:
		return arith('*', a, b)
	case gvalue.OpDiv:
		return arith('/', a, b)
	case gvalue.OpMin:
		return combineAgg("min", a, b)
	case gvalue.OpMax:
		return combineAgg("max", a, b)
	case gvalue.OpAssign:
		return b, nil
	case gvalue.OpAnd, gvalue.OpOr:
		x, okX := a.(bool)
		y, okY := b.(bool)
		if !okX || !okY {
			return nil, errf(Runtime, "The operator %s needs booleans", op)
		}
		if op == gvalue.OpAnd {
			return x && y, nil
		}
		return x || y, nil
	case gvalue.OpAddAll:
		return addAll(a, b)
	}
	return nil, errf(Unsupported, "The operator %s is not supported", op)
}

func addAll(a, b any) (any, error) {
	switch x := a.(type) {
	case nil:
		return b, nil
	case []any:
		if len(x) > maxHeld {
			return nil, errf(Memory, "The traversal exceeds the memory that one request may use")
		}
		return append(append([]any{}, x...), listOf(b)...), nil
	case *gvalue.Set:
		return gvalue.SetOf(append(append([]any{}, x.Items()...), listOf(b)...)...), nil
	case *gvalue.Map:
		y, ok := b.(*gvalue.Map)
		if !ok {
			break
		}
		m := gvalue.NewMap(x.Len())
		for _, e := range append(append([]gvalue.Entry{}, x.Entries()...), y.Entries()...) {
			m.Put(e.Key, e.Value)
		}
		return m, nil
	}
	return nil, errf(Runtime, "addAll needs collections, not a %s", typeName(a))
}
