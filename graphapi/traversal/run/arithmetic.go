package run

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/graphapi/gremlin"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// arithmetic computes the sums and products of a script by Groovy's rules, which are not those of the steps math() and
// sum(): integers keep their type and wrap around, and a quotient of integers is a BigDecimal.
func (c *compiler) arithmetic(e *gremlin.Arith) (any, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer func() { c.depth-- }()
	acc, err := c.operandOf(e.Terms[0])
	if err != nil {
		return nil, err
	}
	s := sum{x: c.x, acc: acc}
	for i, op := range e.Ops {
		if err := c.x.tick(); err != nil {
			return nil, err
		}
		v, err := c.operandOf(e.Terms[i+1])
		if err == nil {
			err = s.apply(op, v)
		}
		if err != nil {
			return nil, at(err, e.Line, e.Col)
		}
	}
	v := s.value()
	return v, c.x.built(v)
}

// at gives an error about what a script says its place, if it has none.
func at(err error, line, col int) error {
	if e, ok := err.(*Error); ok && e.Line == 0 && e.Kind == Unsupported {
		e.Line, e.Col = line, col
	}
	return err
}

// sum is the value of a chain of operators up to some term. A text or a list to which something was added is this
// chain's own, and grows in place.
type sum struct {
	x    *exec
	acc  any
	text *strings.Builder // instead of acc
	own  bool             // acc is a list that nothing else refers to
}

func (s *sum) value() any {
	if s.text != nil {
		return s.text.String()
	}
	return s.acc
}

// apply applies one operator.
func (s *sum) apply(op byte, v any) error {
	if s.text == nil && joins(op, s.acc, v) {
		s.text = &strings.Builder{}
		s.text.WriteString(gvalue.Text(s.acc)) // of a text or a number
	}
	if s.text != nil && op == '+' && hasText(v) {
		t, err := textOf(v)
		if err == nil {
			err = s.x.room(int64(s.text.Len() + len(t)))
		}
		s.text.WriteString(t)
		return err
	}
	s.acc, s.text = s.value(), nil
	var err error
	switch acc := s.acc.(type) {
	case string:
		s.acc, err = s.x.textOp(op, acc, v)
	case []any:
		err = s.list(op, acc, v)
	case *gvalue.Set:
		l := s.acc.(*gvalue.Set).Items()
		if s.own = false; op == '*' {
			return errOperands()
		}
		if err = s.list(op, l, v); err == nil {
			s.acc, s.own = gvalue.SetOf(listOf(s.acc)...), false
		}
	case *gvalue.Map:
		more, ok := v.(*gvalue.Map)
		if !ok || op != '+' {
			return errOperands()
		}
		s.acc, err = addAll(acc, more)
	default:
		if numberRank(acc) < 0 || numberRank(v) < 0 {
			return errOperands()
		}
		s.acc, err = groovyArith(op, acc, v)
	}
	return err
}

func errOperands() error { return errf(Unsupported, "Arithmetic on these operands is not supported") }

// list computes [..] + v, [..] - v and [..] * n. A list that is added or removed counts as its elements.
func (s *sum) list(op byte, l []any, v any) error {
	n, isInt := gvalue.Integer(v)
	switch {
	case op == '+':
		more := []any{v}
		if isCollection(v) {
			more = listOf(v)
		}
		if err := s.roomFor(len(l) + len(more)); err != nil {
			return err
		}
		if !s.own {
			l = slices.Clone(l)
		}
		s.acc, s.own = append(l, more...), true
		return nil
	case op == '-':
		gone := gvalue.SetOf(v)
		if isCollection(v) {
			gone = gvalue.SetOf(listOf(v)...)
		}
		out := make([]any, 0, len(l))
		for _, e := range l {
			if err := s.x.tick(); err != nil {
				return err
			}
			if !gone.Has(e) {
				out = append(out, e)
			}
		}
		s.acc, s.own = out, true
		return nil
	case op == '*' && isInt && n >= 0:
		if err := s.roomFor(len(l) * int(min(n, maxHeld))); err != nil {
			return err
		}
		s.acc, s.own = slices.Repeat(l, int(n)), true
		return nil
	}
	return errOperands()
}

func (s *sum) roomFor(n int) error {
	if n > maxHeld {
		return tooMuch()
	}
	return s.x.room(int64(n) * valueSize)
}

// textOp computes a text minus its first occurrence of another, and a text n times.
func (x *exec) textOp(op byte, s string, v any) (any, error) {
	n, isInt := gvalue.Integer(v)
	switch {
	case op == '-' && hasText(v):
		t, err := textOf(v)
		return strings.Replace(s, t, "", 1), err
	case op == '*' && isInt && n >= 0:
		if n > maxText || int(n)*len(s) > maxText {
			return nil, errf(Memory, "The string is too long")
		}
		return strings.Repeat(s, int(n)), x.room(n * int64(len(s)))
	}
	return nil, errOperands()
}

