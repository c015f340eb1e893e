package run

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/internal/regex"
)

// method is a method of a type: what it takes, and what it does.
//
//	s  a text
//	n  an integer
//	v  any value
//	?  what follows may be absent
type method struct {
	takes string
	f     func(c *compiler, v any, args []any) (any, error)
}

// call calls a method of a value.
func (c *compiler) call(v any, name string, args []any) (any, error) {
	var m method
	ok := false
	switch {
	case v == nil:
		return nil, errf(Runtime, "Cannot invoke method %.50s() on null object", name)
	case name == "toString" && len(args) == 0:
		return textOf(v)
	case name == "equals" && len(args) == 1:
		return equal(v, args[0]), nil
	case name == "compareTo" && len(args) == 1:
		return ordering("<=>", v, args[0])
	case isCollection(v):
		m, ok = listMethods[name]
	case numberRank(v) >= 0:
		m, ok = numberMethods[name]
	default:
		switch v.(type) {
		case string:
			m, ok = textMethods[name]
		case *gvalue.Map:
			m, ok = mapMethods[name]
		case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty, *gvalue.Property:
			m, ok = elementMethods[name]
		}
		if name == "getTime" && family(v) == famDate && len(args) == 0 {
			return gvalue.TimeOf(v).UnixMilli(), nil
		}
	}
	if !ok {
		return nil, errf(Unsupported, "The method %.50s() is not supported for %s", name, typeName(v))
	}
	if !takes(m.takes, args) {
		return nil, errf(Unsupported, "The method %.50s() for %s has other arguments", name, typeName(v))
	}
	return m.f(c, v, args)
}

// parts are the methods that return a part of their object.
var parts = map[string]bool{"toList": true, "first": true, "head": true, "last": true, "tail": true, "init": true,
	"take": true, "drop": true, "get": true, "getAt": true, "getOrDefault": true, "orElse": true, "id": true,
	"label": true, "key": true, "value": true}

func takes(kinds string, args []any) bool {
	least, _, _ := strings.Cut(kinds, "?")
	kinds = strings.Replace(kinds, "?", "", 1)
	if len(args) < len(least) || len(args) > len(kinds) {
		return false
	}
	for i, a := range args {
		_, isText := a.(string)
		_, isInt := gvalue.Integer(a)
		if kinds[i] == 's' && !isText || kinds[i] == 'n' && !isInt {
			return false
		}
	}
	return true
}

// The methods of texts. They count characters.
var textMethods = map[string]method{
	"length":      {"", textFunc(func(s string) any { return int32(utf8.RuneCountInString(s)) })},
	"size":        {"", textFunc(func(s string) any { return int32(utf8.RuneCountInString(s)) })},
	"isEmpty":     {"", textFunc(func(s string) any { return s == "" })},
	"toUpperCase": {"", textFunc(func(s string) any { return strings.ToUpper(s) })},
	"toLowerCase": {"", textFunc(func(s string) any { return strings.ToLower(s) })},
	"trim":        {"", textFunc(func(s string) any { return strings.TrimFunc(s, isBlank) })},
	"capitalize":  {"", textFunc(func(s string) any { return firstAs(s, unicode.ToUpper) })},
	"reverse": {"", textFunc(func(s string) any {
		r := []rune(s)
		slices.Reverse(r)
		return string(r)
	})},
	"toInteger":        {"", toNumber("Integer")},
	"toLong":           {"", toNumber("Long")},
	"toDouble":         {"", toNumber("Double")},
	"toFloat":          {"", toNumber("Float")},
	"toBigDecimal":     {"", toNumber("BigDecimal")},
	"toBigInteger":     {"", toNumber("BigInteger")},
	"toBoolean":        {"", textFunc(isYes)},
	"contains":         {"s", textTest(strings.Contains)},
	"startsWith":       {"s", textTest(strings.HasPrefix)},
	"endsWith":         {"s", textTest(strings.HasSuffix)},
	"equalsIgnoreCase": {"s", textTest(strings.EqualFold)},
	"indexOf":          {"s", textIndex(strings.Index)},
	"lastIndexOf":      {"s", textIndex(strings.LastIndex)},
	"concat": {"s", func(c *compiler, v any, a []any) (any, error) {
		s := sum{x: c.x, acc: v}
		err := s.apply('+', a[0])
		return s.value(), err
	}},
	"charAt": {"n", func(_ *compiler, v any, a []any) (any, error) {
		s, err := partOf(v.(string), a[0], a[0])
		r, _ := utf8.DecodeRuneInString(s)
		return gvalue.Char(r), err
	}},
	"substring": {"n?n", func(_ *compiler, v any, a []any) (any, error) {
		s := v.(string)
		from, _ := gvalue.Integer(a[0])
		to := int64(utf8.RuneCountInString(s))
		if len(a) > 1 {
			to, _ = gvalue.Integer(a[1])
		}
		return partOf(s, from, to-1)
	}},
	"take": {"n", func(_ *compiler, v any, a []any) (any, error) {
		r := []rune(v.(string))
		return string(r[:bounded(a[0], len(r))]), nil
	}},
	"drop": {"n", func(_ *compiler, v any, a []any) (any, error) {
		r := []rune(v.(string))
		return string(r[bounded(a[0], len(r)):]), nil
	}},
	"replace": {"ss", func(_ *compiler, v any, a []any) (any, error) { return textFuncs["replace"](v.(string), a) }},
	"replaceAll": {"ss", func(c *compiler, v any, a []any) (any, error) {
		return c.replaceAll(v.(string), a[0].(string), a[1].(string))
	}},
	"matches": {"s", func(c *compiler, v any, a []any) (any, error) {
		re, err := pattern(`^(?:` + a[0].(string) + `)$`)
		if err != nil {
			return false, err
		}
		return regex.MatchString(re, v.(string), c.x.ctx)
	}},
	"split": {"?s", func(c *compiler, v any, a []any) (any, error) { return c.splitBy(v.(string), a) }},
	"tokenize": {"?s", func(_ *compiler, v any, a []any) (any, error) {
		seps := " \t\n\r\f"
		if len(a) > 0 {
			seps = a[0].(string)
		}
		isSep := func(r rune) bool { return strings.ContainsRune(seps, r) }
		return listOfTexts(strings.FieldsFunc(v.(string), isSep)), nil
	}},
	"padLeft":  {"n?s", func(_ *compiler, v any, a []any) (any, error) { return padded(v.(string), a, true) }},
	"padRight": {"n?s", func(_ *compiler, v any, a []any) (any, error) { return padded(v.(string), a, false) }},
}

