package run

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// textFuncs are the steps that map one string to another value; args are the step's own.
var textFuncs = map[string]func(s string, args []any) (any, error){
	"toUpper": func(s string, _ []any) (any, error) { return strings.ToUpper(s), nil },
	"toLower": func(s string, _ []any) (any, error) { return strings.ToLower(s), nil },
	"length":  func(s string, _ []any) (any, error) { return int32(len([]rune(s))), nil },
	"trim":    func(s string, _ []any) (any, error) { return strings.TrimSpace(s), nil },
	"lTrim":   func(s string, _ []any) (any, error) { return strings.TrimLeftFunc(s, unicode.IsSpace), nil },
	"rTrim":   func(s string, _ []any) (any, error) { return strings.TrimRightFunc(s, unicode.IsSpace), nil },
	"replace": func(s string, a []any) (any, error) {
		from, ok1 := a[0].(string)
		to, ok2 := a[1].(string)
		if !ok1 || !ok2 {
			return s, nil
		}
		if n := strings.Count(s, from); len(s)+n*len(to) > maxText {
			return nil, errf(Memory, "The string is too long")
		}
		return strings.ReplaceAll(s, from, to), nil
	},
	"split":     splitText,
	"substring": substring,
}

func splitText(s string, a []any) (any, error) {
	var parts []string
	if sep, ok := a[0].(string); ok && sep != "" {
		parts = strings.Split(s, sep)
	} else if ok {
		for _, r := range s {
			parts = append(parts, string(r))
		}
	} else {
		parts = strings.Fields(s)
	}
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out, nil
}

// substring counts characters. A negative index counts from the end.
func substring(s string, a []any) (any, error) {
	r := []rune(s)
	at := func(v any) (int, error) {
		n, ok := gvalue.Integer(v)
		if !ok {
			return 0, errf(Runtime, "substring() takes numbers")
		}
		if n < 0 {
			n += int64(len(r))
		}
		return int(min(max(n, 0), int64(len(r)))), nil
	}
	from, err := at(a[0])
	if err != nil {
		return nil, err
	}
	to := len(r)
	if len(a) > 1 {
		if to, err = at(a[1]); err != nil {
			return nil, err
		}
	}
	if to < from {
		return "", nil
	}
	return string(r[from:to]), nil
}

// buildText makes the steps of textFuncs. They process the value or, with Scope.local, each element of a list.
func buildText(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	f, op := textFuncs[in.op], in.op
	if need := map[string]int{"replace": 2, "split": 1, "substring": 1}[op]; len(args) < need {
		return nil, in.argErr("an argument is missing")
	}
	one := func(v any) (any, error) {
		if v == nil {
			return nil, nil
		}
		s, ok := v.(string)
		if !ok && scope == gvalue.Local {
			return nil, errf(Runtime, "The %s(local) step can only take string or list of strings, but encountered %s",
				op, typeName(v))
		}
		if !ok {
			return nil, errf(Runtime, "The %s() step can only take string as argument, but encountered %s",
				op, typeName(v))
		}
		return f(s, args)
	}
	return mapLocal(scope, one), nil
}

// mapLocal applies f to the value or, with Scope.local, to each element.
//
//go:noinline // each caller would get its own copy of the closure
func mapLocal(scope gvalue.Scope, f func(v any) (any, error)) step {
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		if scope != gvalue.Local || !isCollection(t.v) {
			v, err := f(t.v)
			return v, true, err
		}
		l := listOf(t.v)
		out := make([]any, len(l))
		for i, v := range l {
			r, err := f(v)
			if err != nil {
				return nil, false, err
			}
			out[i] = r
		}
		return out, true, nil
	}}
}

// buildConvert makes asString, asBool, asNumber and asDate.
func buildConvert(c *compiler, in *inst) (step, error) {
	scope, args := scopeOf(in.args)
	switch in.op {
	case "asString":
		return mapLocal(scope, func(v any) (any, error) {
			if v == nil {
				return nil, errf(Runtime, "Can't parse null as String.")
			}
			return textOf(v)
		}), nil
	case "asBool":
		return mapLocal(scope, asBool), nil
	case "asDate":
		return mapLocal(scope, asDate), nil
	}
	if len(args) == 1 {
		typ, ok := args[0].(gvalue.GType)
		if !ok {
			return nil, in.argErr("a type is expected")
		}
		return mapLocal(scope, func(v any) (any, error) { return asType(v, string(typ)) }), nil
	}
	return mapLocal(scope, asNumber), nil
}

