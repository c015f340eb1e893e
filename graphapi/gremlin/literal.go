package gremlin

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// number returns the value of the literal t, negated if a minus preceded it.
func number(t *token, neg bool) (any, error) {
	s := t.text
	suffix := byte(0)
	hex := len(s) > 1 && (s[1] == 'x' || s[1] == 'X')
	switch c := s[len(s)-1] | 0x20; {
	case hex && (c == 'l' || c == 'n' || c == 'g' || c == 's' || c == 'i'), !hex && c >= 'a' && c <= 'z':
		suffix, s = c, s[:len(s)-1]
	}
	if neg {
		s = "-" + s
	}
	if suffix == 'f' || suffix == 'd' || suffix == 'm' || !hex && strings.ContainsAny(s, ".eE") {
		return decimal(t, s, suffix)
	}
	return integer(t, s, suffix)
}

func integer(t *token, s string, suffix byte) (any, error) {
	digits := strings.TrimPrefix(s, "-")
	base := 10
	switch {
	case len(digits) > 1 && (digits[1] == 'x' || digits[1] == 'X'):
		base, digits = 16, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	}
	if len(digits) > 1000 {
		return nil, failAt(t, "The number is too long")
	}
	b, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, failAt(t, "Invalid number '%s'", t.text)
	}
	if s[0] == '-' {
		b.Neg(b)
	}
	bits := map[byte]int{'b': 8, 's': 16, 'i': 32, 'l': 64}[suffix]
	if suffix == 'n' || suffix == 'g' {
		return b, nil
	}
	if bits == 0 {
		switch {
		case b.IsInt64() && b.Int64() == int64(int32(b.Int64())):
			bits = 32
		case b.IsInt64():
			bits = 64
		default:
			return b, nil
		}
	}
	if !b.IsInt64() || b.Int64() > 1<<(bits-1)-1 || b.Int64() < -1<<(bits-1) {
		return nil, failAt(t, "The number '%s' is out of range", t.text)
	}
	switch n := b.Int64(); bits {
	case 8:
		return int8(n), nil
	case 16:
		return int16(n), nil
	case 32:
		return int32(n), nil
	default:
		return n, nil
	}
}

func decimal(t *token, s string, suffix byte) (any, error) {
	if suffix == 'm' {
		if d, ok := gvalue.ParseBigDecimal(s); ok {
			return d, nil
		}
		return nil, failAt(t, "Invalid number '%s'", t.text)
	}
	bits := 64
	if suffix == 'f' {
		bits = 32
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil && !math.IsInf(f, 0) {
		return nil, failAt(t, "Invalid number '%s'", t.text)
	}
	if suffix == 'f' {
		return float32(f), nil
	}
	return f, nil
}

// list reads [a, b], [k: v] or [:]; the opening bracket is next.
func (p *parser) list() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.next()
	p.brackets++
	defer func() { p.brackets-- }()
	if p.is(":") && p.isAt(1, "]") {
		p.i += 2
		return &gvalue.Map{}, nil
	}
	if p.accept("]") {
		return []any{}, nil
	}
	if p.mapAhead() {
		return p.mapEntries()
	}
	p.wasRange = false
	first, err := p.argument()
	if err != nil {
		return nil, err
	}
	isRange := p.wasRange
	p.wasRange = false
	if p.is(":") {
		return p.mapRest(first)
	}
	l := []any{first}
	for p.accept(",") {
		if p.is("]") { // Groovy allows a trailing comma
			break
		}
		v, err := p.argument()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	if p.accept("]") {
		if r, ok := l[0].([]any); ok && len(l) == 1 && isRange {
			return r, nil
		}
		return l, nil
	}
	return nil, p.unexpected("',' or ']' is expected")
}

// mapAhead reports whether a bare or qualified word and a colon follow: the first key of a map.
func (p *parser) mapAhead() bool {
	t := p.peek()
	return (t.kind == tokIdent || t.kind == tokString || t.kind == tokNumber) && p.isAt(1, ":")
}

func (p *parser) mapEntries() (any, error) {
	k, err := p.mapKey()
	if err != nil {
		return nil, err
	}
	return p.mapRest(k)
}

// mapRest reads a map from the colon after its first key.
func (p *parser) mapRest(key any) (any, error) {
	m := &gvalue.Map{}
	for {
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		v, err := p.argument()
		if err != nil {
			return nil, err
		}
		m.Put(key, v)
		if p.accept("]") {
			return m, nil
		}
		if !p.accept(",") {
			return nil, p.unexpected("',' or ']' is expected")
		}
		if p.accept("]") {
			return m, nil
		}
		if key, err = p.mapKey(); err != nil {
			return nil, err
		}
	}
}

// mapKey reads a key: a bare word is a string; a qualified name or an expression in parentheses is a value.
func (p *parser) mapKey() (any, error) {
	if t := p.peek(); t.kind == tokIdent && p.isAt(1, ":") {
		p.i++
		return t.text, nil
	}
	return p.argument()
}

// set reads {a, b}.
func (p *parser) set() (any, error) {
	args, err := p.arguments("{", "}")
	if err != nil {
		return nil, err
	}
	return gvalue.SetOf(args...), nil
}

// maxRange limits the length of the list of a range literal.
const maxRange = 100_000

// rangeTo reads the end of a range, after the two points of 1..3.
func (p *parser) rangeTo(from any) (any, error) {
	t := p.next()
	to, err := p.sum()
	if err != nil {
		return nil, err
	}
	a, okA := integral(from)
	b, okB := integral(to)
	if !okA || !okB {
		return nil, unsupportedAt(t, "A range takes two integers")
	}
	if b-a > maxRange || a-b > maxRange {
		return nil, failAt(t, "The range is too long")
	}
	step := int64(1)
	if b < a {
		step = -1
	}
	l := make([]any, 0, 8)
	_, long := from.(int64)
	for i := a; ; i += step {
		if long {
			l = append(l, i)
		} else {
			l = append(l, int32(i))
		}
		if i == b {
			break
		}
	}
	p.wasRange = true
	return l, nil
}

func integral(v any) (int64, bool) {
	switch n := v.(type) {
	case int32:
		return int64(n), true
	case int64:
		return n, n > -1<<40 && n < 1<<40
	}
	return 0, false
}

// isLiteral reports whether a value is null, a text, a number, a date or a collection.
func isLiteral(v any) bool {
	switch v.(type) {
	case nil, string, bool, int8, int16, int32, int64, float32, float64, *big.Int, *gvalue.BigDecimal, gvalue.UUID,
		gvalue.Date, gvalue.OffsetDateTime, []any, *gvalue.Map, *gvalue.Set:
		return true
	}
	return false
}
