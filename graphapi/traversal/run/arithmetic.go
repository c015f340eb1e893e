package run

import (
	"math/big"
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
	acc, err := c.term(e, 0)
	if err != nil {
		return nil, err
	}
	var text *strings.Builder // once a term is a text, all later ones are appended to it
	for i, op := range e.Ops {
		v, err := c.term(e, i+1)
		if err != nil {
			return nil, err
		}
		if text == nil && joins(op, acc, v) {
			text = &strings.Builder{}
			text.WriteString(gvalue.Text(acc))
		}
		switch {
		case text != nil && op == '+' && (isScalar(v) || v == nil):
			s := gvalue.Text(v)
			if err := c.x.room(int64(text.Len() + len(s))); err != nil {
				return nil, err
			}
			text.WriteString(s)
		case text == nil && numberRank(acc) >= 0 && numberRank(v) >= 0:
			if acc, err = groovyArith(op, acc, v); err != nil {
				return nil, err
			}
		default:
			return nil, &Error{Kind: Unsupported, Msg: "Arithmetic on these operands is not supported",
				Line: e.Line, Col: e.Col}
		}
	}
	if text != nil {
		return text.String(), nil
	}
	return acc, nil
}

func (c *compiler) term(e *gremlin.Arith, i int) (any, error) {
	v, _, err := c.resolveArg(e.Terms[i])
	return v, err
}

// joins reports whether a + b is a text: the first is one, or the second is one and the first a number.
func joins(op byte, a, b any) bool {
	if op != '+' {
		return false
	}
	if _, ok := a.(string); ok {
		return isScalar(b) || b == nil
	}
	_, ok := b.(string)
	return ok && numberRank(a) >= 0
}

func isScalar(v any) bool {
	switch v.(type) {
	case string, bool, gvalue.UUID, gvalue.Char:
		return true
	}
	return numberRank(v) >= 0
}

func groovyArith(op byte, a, b any) (any, error) {
	ra, rb := numberRank(a), numberRank(b)
	switch {
	case isFloat(ra) || isFloat(rb):
		return arithFloat(op, toFloat(a), toFloat(b)), nil
	case op == '/':
		return quotient(a, b)
	case ra == 7 || rb == 7 || ra == 4 || rb == 4:
		return arithBig(op, a, b, ra != 7 && rb != 7)
	}
	x, _ := gvalue.Integer(a)
	y, _ := gvalue.Integer(b)
	v, _ := arithInt(op, x, y)
	if ra == 3 || rb == 3 {
		return v, nil
	}
	return int32(v), nil
}

func isFloat(rank int) bool { return rank == 5 || rank == 6 }

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