func isBlank(r rune) bool { return r <= ' ' }

func isYes(s string) any {
	s = strings.ToLower(strings.TrimSpace(s))
	return s == "true" || s == "y" || s == "1"
}

func textFunc(f func(s string) any) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) { return f(v.(string)), nil }
}

func textTest(f func(s, t string) bool) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, a []any) (any, error) { return f(v.(string), a[0].(string)), nil }
}

func textIndex(f func(s, t string) int) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, a []any) (any, error) {
		i := f(v.(string), a[0].(string))
		if i > 0 {
			i = utf8.RuneCountInString(v.(string)[:i])
		}
		return int32(i), nil
	}
}

func toNumber(typ string) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) { return asNumberType(v, typ) }
}

func firstAs(s string, f func(r rune) rune) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(f(r)) + s[n:]
}

// partOf returns the characters from the first to the last of two places.
func partOf(s string, first, last any) (string, error) {
	from, _ := gvalue.Integer(first)
	to, _ := gvalue.Integer(last)
	r := []rune(s)
	if to++; from < 0 || to > int64(len(r)) || from > to {
		return "", errf(Runtime, "The index is out of range: begin %d, end %d, length %d", from, to, len(r))
	}
	return string(r[from:to]), nil
}

// bounded returns an integer within 0 and n.
func bounded(v any, n int) int {
	i, _ := gvalue.Integer(v)
	return int(min(max(i, 0), int64(n)))
}

func pattern(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, errf(Runtime, "Invalid regular expression: %s", err.Error())
	}
	return re, nil
}

// references are those to groups in the replacement of replaceAll(), and characters behind a backslash.
var references = regexp.MustCompile(`\$(\d)|\\(.)`)

func (c *compiler) replaceAll(s, expr, with string) (any, error) {
	re, err := pattern(expr)
	if err != nil {
		return nil, err
	}
	found, err := regex.FindAll(re, []byte(s), -1, c.x.ctx)
	if err != nil {
		return nil, err
	}
	n := len(found)
	groups := strings.Count(with, "$")
	if n*len(with) > maxText || groups > 0 && len(s)*(groups+1) > maxText {
		return nil, errf(Memory, "The string is too long")
	}
	return re.ReplaceAllString(s, references.ReplaceAllStringFunc(with, func(ref string) string {
		switch {
		case ref[0] == '$':
			return "${" + ref[1:] + "}"
		case ref == `\$`:
			return "$$"
		}
		return ref[1:]
	})), nil
}

