package funcs

import (
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/regex"
)

// Regular expressions have Perl's syntax, as in the service. Two engines run them. Nearly all patterns run on Go's
// engine, whose time is linear in the length of the text. Patterns with features that it lacks (look-around,
// back-references, possessive and atomic groups, the modifier x), and very large ones, run on a backtracking engine. It
// stops after matchTime, or with matchStack alternatives left to try, and the query fails. A match of a long text on
// Go's engine ends with the request.
//
// Example: `^a+b$` runs on Go's engine; `(\w)\1` has a back-reference and runs on the backtracking engine.
func init() {
	for _, n := range []string{"REGEXMATCH", "_REGEX_MATCH"} {
		register(regexFunc(n, func(c *Context, re matcher, s []byte) (value.Value, error) {
			ok, err := re.match(c, s)
			return boolean(ok), err
		}))
	}
	register(
		regexFunc("RegexExtract", func(c *Context, re matcher, s []byte) (value.Value, error) {
			all, err := re.find(c, s, 1)
			if len(all) == 0 {
				return value.Value{}, err
			}
			return value.StringOf(all[0]), err
		}),
		regexFunc("RegexExtractAll", func(c *Context, re matcher, s []byte) (value.Value, error) {
			var b Builder
			all, err := re.find(c, s, maxMatches)
			for _, m := range all {
				b.Elem(value.StringOf(m))
			}
			return b.Array(), err
		}),
	)
}

const (
	maxMatches = 10000
	matchTime  = 250 * time.Millisecond
	matchStack = 8 << 20 // integers, 64 MiB: enough for most patterns on the longest text
)

// matcher is a compiled pattern. It is safe for concurrent use.
type matcher interface {
	match(c *Context, s []byte) (bool, error)
	find(c *Context, s []byte, limit int) ([]string, error)
}

type linear struct{ *regexp.Regexp }

func (l linear) match(c *Context, s []byte) (bool, error) {
	return regex.Match(l.Regexp, s, c)
}

func (l linear) find(c *Context, s []byte, limit int) (out []string, err error) {
	found, err := regex.FindAll(l.Regexp, s, limit, c)
	for _, m := range found {
		out = append(out, string(s[m[0]:m[1]]))
	}
	return out, err
}

// Err implements regex.End: a match ends with the request.
func (c *Context) Err() error {
	if c.End == nil {
		return nil
	}
	return c.End.Err()
}

type backtracking struct{ *regexp2.Regexp }

var errSlowPattern = status.New(status.Timeout, "A regular expression of the query takes too long.")

func (b backtracking) match(_ *Context, s []byte) (bool, error) {
	ok, err := b.MatchString(string(s))
	if err != nil {
		err = errSlowPattern
	}
	return ok, err
}

func (b backtracking) find(_ *Context, s []byte, limit int) (out []string, err error) {
	m, err := b.FindStringMatch(string(s))
	for ; err == nil && m != nil && len(out) < limit; m, err = b.FindNextMatch(m) {
		out = append(out, m.String())
	}
	if err != nil {
		err = errSlowPattern
	}
	return out, err
}

//go:noinline // each caller would get its own copy of the closure
func regexFunc(name string, use func(c *Context, re matcher, s []byte) (value.Value, error)) *Func {
	f := &Func{Name: name, Types: "ss?s"}
	run := func(c *Context, re matcher, s []byte) value.Value {
		if re == nil {
			return value.Value{}
		}
		v, err := use(c, re, s)
		if err != nil {
			if c.Fail != nil {
				c.Fail(err)
			}
			return value.Value{}
		}
		return v
	}
	f.Eval = func(c *Context, a []value.Value) value.Value { return run(c, compilePattern(a[1:]), a[0].Bytes()) }
	f.Prepare = func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		for i := 1; i < len(isConst); i++ {
			if !isConst[i] || consts[i].Kind() != value.String {
				return nil
			}
		}
		re := compilePattern(consts[1:])
		return func(c *Context, a []value.Value) value.Value { return run(c, re, a[0].Bytes()) }
	}
	return f
}

// compilePattern compiles a pattern with the modifiers m, s, i and x. It returns nil when the pattern isn't valid.
func compilePattern(a []value.Value) matcher {
	pattern, flags := a[0].Str(), ""
	if len(a) == 2 {
		for _, m := range a[1].Str() {
			switch m {
			case 'm', 's', 'i', 'x':
				flags += string(m)
			default:
				return nil
			}
		}
	}
	if !strings.Contains(flags, "x") && !regex.TooLarge(pattern) {
		text := pattern
		if flags != "" {
			text = "(?" + flags + ")" + pattern
		}
		if re, err := regexp.Compile(text); err == nil {
			return linear{re}
		}
	}
	var opts regexp2.RegexOptions
	for i, o := range []regexp2.RegexOptions{
		regexp2.Multiline, regexp2.Singleline, regexp2.IgnoreCase, regexp2.IgnorePatternWhitespace} {
		if strings.IndexByte(flags, "msix"[i]) >= 0 {
			opts |= o
		}
	}
	re, err := regexp2.Compile(pattern, opts, regexp2.OptionMaxBacktrackingStackSize(matchStack))
	if err != nil {
		return nil
	}
	re.MatchTimeout = matchTime
	return backtracking{re}
}