func asBool(v any) (any, error) {
	switch b := v.(type) {
	case nil:
		return nil, errf(Runtime, "Can't parse null as Boolean.")
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(b) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, errf(Runtime, "Can't parse %.40s as Boolean.", b)
	}
	if family(v) == famNumber {
		return !isNaN(v) && toFloat(v) != 0, nil
	}
	return nil, errf(Runtime, "Can't parse type %s as Boolean.", typeName(v))
}

func asNumber(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		switch {
		case v == nil, family(v) == famNumber:
			return v, nil
		case family(v) == famDate:
			return gvalue.TimeOf(v).UnixMilli(), nil
		case isList(v):
			return nil, errf(Runtime, "Can't parse type ArrayList as number.")
		}
		return nil, errf(Runtime, "Can't parse type %s as number.", typeName(v))
	}
	s = strings.TrimSpace(s)
	if low := strings.ToLower(s); strings.HasPrefix(low, "0x") {
		if i, err := strconv.ParseInt(low[2:], 16, 64); err == nil {
			return narrow(i, numberRank(int32(0))), nil
		}
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		if i == int64(int32(i)) {
			return int32(i), nil
		}
		return i, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !strings.ContainsAny(s, "xXpP_") {
		return f, nil
	}
	return nil, errf(Runtime, "Can't parse string '%.40s' as number.", s)
}

var javaNames = map[string]string{"BYTE": "Byte", "SHORT": "Short", "INT": "Integer", "LONG": "Long"}

func errTooWide(n any, typ string) error {
	return errf(Runtime, "Can't convert number of type %s to %s due to overflow.", typeName(n), javaNames[typ])
}

// asType is asNumber(type).
func asType(v any, typ string) (any, error) {
	n, err := asNumber(v)
	if n == nil || err != nil {
		return nil, err
	}
	bits := map[string]uint{"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}[typ]
	switch typ {
	case "DOUBLE":
		return toFloat(n), nil
	case "FLOAT":
		return float32(toFloat(n)), nil
	case "BIGINT", "BIGDECIMAL":
		if typ == "BIGINT" {
			r := ratOf(n)
			return new(big.Int).Quo(r.Num(), r.Denom()), nil
		}
		if d, ok := gvalue.ParseBigDecimal(gvalue.Text(n)); ok {
			return d, nil
		}
	}
	if bits == 0 {
		return nil, errf(Runtime, "asNumber() requires a numeric type token, got %s", typ)
	}
	f := math.Trunc(toFloat(n))
	i, isInt := gvalue.Integer(n)
	if !isInt {
		if f < -1<<63 || f >= 1<<63 || f != f {
			return nil, errTooWide(n, typ)
		}
		i = int64(f)
	}
	if bits < 64 && (i < -1<<(bits-1) || i >= 1<<(bits-1)) {
		return nil, errTooWide(n, typ)
	}
	switch bits {
	case 8:
		return int8(i), nil
	case 16:
		return int16(i), nil
	case 32:
		return int32(i), nil
	}
	return i, nil
}

func asDate(v any) (any, error) {
	switch d := v.(type) {
	case string:
		if t, ok := gvalue.ParseOffsetDateTime(d); ok {
			return t, nil
		}
		return nil, errf(Runtime, "Can't parse '%.40s' as Date.", d)
	}
	if family(v) == famDate {
		return gvalue.OffsetDateTime{Time: gvalue.TimeOf(v)}, nil
	}
	if n, ok := gvalue.Integer(v); ok {
		return gvalue.OffsetDateTime{Time: time.UnixMilli(n).UTC()}, nil
	}
	return nil, errf(Runtime, "Can't parse type %s as Date.", typeName(v))
}

var dateUnits = map[gvalue.DT]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour,
	"day": 24 * time.Hour}

func buildDateAdd(c *compiler, in *inst) (step, error) {
	unit, ok := in.args[0].(gvalue.DT)
	d, known := dateUnits[unit]
	n, isInt := gvalue.Integer(in.args[1])
	if !ok || !known || !isInt || n > 1<<31 || n < -1<<31 {
		return nil, in.argErr("a unit (second, minute, hour, day) and a number are expected")
	}
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		if family(t.v) != famDate {
			return nil, false, errf(Runtime, "dateAdd() accepts only a date, not a %s", typeName(t.v))
		}
		tm := gvalue.TimeOf(t.v)
		if unit == "day" {
			return gvalue.OffsetDateTime{Time: tm.AddDate(0, 0, int(n))}, true, nil
		}
		return gvalue.OffsetDateTime{Time: tm.Add(time.Duration(min(max(n, -1<<33), 1<<33)) * d)}, true, nil
	}}, nil
}

