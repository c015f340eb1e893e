package expr

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var stringOps = map[string]operator{
	"$concat":       variadic(concat),
	"$indexOfBytes": ranged(2, 4, indexOf("$indexOfBytes", false)),
	"$indexOfCP":    ranged(2, 4, indexOf("$indexOfCP", true)),
	"$ltrim":        trim("$ltrim", true, false),
	"$regexFind":    regexOp("$regexFind"),
	"$regexFindAll": regexOp("$regexFindAll"),
	"$regexMatch":   regexOp("$regexMatch"),
	"$replaceAll":   replace("$replaceAll", -1),
	"$replaceOne":   replace("$replaceOne", 1),
	"$rtrim":        trim("$rtrim", false, true),
	"$split":        fixed(2, split),
	"$strcasecmp": fixed(2, func(_ *Env, a []value.Value) (value.Value, error) {
		x, err := coerceText("$strcasecmp", a[0])
		if err != nil {
			return a[0], err
		}
		y, err := coerceText("$strcasecmp", a[1])
		return value.Int32Of(int32(strings.Compare(upper(x), upper(y)))), err
	}),
	"$strLenBytes": unary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.String {
			return v, merr.New(34473, "$strLenBytes requires a string argument, found: %s", TypeName(v))
		}
		return value.Int32Of(int32(len(v.Bytes()))), nil
	}),
	"$strLenCP": unary(func(v value.Value) (value.Value, error) {
		if v.Kind() != value.String {
			return v, merr.New(34471, "$strLenCP requires a string argument, found: %s", TypeName(v))
		}
		return value.Int32Of(int32(utf8.RuneCount(v.Bytes()))), nil
	}),
	"$substr":      fixed(3, substrBytes),
	"$substrBytes": fixed(3, substrBytes),
	"$substrCP":    fixed(3, substrCP),
	"$toLower":     caseOp("$toLower", lower),
	"$toUpper":     caseOp("$toUpper", upper),
	"$trim":        trim("$trim", true, true),
}

// lower and upper only change ASCII letters, as MongoDB does.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 32
		}
		return r
	}, s)
}

func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 32
		}
		return r
	}, s)
}

func caseOp(name string, fn func(string) string) operator {
	return unary(func(v value.Value) (value.Value, error) {
		s, err := coerceText(name, v)
		return value.StringOf(fn(s)), err
	})
}

// coerceText converts an argument of a string operator to text. Null and missing become "".
func coerceText(name string, v value.Value) (string, error) {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return "", nil
	case value.String, value.Symbol, value.Code:
		return v.Str(), nil
	case value.Int32, value.Int64, value.Double, value.Decimal, value.Date, value.Timestamp:
		return toText(v)
	}
	return "", merr.New(16007, "can't convert from BSON type %s to String", TypeName(v))
}

func concat(_ *Env, a []value.Value) (value.Value, error) {
	var b []byte
	for _, v := range a {
		if nullish(v) {
			return value.NullValue(), nil
		}
		if v.Kind() != value.String {
			return v, merr.New(16702, "$concat only supports strings, not %s", TypeName(v))
		}
		if b = append(b, v.Bytes()...); len(b) > maxValue {
			return v, tooLong("$concat")
		}
	}
	return value.StringBytes(b), nil
}

func tooLong(name string) error {
	return merr.New(merr.ExceededMemoryLimit, "%s made a string of more than %d bytes", name, maxValue)
}

func split(_ *Env, a []value.Value) (value.Value, error) {
	if nullish(a[0]) || nullish(a[1]) {
		return value.NullValue(), nil
	}
	if a[0].Kind() != value.String {
		return a[0], merr.New(40085, "$split requires an expression that evaluates to a string as a first argument, "+
			"found: %s", TypeName(a[0]))
	}
	if a[1].Kind() != value.String {
		return a[1], merr.New(40086, "$split requires an expression that evaluates to a string as a second "+
			"argument, found: %s", TypeName(a[1]))
	}
	if len(a[1].Bytes()) == 0 {
		return a[1], merr.New(40087, "$split requires a non-empty separator")
	}
	var out []value.Value
	for _, p := range bytes.Split(a[0].Bytes(), a[1].Bytes()) {
		out = append(out, value.StringBytes(p))
	}
	return value.MakeArray(out), nil
}

func position(name string, v value.Value, code int32) (int, error) {
	i, ok := num.ToInt64(v, true)
	if !v.IsNumber() || !ok {
		return 0, merr.New(code, "%s requires an integral index, found a value of type: %s", name, TypeName(v))
	}
	return int(max(-1<<31, min(i, 1<<31))), nil
}

