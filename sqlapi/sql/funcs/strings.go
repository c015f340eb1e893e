package funcs

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// maxString is the longest string in bytes that REPLICATE and similar functions build.
const maxString = 2 << 20

// init registers the string functions. Positions and lengths count characters (code points); positions begin at 0.
func init() {
	test := func(name string, exact, fold func(s, t []byte) bool) *Func {
		return &Func{Name: name, Types: "ss?b", Eval: func(_ *Context, a []value.Value) value.Value {
			s, t := a[0].Bytes(), a[1].Bytes()
			if optBool(a, 2) {
				return boolean(fold(s, t))
			}
			return boolean(exact(s, t))
		}}
	}
	s1 := func(name string, fn func(s string) string) *Func {
		return &Func{Name: name, Types: "s", Eval: func(_ *Context, a []value.Value) value.Value {
			return value.StringOf(fn(a[0].Str()))
		}}
	}
	register(
		test("CONTAINS", bytes.Contains, foldContains),
		test("STARTSWITH", bytes.HasPrefix, func(s, t []byte) bool { return bytes.HasPrefix(fold(s), fold(t)) }),
		test("ENDSWITH", bytes.HasSuffix, func(s, t []byte) bool { return bytes.HasSuffix(fold(s), fold(t)) }),
		test("STRINGEQUALS", bytes.Equal, func(s, t []byte) bool { return bytes.Equal(fold(s), fold(t)) }),
		s1("LOWER", strings.ToLower), s1("UPPER", strings.ToUpper),
		s1("REVERSE", reverse),
		&Func{Name: "CONCAT", Types: "ss+", Eval: func(_ *Context, a []value.Value) value.Value { return concat(a) }},
		&Func{Name: "LENGTH", Types: "s", Eval: func(_ *Context, a []value.Value) value.Value {
			return value.IntOf(int64(utf8.RuneCount(a[0].Bytes())))
		}},
		&Func{Name: "INDEX_OF", Types: "ss?n", Eval: indexOf},
		&Func{Name: "LastIndexOf", Types: "ss?n", Eval: lastIndexOf},
		&Func{Name: "LEFT", Types: "sn", Eval: func(_ *Context, a []value.Value) value.Value {
			return substring(a[0], 0, a[1].Float())
		}},
		&Func{Name: "RIGHT", Types: "sn", Eval: func(_ *Context, a []value.Value) value.Value {
			n := float64(utf8.RuneCount(a[0].Bytes()))
			return substring(a[0], math.Max(0, n-math.Trunc(a[1].Float())), a[1].Float())
		}},
		&Func{Name: "SUBSTRING", Types: "snn", Eval: func(_ *Context, a []value.Value) value.Value {
			return substring(a[0], a[1].Float(), a[2].Float())
		}},
		trim("LTRIM", strings.TrimLeftFunc, func(s, set string) string { return strings.TrimPrefix(s, set) }),
		trim("RTRIM", strings.TrimRightFunc, func(s, set string) string { return strings.TrimSuffix(s, set) }),
		trim("TRIM", strings.TrimFunc, func(s, set string) string {
			return strings.TrimSuffix(strings.TrimPrefix(s, set), set)
		}),
		&Func{Name: "REPLACE", Types: "sss", Eval: func(_ *Context, a []value.Value) value.Value {
			s, from, to := a[0].Str(), a[1].Str(), a[2].Str()
			if from == "" || len(s)+strings.Count(s, from)*(len(to)-len(from)) > maxString {
				if from == "" {
					return a[0]
				}
				return value.Value{}
			}
			return value.StringOf(strings.ReplaceAll(s, from, to))
		}},
		&Func{Name: "REPLICATE", Types: "sn", Eval: func(_ *Context, a []value.Value) value.Value {
			n := math.Trunc(a[1].Float())
			if n < 0 || n > 10000 || n*float64(len(a[0].Bytes())) > maxString {
				return value.Value{}
			}
			return value.StringOf(strings.Repeat(a[0].Str(), int(n)))
		}},
	)
	stringParts()
	stringConversions()
	containsMany()
}