// buildDateDiff returns the difference between the current date and another in milliseconds (in seconds before
// TinkerPop 3.8).
func buildDateDiff(c *compiler, in *inst) (step, error) {
	o, err := c.operand(in.args[0])
	if err != nil {
		return nil, err
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		v, ok, err := o.eval(x, t)
		if err != nil {
			return nil, false, err
		}
		if ok && v == nil && family(t.v) == famDate { // null is 1970-01-01
			return gvalue.TimeOf(t.v).UnixMilli(), true, nil
		}
		if !ok || family(v) != famDate || family(t.v) != famDate {
			return nil, false, errf(Runtime, "dateDiff() needs two dates")
		}
		return gvalue.TimeOf(t.v).UnixMilli() - gvalue.TimeOf(v).UnixMilli(), true, nil
	}}, nil
}

// buildReverse reverses a string or a list.
func buildReverse(c *compiler, in *inst) (step, error) {
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		if s, ok := t.v.(string); ok {
			r := []rune(s)
			slices.Reverse(r)
			return string(r), true, nil
		}
		if !isCollection(t.v) {
			return t.v, true, nil
		}
		l := slices.Clone(listOf(t.v))
		slices.Reverse(l)
		return l, true, nil
	}}, nil
}

// buildConcat appends strings and the results of traversals to the current string.
func buildConcat(c *compiler, in *inst) (step, error) {
	var ops []operand
	for _, a := range in.args {
		o, err := c.operand(a)
		if err != nil {
			return nil, err
		}
		ops = append(ops, o)
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		var b strings.Builder
		found := false
		add := func(v any) error {
			switch s := v.(type) {
			case nil:
			case string:
				b.WriteString(s)
				found = true
			default:
				return errf(Runtime, "String concat() can only take string as argument")
			}
			return nil
		}
		if err := add(t.v); err != nil {
			return nil, false, err
		}
		for i := range ops {
			v, ok, err := ops[i].eval(x, t)
			if err != nil {
				return nil, false, err
			}
			if ok {
				if err := add(v); err != nil {
					return nil, false, err
				}
			}
			if b.Len() > maxText {
				return nil, false, errf(Memory, "The string is too long")
			}
		}
		if !found {
			return nil, true, nil
		}
		return b.String(), true, nil
	}}, nil
}

// buildFormat replaces %{name} by values of scopes and properties, and %{_} by results of by().
func buildFormat(c *compiler, in *inst) (step, error) {
	tmpl, ok := in.args[0].(string)
	if !ok {
		return nil, in.argErr("a template is expected")
	}
	bs, err := c.bys(in)
	if err != nil {
		return nil, err
	}
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		var b strings.Builder
		rest, n := tmpl, 0
		for {
			i := strings.Index(rest, "%{")
			if i < 0 {
				b.WriteString(rest)
				return b.String(), true, nil
			}
			b.WriteString(rest[:i])
			end := strings.IndexByte(rest[i:], '}')
			if end < 0 {
				b.WriteString(rest[i:])
				return b.String(), true, nil
			}
			name := rest[i+2 : i+end]
			rest = rest[i+end+1:]
			v, ok, err := formatValue(x, t, name, bs, &n)
			if !ok || err != nil {
				return nil, false, err
			}
			text, err := textOf(v)
			if err != nil {
				return nil, false, err
			}
			if b.WriteString(text); b.Len() > maxText {
				return nil, false, errf(Memory, "The string is too long")
			}
		}
	}}, nil
}

func formatValue(x *exec, t *trav, name string, bs []*by, n *int) (any, bool, error) {
	if name == "_" {
		*n++
		return turn(bs, *n-1).apply(x, t)
	}
	if isElement(t.v) {
		if v, ok, err := byKey(t.v, name); ok || err != nil {
			return v, ok, err
		}
	}
	v, ok := x.scopeValue(t, name, gvalue.Last)
	if !ok {
		return nil, false, nil
	}
	return identityBy.applyTo(x, t, v)
}

