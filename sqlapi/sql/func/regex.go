package funcs

import (
	"regexp"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// Regular expressions run on Go's engine: linear in the text, so no pattern can stall the server; look-around and
// back-references, which it lacks, make the call undefined.
func init() {
	for _, n := range []string{"REGEXMATCH", "_REGEX_MATCH"} {
		register(regex(n, func(re *regexp.Regexp, s []byte) value.Value { return boolean(re.Match(s)) }))
	}
	register(
		regex("RegexExtract", func(re *regexp.Regexp, s []byte) value.Value {
			if m := re.Find(s); m != nil {
				return value.StringBytes(m)
			}
			return value.Value{}
		}),
		regex("RegexExtractAll", func(re *regexp.Regexp, s []byte) value.Value {
			var b Builder
			for _, m := range re.FindAll(s, 10000) {
				b.Elem(value.StringBytes(m))
			}
			return b.Array()
		}),
	)
}

func regex(name string, use func(re *regexp.Regexp, s []byte) value.Value) *Func {
	f := &Func{Name: name, Types: "ss?s"}
	f.Eval = func(_ *Context, a []value.Value) value.Value {
		if re := compilePattern(a[1:]); re != nil {
			return use(re, a[0].Bytes())
		}
		return value.Value{}
	}
	f.Prepare = func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		for i := 1; i < len(isConst); i++ {
			if !isConst[i] || consts[i].Kind() != value.String {
				return nil
			}
		}
		re := compilePattern(consts[1:])
		return func(_ *Context, a []value.Value) value.Value {
			if re == nil {
				return value.Value{}
			}
			return use(re, a[0].Bytes())
		}
	}
	return f
}

// compilePattern compiles a pattern with the modifiers m, s, i and x; nil when it is no valid pattern.
func compilePattern(a []value.Value) *regexp.Regexp {
	pattern, flags := a[0].Str(), ""
	if len(a) == 2 {
		for _, m := range a[1].Str() {
			switch m {
			case 'm', 's', 'i':
				flags += string(m)
			case 'x':
				pattern = strings.Join(strings.Fields(pattern), "")
			default:
				return nil
			}
		}
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return re
}