// fold returns s in lower case for case-insensitive tests.
func fold(s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return bytes.ToLower(s)
		}
	}
	return s
}

func foldContains(s, t []byte) bool { return bytes.Contains(fold(s), fold(t)) }

func reverse(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

func concat(a []value.Value) value.Value {
	n := 0
	for _, v := range a {
		n += len(v.Bytes())
	}
	if n > maxString {
		return value.Value{}
	}
	buf := make([]byte, 0, n)
	for _, v := range a {
		buf = append(buf, v.Bytes()...)
	}
	return value.StringBytes(buf)
}

// Concat joins strings. The result is undefined when an argument is no string.
func Concat(a []value.Value) value.Value {
	for _, v := range a {
		if v.Kind() != value.String {
			return value.Value{}
		}
	}
	return concat(a)
}

// substring returns length characters from start. A negative start counts as 0. A negative length gives the empty
// string.
func substring(s value.Value, start, length float64) value.Value {
	start, length = math.Trunc(start), math.Trunc(length)
	if start < 0 {
		start = 0
	}
	if math.IsNaN(start) || math.IsNaN(length) || length <= 0 {
		return value.StringOf("")
	}
	b := s.Bytes()
	from := len(b)
	i := 0.0
	for pos := 0; pos < len(b); i++ {
		if i == start {
			from = pos
		}
		if i >= start && i-start >= length {
			return value.StringBytes(b[from:pos])
		}
		_, w := utf8.DecodeRune(b[pos:])
		pos += w
	}
	return value.StringBytes(b[from:])
}

func indexOf(_ *Context, a []value.Value) value.Value {
	s, t := a[0].Bytes(), a[1].Bytes()
	skip := 0
	if len(a) == 3 {
		n, ok := ToInt(a[2])
		if !ok {
			return value.Value{}
		}
		for ; n > 0 && skip < len(s); n-- {
			_, w := utf8.DecodeRune(s[skip:])
			skip += w
		}
		if n > 0 {
			return value.IntOf(-1)
		}
	}
	i := bytes.Index(s[skip:], t)
	if i < 0 {
		return value.IntOf(-1)
	}
	return value.IntOf(int64(utf8.RuneCount(s[:skip+i])))
}

func lastIndexOf(_ *Context, a []value.Value) value.Value {
	s, t := a[0].Bytes(), a[1].Bytes()
	if len(a) == 3 {
		n, ok := ToInt(a[2])
		if !ok || n < 0 {
			return value.IntOf(-1)
		}
		end := 0
		for ; n >= 0 && end < len(s); n-- {
			_, w := utf8.DecodeRune(s[end:])
			end += w
		}
		s = s[:end]
	}
	i := bytes.LastIndex(s, t)
	if i < 0 {
		return value.IntOf(-1)
	}
	return value.IntOf(int64(utf8.RuneCount(s[:i])))
}

//go:noinline // each caller would get its own copy of the closure
func trim(name string, space func(string, func(rune) bool) string, affix func(s, set string) string) *Func {
	return &Func{Name: name, Types: "s?s", Eval: func(_ *Context, a []value.Value) value.Value {
		if len(a) == 2 {
			return value.StringOf(affix(a[0].Str(), a[1].Str()))
		}
		return value.StringOf(space(a[0].Str(), unicode.IsSpace))
	}}
}

// stringParts registers the functions that split a string at a separator or join strings with one.
func stringParts() {
	part := func(name string, cut func(s, sep string) (string, bool)) *Func {
		return &Func{Name: name, Types: "ss", Eval: func(_ *Context, a []value.Value) value.Value {
			s, sep := a[0].Str(), a[1].Str()
			if out, ok := cut(s, sep); ok {
				return value.StringOf(out)
			}
			return a[0]
		}}
	}
	register(
		part("SubstringBefore", func(s, sep string) (string, bool) { b, _, ok := strings.Cut(s, sep); return b, ok }),
		part("SubstringAfter", func(s, sep string) (string, bool) { _, r, ok := strings.Cut(s, sep); return r, ok }),
		part("LastSubstringBefore", func(s, sep string) (string, bool) {
			i := strings.LastIndex(s, sep)
			return s[:max(i, 0)], i >= 0
		}),
		part("LastSubstringAfter", func(s, sep string) (string, bool) {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				return "", false
			}
			return s[i+len(sep):], true
		}),
		&Func{Name: "StringJoin", Types: "as", Eval: func(_ *Context, a []value.Value) value.Value {
			var out []byte
			for i, v := range elems(a[0]) {
				if v.Kind() != value.String || len(out) > maxString {
					return value.Value{}
				}
				if i > 0 {
					out = append(out, a[1].Bytes()...)
				}
				out = append(out, v.Bytes()...)
			}
			return value.StringBytes(out)
		}},
		&Func{Name: "StringSplit", Types: "ss", Eval: func(c *Context, a []value.Value) value.Value {
			var b Builder
			for s := range strings.SplitSeq(a[0].Str(), a[1].Str()) {
				if b.Elem(value.StringOf(s)); b.over {
					break
				}
			}
			return c.Array(&b)
		}},
	)
}