// splitBy splits a text where a regular expression matches, or at spaces. Empty texts at the end are left out.
func (c *compiler) splitBy(s string, a []any) (any, error) {
	if len(a) == 0 {
		return listOfTexts(strings.Fields(s)), nil
	}
	re, err := pattern(a[0].(string))
	if err != nil {
		return nil, err
	}
	if _, err := regex.FindAll(re, []byte(s), -1, c.x.ctx); err != nil { // so it can be ended
		return nil, err
	}
	parts := re.Split(s, -1)
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return listOfTexts(parts), nil
}

func listOfTexts(parts []string) []any {
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

func padded(s string, a []any, left bool) (any, error) {
	n, _ := gvalue.Integer(a[0])
	fill := " "
	if len(a) > 1 {
		fill = a[1].(string)
	}
	n -= int64(utf8.RuneCountInString(s))
	if n <= 0 || fill == "" {
		return s, nil
	}
	if n > maxText {
		return nil, errf(Memory, "The string is too long")
	}
	r := []rune(strings.Repeat(fill, int(n)/utf8.RuneCountInString(fill)+1))
	if pad := string(r[:n]); left {
		return pad + s, nil
	}
	return s + string(r[:n]), nil
}

var numberMethods = map[string]method{
	"intValue": {"", toNumber("Integer")}, "toInteger": {"", toNumber("Integer")},
	"longValue": {"", toNumber("Long")}, "toLong": {"", toNumber("Long")},
	"doubleValue": {"", toNumber("Double")}, "toDouble": {"", toNumber("Double")},
	"floatValue": {"", toNumber("Float")}, "toFloat": {"", toNumber("Float")},
	"toBigDecimal": {"", toNumber("BigDecimal")}, "toBigInteger": {"", toNumber("BigInteger")},
	"abs": {"", func(c *compiler, v any, _ []any) (any, error) { return c.static("Math.abs", []any{v}) }},
	"intdiv": {"n", func(_ *compiler, v any, a []any) (any, error) {
		x, ok := gvalue.Integer(v)
		y, _ := gvalue.Integer(a[0])
		if !ok {
			return nil, errOperands()
		}
		if y == 0 {
			return nil, errf(Runtime, "Division by zero")
		}
		n, _ := arithInt('/', x, y)
		return asRank(n, max(numberRank(v), numberRank(a[0]))), nil
	}},
	"plus": {"v", operator('+')}, "minus": {"v", operator('-')}, "multiply": {"v", operator('*')},
	"div": {"v", operator('/')}, "mod": {"v", operator('%')},
}

func operator(op byte) func(*compiler, any, []any) (any, error) {
	return func(c *compiler, v any, a []any) (any, error) {
		s := sum{x: c.x, acc: v}
		err := s.apply(op, a[0])
		return s.value(), err
	}
}

var listMethods = map[string]method{
	"size":    {"", listFunc(func(l []any) any { return int32(len(l)) })},
	"isEmpty": {"", listFunc(func(l []any) any { return len(l) == 0 })},
	"toList":  {"", listFunc(func(l []any) any { return l })},
	"toSet":   {"", listFunc(func(l []any) any { return gvalue.SetOf(l...) })},
	"reverse": {"", listFunc(func(l []any) any {
		l = slices.Clone(l)
		slices.Reverse(l)
		return l
	})},
	"first":       {"", listPart(func(l []any) any { return l[0] })},
	"head":        {"", listPart(func(l []any) any { return l[0] })},
	"last":        {"", listPart(func(l []any) any { return l[len(l)-1] })},
	"tail":        {"", listPart(func(l []any) any { return l[1:] })},
	"init":        {"", listPart(func(l []any) any { return l[:len(l)-1] })},
	"contains":    {"v", listTest(func(l []any, v any) any { return indexOf(l, v) >= 0 })},
	"containsAll": {"v", listTest(containsAll)},
	"indexOf":     {"v", listTest(func(l []any, v any) any { return int32(indexOf(l, v)) })},
	"take":        {"n", listTest(func(l []any, n any) any { return l[:bounded(n, len(l)):bounded(n, len(l))] })},
	"drop":        {"n", listTest(func(l []any, n any) any { return l[bounded(n, len(l)):] })},
	"getAt":       {"n", func(_ *compiler, v any, a []any) (any, error) { return elementAt(v, a[0]) }},
	"get": {"?n", func(_ *compiler, v any, a []any) (any, error) {
		l, at := listOf(v), int64(0) // get() is that of tryNext()
		if len(a) > 0 {
			at, _ = gvalue.Integer(a[0])
		}
		if at < 0 || at >= int64(len(l)) {
			return nil, errf(Runtime, "The index %d is out of range: there are %d elements", at, len(l))
		}
		return l[at], nil
	}},
	"isPresent": {"", listFunc(func(l []any) any { return len(l) > 0 })}, // of tryNext(), as orElse()
	"orElse": {"v", listTest(func(l []any, v any) any {
		if len(l) == 0 {
			return v
		}
		return l[0]
	})},
	"join": {"?s", func(_ *compiler, v any, a []any) (any, error) {
		sep := ""
		if len(a) > 0 {
			sep = a[0].(string)
		}
		return joined(listOf(v), sep)
	}},
	"plus": {"v", operator('+')}, "minus": {"v", operator('-')}, "multiply": {"n", operator('*')},
	"sum": {"", func(c *compiler, v any, _ []any) (any, error) {
		l := listOf(v)
		if len(l) == 0 {
			return nil, nil
		}
		s := sum{x: c.x, acc: l[0]}
		for _, e := range l[1:] {
			if err := s.apply('+', e); err != nil {
				return nil, err
			}
		}
		return s.value(), nil
	}},
	"max": {"", func(_ *compiler, v any, _ []any) (any, error) { return outermost(listOf(v), ">") }},
	"min": {"", func(_ *compiler, v any, _ []any) (any, error) { return outermost(listOf(v), "<") }},
}

func listFunc(f func(l []any) any) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) { return f(listOf(v)), nil }
}