func substrBytes(_ *Env, a []value.Value) (value.Value, error) {
	s, err := coerceText("$substrBytes", a[0])
	if err != nil {
		return a[0], err
	}
	from, err := position("$substrBytes", a[1], 16034)
	if err != nil {
		return a[1], err
	}
	n, err := position("$substrBytes", a[2], 16035)
	if err != nil {
		return a[2], err
	}
	if from < 0 {
		return a[1], merr.New(50752, "$substrBytes: starting index must be non-negative (got: %d)", from)
	}
	if from >= len(s) {
		return value.StringOf(""), nil
	}
	if n < 0 || n > len(s)-from {
		n = len(s) - from
	}
	if !utf8.RuneStart(s[from]) {
		return a[1], merr.New(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if from+n < len(s) && !utf8.RuneStart(s[from+n]) {
		return a[2], merr.New(
			28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return value.StringOf(s[from : from+n]), nil
}

func substrCP(_ *Env, a []value.Value) (value.Value, error) {
	s, err := coerceText("$substrCP", a[0])
	if err != nil {
		return a[0], err
	}
	from, err := position("$substrCP", a[1], 34450)
	if err != nil {
		return a[1], err
	}
	n, err := position("$substrCP", a[2], 34452)
	if err != nil {
		return a[2], err
	}
	for i, what := range []string{"starting index", "length"} {
		if _, whole := num.ToInt64(a[i+1], false); !whole {
			return a[i+1], merr.New(34451+2*int32(i), "$substrCP: %s cannot be represented as a 32-bit integral "+
				"value: %s", what, merr.Show(a[i+1]))
		}
	}
	if from < 0 {
		return a[1], merr.New(34455, "$substrCP: the starting index must be nonnegative integer.")
	}
	if n < 0 {
		return a[2], merr.New(34454, "$substrCP: length must be a nonnegative integer.")
	}
	r := []rune(s)
	from = min(from, len(r))
	return value.StringOf(string(r[from:min(len(r), from+n)])), nil
}

//go:noinline // see named
func indexOf(name string, runes bool) func(*Env, []value.Value) (value.Value, error) {
	return func(_ *Env, a []value.Value) (value.Value, error) {
		if nullish(a[0]) {
			return value.NullValue(), nil
		}
		if a[0].Kind() != value.String {
			return a[0], merr.New(40091, "%s requires a string as the first argument, found: %s", name, TypeName(a[0]))
		}
		if a[1].Kind() != value.String {
			return a[1], merr.New(40092, "%s requires a string as the second argument, found: %s", name, TypeName(a[1]))
		}
		s, sub := a[0].Str(), a[1].Str()
		length := len(s)
		if runes {
			length = utf8.RuneCountInString(s)
		}
		from, to := 0, length
		for i, p := range []*int{&from, &to} {
			if len(a) > 2+i {
				n, err := position(name, a[2+i], 40096)
				if err != nil {
					return a[2+i], err
				}
				if n < 0 {
					return a[2+i], merr.New(40097, "%s requires a nonnegative start or end index", name)
				}
				*p = n
			}
		}
		to = min(to, length)
		if from > to {
			return value.Int32Of(-1), nil
		}
		if runes {
			r := []rune(s)
			i := strings.Index(string(r[from:to]), sub)
			if i < 0 {
				return value.Int32Of(-1), nil
			}
			return value.Int32Of(int32(from + utf8.RuneCountInString(string(r[from:to])[:i]))), nil
		}
		i := strings.Index(s[from:to], sub)
		if i < 0 {
			return value.Int32Of(-1), nil
		}
		return value.Int32Of(int32(from + i)), nil
	}
}

// trimSet is what $trim removes when no chars are given.
const trimSet = "\u0000\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

//go:noinline // see named
func trim(name string, left, right bool) operator {
	return named([]string{"input"}, []string{"chars"}, func(_ *Env, a map[string]value.Value) (value.Value, error) {
		in := a["input"]
		if nullish(in) {
			return value.NullValue(), nil
		}
		if in.Kind() != value.String {
			return in, merr.New(50699, "%s requires its input to be a string, got %s instead.", name, TypeName(in))
		}
		set := trimSet
		if c, given := a["chars"]; given {
			if nullish(c) {
				return value.NullValue(), nil
			}
			if c.Kind() != value.String {
				return c, merr.New(50700, "%s requires 'chars' to be a string, got %s instead.", name, TypeName(c))
			}
			set = c.Str()
		}
		s := in.Str()
		if left {
			s = strings.TrimLeft(s, set)
		}
		if right {
			s = strings.TrimRight(s, set)
		}
		return value.StringOf(s), nil
	})
}

func replace(name string, n int) operator {
	return named([]string{"input", "find", "replacement"}, nil,
		func(_ *Env, a map[string]value.Value) (value.Value, error) {
			null := false
			for i, k := range []string{"input", "find", "replacement"} {
				if nullish(a[k]) {
					null = true
				} else if a[k].Kind() != value.String {
					return a[k], merr.New(int32(51746-i), "%s requires that '%s' be a string, found: %s", name, k,
						TypeName(a[k]))
				}
			}
			if null {
				return value.NullValue(), nil
			}
			in, find, by := a["input"].Str(), a["find"].Str(), a["replacement"].Str()
			times := strings.Count(in, find)
			if n > 0 {
				times = min(times, n)
			}
			if len(in)+times*(len(by)-len(find)) > maxValue {
				return a["input"], tooLong(name)
			}
			return value.StringOf(strings.Replace(in, find, by, n)), nil
		})
}

// regexOp returns one of the three $regex operators.
//
//go:noinline // see named
func regexOp(name string) operator {
	needs, may := []string{"input", "regex"}, []string{"options"}
	return named(needs, may, func(e *Env, a map[string]value.Value) (value.Value, error) {
		in, pat, opt := a["input"], a["regex"], a["options"]
		if nullish(in) || nullish(pat) {
			switch name {
			case "$regexMatch":
				return value.BoolOf(false), nil
			case "$regexFindAll":
				return value.MakeArray(nil), nil
			}
			return value.NullValue(), nil
		}
		if in.Kind() != value.String {
			return in, merr.New(51104, "%s needs 'input' to be of type string", name)
		}
		pattern, options := pat.Str(), opt.Str()
		if !nullish(opt) && opt.Kind() != value.String {
			return opt, merr.New(51106, "%s needs 'options' to be of type string", name)
		}
		if pat.Kind() == value.Regex {
			p := bytes.SplitN(pat.Bytes(), []byte{0}, 3)
			if pattern = string(p[0]); len(p[1]) > 0 {
				if !nullish(opt) {
					return opt, merr.New(51107, "%s: found regex option(s) specified in both 'regex' and 'option' "+
						"fields", name)
				}
				options = string(p[1])
			}
		} else if pat.Kind() != value.String {
			return pat, merr.New(51105, "%s needs 'regex' to be of type string or regex", name)
		}
		re, _, err := Regexp(pattern, options)
		if err != nil {
			return pat, regexOpError(name, err)
		}
		if name == "$regexMatch" {
			return value.BoolOf(e.Run.Match(re, in.Bytes())), e.Run.Cut()
		}
		limit := -1
		if name == "$regexFind" {
			limit = 1
		}
		found, err := e.Run.findAll(re, in.Bytes(), limit)
		if err != nil {
			return in, err
		}
		return matchValues(e, in.Bytes(), found, name == "$regexFindAll")
	})
}

// regexOpError returns the error of a pattern of one of the $regex operators, which has codes other than those of
// filters.
func regexOpError(name string, err error) error {
	switch e := merr.From(err); e.Code {
	case merr.RegexInvalid:
		return merr.New(51111, "Invalid Regex in %s: %s", name, strings.TrimPrefix(e.Msg, invalidPrefix))
	case merr.InvalidRegexFlag:
		return merr.New(merr.InvalidRegexFlag, "%s %s", name, e.Msg)
	case merr.BadValue:
		return merr.New(51109, "%s: regular expression cannot contain an embedded null byte", name)
	}
	return err
}

// matchValues returns the matches as values: an array of all, or the first one.
func matchValues(e *Env, in []byte, found [][]int, all bool) (value.Value, error) {
	out := newArray(e)
	defer out.drop()
	at, runes := 0, 0 // runes is the number of runes before the byte index at
	for _, m := range found {
		runes += utf8.RuneCount(in[at:m[0]])
		at = m[0]
		v := matchValue(in, m, runes)
		if !all {
			return v, nil
		}
		if err := out.add(v); err != nil {
			return v, err
		}
	}
	if !all {
		return value.NullValue(), nil
	}
	return out.done(), nil
}

func matchValue(in []byte, m []int, index int) value.Value {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "match", string(in[m[0]:m[1]]))
	b = bson.AppendInt32(b, "idx", int32(index))
	ca, b := bson.BeginArray(b, "captures")
	for i := 2; i+1 < len(m); i += 2 {
		c := value.NullValue()
		if m[i] >= 0 {
			c = value.StringBytes(in[m[i]:m[i+1]])
		}
		b = value.AppendIndexed(b, i/2-1, c)
	}
	return value.ObjectOf(bson.End(bson.End(b, ca), at))
}
