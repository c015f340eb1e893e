package run

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/graphapi/gremlin"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The operators and methods of Groovy that scripts use around traversals. No value changes: what would change a list or
// a map in Groovy is refused.

// expression computes an expression of a script.
func (c *compiler) expression(e *gremlin.Expr) (any, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer func() { c.depth-- }()
	if err := c.x.tick(); err != nil {
		return nil, err
	}
	switch e.Op {
	case "?", "?:":
		part, err := c.choose(e)
		if err != nil {
			return nil, err
		}
		v, _, err := c.resolveArg(part)
		return v, err
	case "&&", "||":
		for _, a := range e.Args {
			v, err := c.operandOf(a)
			if err != nil {
				return nil, err
			}
			if isTrue(v) == (e.Op == "||") {
				return e.Op == "||", nil
			}
		}
		return e.Op == "&&", nil
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = c.operandOf(a); err != nil {
			return nil, err
		}
	}
	v, err := c.operate(e, args)
	if err == nil && !parts[e.Name] && (e.Op != "[]" || isList(args[1])) {
		err = c.x.built(v)
	}
	return v, at(err, e.Line, e.Col)
}

// built counts a text or a collection that an expression has made until the end of the request.
func (x *exec) built(v any) error {
	n := 1
	switch c := v.(type) {
	case string:
	case []any:
		n = len(c)
	case *gvalue.Set:
		n = c.Len()
	case *gvalue.Map:
		n = c.Len()
	default:
		return nil
	}
	if err := weigh(v); err != nil {
		return err
	}
	return x.mem.grow(n, sizeOf(v))
}

// choose returns the part of a ? b : c or a ?: b that is the value.
func (c *compiler) choose(e *gremlin.Expr) (any, error) {
	v, err := c.operandOf(e.Args[0])
	switch {
	case err != nil:
		return nil, err
	case !isTrue(v):
		return e.Args[len(e.Args)-1], nil
	case e.Op == "?":
		return e.Args[1], nil
	}
	return v, nil
}

// operandOf returns the value of an operand, which isn't a traversal.
func (c *compiler) operandOf(arg any) (any, error) {
	v, _, err := c.resolveArg(arg)
	switch v.(type) {
	case *gvalue.Bytecode, *gvalue.P, *gvalue.Strategy:
		return nil, errf(Unsupported, "A traversal is no value: next() or toList() at its end gives one")
	}
	return v, err
}

func (c *compiler) operate(e *gremlin.Expr, args []any) (any, error) {
	v := args[0:min(1, len(args))]
	switch e.Op {
	case "!":
		return !isTrue(v[0]), nil
	case "-":
		return negated(v[0])
	case "==":
		return equal(args[0], args[1]), nil
	case "!=":
		return !equal(args[0], args[1]), nil
	case "<", "<=", ">", ">=", "<=>":
		return ordering(e.Op, args[0], args[1])
	case "in":
		return contains(args[1], args[0])
	case "[]":
		return elementAt(args[0], args[1])
	case "as":
		return converted(args[0], e.Name)
	case "field", "?field":
		return field(args[0], e)
	case "static":
		return c.static(e.Name, args)
	}
	if args[0] == nil && e.Op == "?." {
		return nil, nil
	}
	return c.call(args[0], e.Name, args[1:])
}

// isTrue is Groovy's truth.
func isTrue(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case bool:
		return x
	case string:
		return x != ""
	case []any:
		return len(x) > 0
	case *gvalue.Set:
		return x.Len() > 0
	case *gvalue.BulkSet:
		return len(x.Items()) > 0
	case *gvalue.Map:
		return x.Len() > 0
	case *big.Int:
		return x.Sign() != 0
	case *gvalue.BigDecimal:
		return x.Unscaled.Sign() != 0
	}
	return numberRank(v) < 0 || toFloat(v) != 0
}

// ordering compares two values. null is less than all others.
func ordering(op string, a, b any) (any, error) {
	n := 0
	switch fa, fb := family(a), family(b); {
	case fa == famNull || fb == famNull:
		n = min(fa, 1) - min(fb, 1) // famNull is 0
	case fa != fb || fa > famUUID:
		return nil, errf(Runtime, "Cannot compare %s with %s", typeName(a), typeName(b))
	default:
		n = compareAll(a, b)
	}
	switch op {
	case "<":
		return n < 0, nil
	case "<=":
		return n <= 0, nil
	case ">":
		return n > 0, nil
	case ">=":
		return n >= 0, nil
	}
	return int32(n), nil
}

// contains is v in c.
func contains(c, v any) (any, error) {
	switch x := c.(type) {
	case nil:
		return v == nil, nil
	case *gvalue.Map:
		_, ok := x.Get(v)
		return ok, nil
	}
	if isCollection(c) {
		return indexOf(listOf(c), v) >= 0, nil
	}
	return equal(c, v), nil
}

func indexOf(l []any, v any) int {
	return slices.IndexFunc(l, func(e any) bool { return equal(e, v) })
}