// stringConversions registers StringTo.. and ToString. The argument of StringTo.. must be JSON text of the wanted type.
// White space around it is allowed.
func stringConversions() {
	parse := func(name string, want func(v value.Value) bool) *Func {
		return &Func{Name: name, Types: "s", Eval: func(_ *Context, a []value.Value) value.Value {
			text := bytes.TrimSpace(a[0].Bytes())
			if len(text) == 0 {
				return value.Value{}
			}
			if v, err := doc.ValueFromJSON(text); err == nil && want(v) {
				return v
			}
			return value.Value{}
		}}
	}
	kind := func(k value.Kind) func(value.Value) bool {
		return func(v value.Value) bool { return v.Kind() == k }
	}
	register(
		parse("StringToArray", kind(value.Array)), parse("StringToBoolean", kind(value.Bool)),
		parse("StringToNull", kind(value.Null)),
		parse("StringToNumber", value.Value.IsNumber), parse("StringToObject", kind(value.Object)),
		&Func{Name: "ToString", Types: "d", Eval: func(_ *Context, a []value.Value) value.Value {
			if a[0].Kind() == value.String {
				return a[0]
			}
			return value.StringBytes(AppendText(nil, a[0]))
		}},
	)
}

// AppendText appends the result of ToString: JSON text, with numbers in their shortest form.
func AppendText(dst []byte, v value.Value) []byte {
	if v.Kind() == value.Double {
		if f := v.Float(); f == math.Trunc(f) && math.Abs(f) < 1e21 {
			return strconv.AppendFloat(dst, f, 'f', -1, 64)
		}
	}
	return doc.AppendJSON(dst, v)
}

// containsMany registers CONTAINS_ALL_CI and the related functions, under both spellings.
func containsMany() {
	many := func(all, ci bool) func(*Context, []value.Value) value.Value {
		return func(_ *Context, a []value.Value) value.Value {
			s := a[0].Bytes()
			if ci {
				s = fold(s)
			}
			for _, t := range a[1:] {
				b := t.Bytes()
				if ci {
					b = fold(b)
				}
				if bytes.Contains(s, b) != all {
					return boolean(!all)
				}
			}
			return boolean(all)
		}
	}
	for _, e := range []struct {
		names   [2]string
		all, ci bool
	}{
		{[2]string{"CONTAINS_ALL_CI", "ContainsAllCi"}, true, true},
		{[2]string{"CONTAINS_ALL_CS", "ContainsAllCs"}, true, false},
		{[2]string{"CONTAINS_ANY_CI", "ContainsAnyCi"}, false, true},
		{[2]string{"CONTAINS_ANY_CS", "ContainsAnyCs"}, false, false},
	} {
		for _, n := range e.names {
			register(&Func{Name: n, Types: "ss+", Eval: many(e.all, e.ci)})
		}
	}
}