// joins reports whether a + b is a text: the first is one, or the second is one and the first a number.
func joins(op byte, a, b any) bool {
	if op != '+' {
		return false
	}
	if _, ok := a.(string); ok {
		return hasText(b)
	}
	_, ok := b.(string)
	return ok && numberRank(a) >= 0
}

// hasText reports whether a value has the same text in Groovy, where that of a map differs.
func hasText(v any) bool {
	switch l := v.(type) {
	case nil, string, bool, gvalue.UUID, gvalue.Char, *gvalue.Vertex, *gvalue.Edge:
		return true
	case []any:
		return !slices.ContainsFunc(l, func(e any) bool { return !hasText(e) })
	}
	return numberRank(v) >= 0
}

func groovyArith(op byte, a, b any) (any, error) {
	ra, rb := numberRank(a), numberRank(b)
	switch {
	case isFloat(ra) || isFloat(rb):
		if op == '%' {
			return math.Mod(toFloat(a), toFloat(b)), nil
		}
		return arithFloat(op, toFloat(a), toFloat(b)), nil
	case op == '/':
		return quotient(a, b)
	case op == '%':
		return remainder(a, b)
	case ra == 7 || rb == 7 || ra == 4 || rb == 4:
		return arithBig(op, a, b, ra != 7 && rb != 7)
	}
	x, _ := gvalue.Integer(a)
	y, _ := gvalue.Integer(b)
	v, _ := arithInt(op, x, y)
	return asRank(v, max(ra, rb)), nil
}

// asRank returns an integer as an Integer, or as a Long if an operand has that rank.
func asRank(v int64, rank int) any {
	if rank == 3 {
		return v
	}
	return int32(v)
}

func isFloat(rank int) bool { return rank == 5 || rank == 6 }

// remainder has the sign of the dividend.
func remainder(a, b any) (any, error) {
	x, y := ratOf(a), ratOf(b)
	if y.Sign() == 0 {
		return nil, errf(Runtime, "Division by zero")
	}
	ra, rb := numberRank(a), numberRank(b)
	if ra <= 3 && rb <= 3 {
		p, _ := gvalue.Integer(a)
		q, _ := gvalue.Integer(b)
		if q == -1 {
			return asRank(0, max(ra, rb)), nil
		}
		return asRank(p%q, max(ra, rb)), nil
	}
	q := new(big.Rat).Quo(x, y)
	if q.Num().BitLen() > maxBigBits || q.Denom().BitLen() > maxBigBits {
		return nil, errf(Runtime, "The number is too large")
	}
	whole := new(big.Int).Quo(q.Num(), q.Denom())
	r := x.Sub(x, y.Mul(y, new(big.Rat).SetInt(whole)))
	if ra != 7 && rb != 7 {
		return r.Num(), nil
	}
	digits, _ := r.FloatPrec()
	if d, ok := gvalue.ParseBigDecimal(r.FloatString(digits)); ok {
		return d, nil
	}
	return nil, errf(Runtime, "The number is too large")
}

// negated is -v.
func negated(v any) (any, error) {
	switch n := v.(type) {
	case *big.Int:
		return new(big.Int).Neg(n), nil
	case *gvalue.BigDecimal:
		return &gvalue.BigDecimal{Unscaled: new(big.Int).Neg(n.Unscaled), Scale: n.Scale}, nil
	case float64:
		return -n, nil
	case float32:
		return -n, nil
	}
	if i, ok := gvalue.Integer(v); ok {
		return asRank(-i, numberRank(v)), nil
	}
	return nil, errOperands()
}

// quotientDigits is how many digits a quotient has after the point if it isn't exact, or more if an operand has more.
const quotientDigits = 10

func quotient(a, b any) (any, error) {
	x, y := ratOf(a), ratOf(b)
	if y.Sign() == 0 {
		return nil, errf(Runtime, "Division by zero")
	}
	r := new(big.Rat).Quo(x, y)
	if r.Num().BitLen() > maxBigBits || r.Denom().BitLen() > maxBigBits {
		return nil, errf(Runtime, "The number is too large")
	}
	digits, exact := r.FloatPrec()
	if !exact {
		digits = max(quotientDigits, scaleOf(a), scaleOf(b))
	}
	if d, ok := gvalue.ParseBigDecimal(r.FloatString(digits)); ok {
		return d, nil
	}
	return nil, errf(Runtime, "The number is too large")
}

func scaleOf(v any) int {
	if d, ok := v.(*gvalue.BigDecimal); ok {
		return int(d.Scale)
	}
	return 0
}