func listTest(f func(l []any, v any) any) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, a []any) (any, error) { return f(listOf(v), a[0]), nil }
}

// listPart makes a method that an empty list doesn't have.
func listPart(f func(l []any) any) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) {
		l := listOf(v)
		if len(l) == 0 {
			return nil, errf(Runtime, "NoSuchElementException: the list is empty")
		}
		return f(l), nil
	}
}

func containsAll(l []any, v any) any {
	have := gvalue.SetOf(l...)
	return !slices.ContainsFunc(listOf(v), func(e any) bool { return !have.Has(e) })
}

// outermost returns the element that is before, or after, all others.
func outermost(l []any, op string) (best any, err error) {
	for i, v := range l {
		is := any(i == 0)
		if i > 0 {
			if is, err = ordering(op, v, best); err != nil {
				return nil, err
			}
		}
		if is == true {
			best = v
		}
	}
	return best, nil
}

var mapMethods = map[string]method{
	"size":        {"", mapFunc(func(m *gvalue.Map) any { return int32(m.Len()) })},
	"isEmpty":     {"", mapFunc(func(m *gvalue.Map) any { return m.Len() == 0 })},
	"containsKey": {"v", func(_ *compiler, v any, a []any) (any, error) { return contains(v, a[0]) }},
	"keySet":      {"", func(_ *compiler, v any, _ []any) (any, error) { return only(columnOf(v, gvalue.Keys)) }},
	"values":      {"", func(_ *compiler, v any, _ []any) (any, error) { return only(columnOf(v, gvalue.Values)) }},
	"plus":        {"v", operator('+')},
	"get": {"v?v", func(_ *compiler, v any, a []any) (any, error) {
		e, ok := v.(*gvalue.Map).Get(a[0])
		if !ok && len(a) > 1 {
			return a[1], nil
		}
		return e, nil
	}},
	"getOrDefault": {"vv", func(_ *compiler, v any, a []any) (any, error) {
		if e, ok := v.(*gvalue.Map).Get(a[0]); ok {
			return e, nil
		}
		return a[1], nil
	}},
}

func mapFunc(f func(m *gvalue.Map) any) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) { return f(v.(*gvalue.Map)), nil }
}

func only(v any, _ bool, err error) (any, error) { return v, err }

var elementMethods = map[string]method{
	"id":    {"", token(gvalue.TID)},
	"label": {"", token(gvalue.TLabel)},
	"key":   {"", token(gvalue.TKey)},
	"value": {"?s", func(_ *compiler, v any, a []any) (any, error) {
		if len(a) == 0 {
			return only(tokenOf(v, gvalue.TValue))
		}
		var out any
		found := false
		eachProperty(v, a[0].(string), func(p any) bool {
			out, found = p, true
			return false
		})
		if !found {
			return nil, errf(Runtime, "The property does not exist as the key has no associated value for the "+
				"provided element: %s:%s", gvalue.Text(v), a[0])
		}
		return out, nil
	}},
}

func token(t gvalue.T) func(*compiler, any, []any) (any, error) {
	return func(_ *compiler, v any, _ []any) (any, error) { return only(tokenOf(v, t)) }
}