func buildConjoin(c *compiler, in *inst) (step, error) {
	sep, ok := in.args[0].(string)
	if !ok {
		return nil, in.argErr("a string is expected")
	}
	return &mapStep{f: func(_ *exec, t *trav) (any, bool, error) {
		if err := notIterable("conjoin", t.v); err != nil {
			return nil, false, err
		}
		var parts []string
		size := 0
		for _, v := range listOf(t.v) {
			if v != nil {
				text, err := textOf(v)
				if err != nil {
					return nil, false, err
				}
				parts = append(parts, text)
				if size += len(parts[len(parts)-1]) + len(sep); size > maxText {
					return nil, false, errf(Memory, "The string is too long")
				}
			}
		}
		return strings.Join(parts, sep), true, nil
	}}, nil
}

// buildListOp makes combine, difference, disjunct, intersect, merge and product of two collections.
func buildListOp(c *compiler, in *inst) (step, error) {
	o, err := c.operand(in.args[0])
	if err != nil {
		return nil, err
	}
	op := in.op
	return &mapStep{f: func(x *exec, t *trav) (any, bool, error) {
		v, ok, err := o.eval(x, t)
		if err != nil {
			return nil, false, err
		}
		if a, isMap := t.v.(*gvalue.Map); isMap && op == "merge" {
			b, bothMaps := v.(*gvalue.Map)
			if !bothMaps {
				return nil, false, errf(Runtime, "merge step expected provided argument to evaluate to a Map, "+
					"encountered %s",
					typeName(v))
			}
			r, err := addAll(a, b)
			return r, true, err
		}
		if err := notIterable(op, t.v); err != nil {
			return nil, false, err
		}
		if !ok || !isCollection(v) {
			return nil, false, notIterableArg(op, v, o.tr != nil)
		}
		a, b := listOf(t.v), listOf(v)
		if op == "product" {
			if err := x.room(int64(len(a)) * int64(len(b)) * pairSize); err != nil {
				return nil, false, err
			}
		}
		r, err := listOp(op, a, b)
		return r, true, err
	}}, nil
}

// notIterable is the error for a traverser whose value isn't a collection.
func notIterable(op string, v any) error {
	switch {
	case isCollection(v):
		return nil
	case v == nil:
		return errf(Runtime, "Incoming traverser for %s step can't be null", op)
	}
	return errf(Runtime, "%s step can only take an array or an Iterable type for incoming traversers, encountered %s",
		op, typeName(v))
}

// notIterableArg is the error for an argument that isn't a collection.
func notIterableArg(op string, v any, traversal bool) error {
	_, isMap := v.(*gvalue.Map)
	switch {
	case traversal && v == nil:
		return errf(Runtime, "traversal argument for %s step must yield an iterable type, not null", op)
	case traversal:
		return errf(Runtime, "traversal argument for %s step must yield an iterable type, encountered %s",
			op, typeName(v))
	case v == nil:
		return errf(Runtime, "Argument provided for %s step can't be null", op)
	case isMap && op == "merge":
		return errf(Runtime, "merge step type mismatch: expected argument to be Iterable but got Map")
	}
	return errf(Runtime, "%s step can only take an array or an Iterable as an argument, encountered %s",
		op, typeName(v))
}

func listOp(op string, a, b []any) (any, error) {
	if len(a)+len(b) > maxHeld || op == "product" && len(a)*len(b) > maxHeld {
		return nil, errf(Memory, "The traversal exceeds the memory that one request may use")
	}
	out := &gvalue.Set{}
	sa, sb := gvalue.SetOf(a...), gvalue.SetOf(b...)
	switch op {
	case "combine":
		return append(slices.Clone(a), b...), nil
	case "merge":
		return gvalue.SetOf(append(slices.Clone(a), b...)...), nil
	case "product":
		l := make([]any, 0, len(a)*len(b))
		for _, x := range a {
			for _, y := range b {
				l = append(l, []any{x, y})
			}
		}
		return l, nil
	case "intersect":
		for _, v := range a {
			if sb.Has(v) {
				out.Add(v)
			}
		}
		return out, nil
	}
	for _, v := range a {
		if !sb.Has(v) {
			out.Add(v)
		}
	}
	if op == "disjunct" {
		for _, v := range b {
			if !sa.Has(v) {
				out.Add(v)
			}
		}
	}
	return out, nil
}