// elementAt is of[at]. A negative index counts from the end. A list of indexes gives a list, or a text.
func elementAt(of, at any) (any, error) {
	if m, ok := of.(*gvalue.Map); ok {
		v, _ := m.Get(at)
		return v, nil
	}
	s, isText := of.(string)
	if !isText && !isCollection(of) {
		return nil, errf(Unsupported, "[] is not supported for %s", typeName(of))
	}
	var l []any
	var r []rune
	n := 0
	if isText {
		r = []rune(s)
		n = len(r)
	} else {
		l = listOf(of)
		n = len(l)
	}
	one := func(at any) (any, error) {
		i, ok := gvalue.Integer(at)
		if !ok {
			return nil, errf(Runtime, "An index is an integer, not a %s", typeName(at))
		}
		from := i
		if i < 0 {
			from += int64(n)
		}
		switch {
		case from < 0 || isText && from >= int64(n):
			return nil, errf(Runtime, "The index %d is out of range: there are %d elements", i, n)
		case isText:
			return string(r[from]), nil
		case from >= int64(n):
			return nil, nil
		}
		return l[from], nil
	}
	many, ok := at.([]any)
	if !ok {
		return one(at)
	}
	out := make([]any, len(many))
	for i, at := range many {
		var err error
		if out[i], err = one(at); err != nil {
			return nil, err
		}
	}
	if isText {
		return joined(out, "")
	}
	return out, nil
}

// joined returns the texts of a list with a separator between them.
func joined(l []any, sep string) (string, error) {
	var b strings.Builder
	for i, v := range l {
		if i > 0 {
			b.WriteString(sep)
		}
		t, err := textOf(v)
		if err != nil {
			return "", err
		}
		if b.WriteString(t); b.Len() > maxText {
			return "", errf(Memory, "The string is too long")
		}
	}
	return b.String(), nil
}

// field is of.name: an entry of a map, or a property of a date.
func field(of any, e *gremlin.Expr) (any, error) {
	m, isMap := of.(*gvalue.Map)
	switch {
	case isMap:
		v, _ := m.Get(e.Name)
		return v, nil
	case of == nil && e.Op == "?field":
		return nil, nil
	case family(of) == famDate && e.Name == "time":
		return gvalue.TimeOf(of).UnixMilli(), nil
	}
	return nil, errf(Unsupported, "The property '%.50s' is not supported for %s", e.Name, typeName(of))
}

// converted is v as typ.
func converted(v any, typ string) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch typ {
	case "int", "Integer", "long", "Long", "double", "Double", "float", "Float", "BigDecimal", "BigInteger":
		return asNumberType(v, typ)
	case "String":
		return textOf(v)
	case "boolean", "Boolean":
		return isTrue(v), nil
	case "List", "ArrayList", "Set":
		if isCollection(v) {
			if typ == "Set" {
				return gvalue.SetOf(listOf(v)...), nil
			}
			return listOf(v), nil
		}
	}
	return nil, errf(Unsupported, "The conversion of %s to %.50s is not supported", typeName(v), typ)
}

// asNumberType converts a number or the text of one. Integers lose the bits that don't fit, as in Java.
func asNumberType(v any, typ string) (any, error) {
	s, isText := v.(string)
	switch {
	case isText:
		n, err := asNumber(s)
		if d, ok := gvalue.ParseBigDecimal(strings.TrimSpace(s)); ok && strings.HasPrefix(typ, "Big") {
			n, err = d, nil
		}
		if err != nil {
			return nil, err
		}
		if _, whole := gvalue.Integer(n); !whole && (strings.EqualFold(typ, "long") || typ[0]|0x20 == 'i') {
			return nil, errf(Runtime, "For input string: \"%.40s\"", s)
		}
		v = n
	case numberRank(v) < 0:
		return nil, errf(Runtime, "A %s is no number", typeName(v))
	}
	switch typ {
	case "double", "Double":
		return toFloat(v), nil
	case "float", "Float":
		return float32(toFloat(v)), nil
	case "BigDecimal":
		return asType(v, "BIGDECIMAL")
	case "BigInteger":
		return asType(v, "BIGINT")
	}
	n, ok := gvalue.Integer(v)
	switch f := toFloat(v); {
	case ok:
	case isBig(v):
		r := ratOf(v)
		low := new(big.Int).And(new(big.Int).Quo(r.Num(), r.Denom()), new(big.Int).SetUint64(math.MaxUint64))
		n = int64(low.Uint64())
	case f != f:
	case f >= math.MaxInt64:
		n = math.MaxInt64
	case f <= math.MinInt64:
		n = math.MinInt64
	default:
		n = int64(f)
	}
	if strings.EqualFold(typ, "long") {
		return n, nil
	}
	if isFloat(numberRank(v)) {
		return int32(min(max(n, math.MinInt32), math.MaxInt32)), nil
	}
	return int32(n), nil
}

// static calls a function of a class of Java.
func (c *compiler) static(name string, args []any) (any, error) {
	switch name {
	case "System.currentTimeMillis":
		return c.x.g.clock.Now().UnixMilli(), nil
	case "String.valueOf":
		return textOf(args[0])
	case "Math.abs", "Math.max", "Math.min":
		for _, a := range args {
			if numberRank(a) < 0 {
				return nil, errf(Runtime, "%s() takes numbers, not a %s", name, typeName(a))
			}
		}
		switch {
		case name == "Math.abs" && compareNumbers(args[0], int32(0)) < 0:
			return negated(args[0])
		case name == "Math.abs":
			return args[0], nil
		}
		return combineAgg(name[len("Math."):], args[0], args[1])
	}
	typ, _, _ := strings.Cut(name, ".") // Integer.parseInt and similar ones
	return asNumberType(args[0], typ)
}
