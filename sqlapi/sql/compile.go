package sql

import (
	"context"
	"errors"
	"strings"

	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// variable is an alias in scope.
type variable struct {
	name  string
	slot  int
	root  bool // the item itself
	owner int  // number of the query that declares the alias
}

// scope holds the aliases that an expression can use, innermost first.
type scope struct {
	parent *scope
	vars   []*variable
}

func (s *scope) find(name string) *variable {
	for ; s != nil; s = s.parent {
		for i := len(s.vars) - 1; i >= 0; i-- {
			if s.vars[i].name == name || name == syntax.RootName && s.vars[i].root {
				return s.vars[i]
			}
		}
	}
	return nil
}

// compiler resolves the names in a syntax tree and compiles the tree to closures. After the first error it continues
// and returns closures that are never run.
//
// Example: `c.n + @d > 1 + 1` becomes a closure that reads n from the current item, adds parameter 0 of the frame and
// compares the sum with the constant 2. The compiler evaluates `1 + 1` itself (fold).
type compiler struct {
	text   string
	scope  *scope
	params map[string]int
	names  []string // parameters by number
	named  []string // those that are names of properties
	nslots int
	nsubs  int
	groups []*groupCtx // grouped queries whose select list is being compiled, innermost last
	first  bool        // the next source is the container
	noAgg  bool        // aggregates are refused here (WHERE, GROUP BY, FROM)
	planar bool        // geometries lie in a plane
	calls  int         // references to user-defined functions
	// functions has the names of the user-defined functions by number.
	functions []string
	err       error
}

func (c *compiler) failAt(e syntax.Expr, code, format string, args ...any) {
	c.failIn(e.Span(), code, format, args...)
}

// failIn records an error at a part of the text, unless there is an error already.
func (c *compiler) failIn(sp syntax.Span, code, format string, args ...any) {
	if c.err == nil {
		c.err = syntax.ErrorAt(c.text, sp, code, format, args...)
	}
}

// failMore is failAt for errors that one answer can list several times. If the first error of the text has the same
// code, the new one is added to it, up to a limit.
func (c *compiler) failMore(e syntax.Expr, code, format string, args ...any) {
	c.failAt(e, code, format, args...)
	var first *syntax.Error
	if errors.As(c.err, &first) && first.Code == code && first.TakesMore() {
		first.Also(syntax.ErrorAt(c.text, e.Span(), code, format, args...))
	}
}

// param returns the number of a parameter. A new name gets the next number.
func (c *compiler) param(name string) int {
	i, ok := c.params[name]
	if !ok {
		i = len(c.names)
		c.params[name] = i
		c.names = append(c.names, name)
	}
	return i
}

// cexpr is a compiled expression. val is its value when konst is true.
type cexpr struct {
	fn    evalFn
	konst bool
	val   value.Value
	whole bool // the item itself
}

func konst(v value.Value) cexpr {
	return cexpr{fn: func(*frame) value.Value { return v }, konst: true, val: v}
}

// fold evaluates fn at compile time when all its parts are constant.
func fold(fn evalFn, parts ...cexpr) cexpr {
	for _, p := range parts {
		if !p.konst {
			return cexpr{fn: fn}
		}
	}
	f := &frame{}
	f.ctx.Fail, f.ctx.End = f.fail, never{}
	if v := fn(f); f.err == nil {
		return konst(v)
	}
	return cexpr{fn: fn} // the error is reported when the query is executed
}

// never is the end of what has no time: it isn't computed at compile time.
type never struct{}

// Err implements regex.End.
func (never) Err() error { return context.Canceled }

// expr compiles one expression.
func (c *compiler) expr(e syntax.Expr) cexpr {
	if n := len(c.groups); n > 0 {
		if ce, ok := c.groupKey(e); ok {
			return ce
		}
	}
	switch e := e.(type) {
	case *syntax.Lit:
		return konst(e.Val)
	case *syntax.ParamRef:
		i := c.param(e.Name)
		return cexpr{fn: func(f *frame) value.Value { return f.params[i] }}
	case *syntax.Ident, *syntax.Prop, *syntax.Index:
		return c.path(e)
	case *syntax.Unary:
		x, op := c.expr(e.X), e.Op
		return fold(func(f *frame) value.Value { return funcs.UnaryOp(op, x.fn(f)) }, x)
	case *syntax.Binary:
		return c.binary(e)
	case *syntax.Chain:
		return c.chain(e)
	case *syntax.Cond:
		cond, a, b := c.expr(e.C), c.expr(e.A), c.expr(e.B)
		return fold(func(f *frame) value.Value {
			if funcs.IsTrue(cond.fn(f)) {
				return a.fn(f)
			}
			return b.fn(f)
		}, cond, a, b)
	case *syntax.Between:
		return c.between(e)
	case *syntax.In:
		return c.in(e)
	case *syntax.Like:
		return c.like(e)
	case *syntax.Call:
		return c.call(e)
	case *syntax.ArrayExpr:
		xs := c.exprs(e.Elems)
		return fold(func(f *frame) value.Value {
			var b funcs.Builder
			for i := range xs {
				b.Elem(xs[i].fn(f))
			}
			return f.ctx.Array(&b)
		}, xs...)
	case *syntax.ObjectExpr:
		return c.object(e)
	case *syntax.SubqueryExpr:
		return c.subquery(e)
	}
	return konst(value.Value{})
}

func (c *compiler) exprs(es []syntax.Expr) []cexpr {
	out := make([]cexpr, len(es))
	for i, e := range es {
		out[i] = c.expr(e)
	}
	return out
}

// path compiles an alias and the properties that are read from it. Fixed steps become one closure.
func (c *compiler) path(e syntax.Expr) cexpr {
	steps, base := shape.SplitPath(e)
	if id, ok := base.(*syntax.Ident); ok && !c.insideGroupKey(e) {
		v := c.resolve(id, e)
		if v == nil {
			return konst(value.Value{})
		}
		if v.root {
			if len(steps) == 0 {
				return cexpr{fn: (*frame).wholeItem, whole: true}
			}
			return cexpr{fn: rootPath(steps)}
		}
		slot := v.slot
		return cexpr{fn: func(f *frame) value.Value { return walk(f.slots[slot], steps) }}
	}
	switch e := e.(type) {
	case *syntax.Prop:
		b, name := c.expr(e.Base), e.Name
		return fold(func(f *frame) value.Value { return funcs.View(get(b.fn(f), name)) }, b)
	case *syntax.Index:
		if ref, ok := e.At.(*syntax.ParamRef); ok {
			c.named = append(c.named, ref.Name)
		}
		b, at := c.expr(e.Base), c.expr(e.At)
		return fold(func(f *frame) value.Value { return funcs.View(indexed(b.fn(f), at.fn(f))) }, b, at)
	}
	return c.expr(base)
}

// indexed returns base[at] for a computed at, which is a name in an object or a whole number in an array.
func indexed(base, at value.Value) value.Value {
	if at.Kind() == value.String {
		return get(base, at.Str())
	}
	if i, ok := funcs.ToInt(at); ok && at.IsNumber() {
		return base.At(i)
	}
	return value.Value{}
}

// resolve finds the alias of the path e. It refuses an alias that a grouped select list may not read.
func (c *compiler) resolve(id *syntax.Ident, e syntax.Expr) *variable {
	v := c.scope.find(id.Name)
	if v == nil {
		c.failAt(id, syntax.CodeIdentifier, "Identifier '%s' could not be resolved.", syntax.Clip(id.Name))
		return nil
	}
	for _, g := range c.groups {
		if g.sub == v.owner && !g.inAgg {
			c.failMore(e, syntax.CodeUngrouped, "Property reference '%s' is invalid in the select list because it is "+
				"not contained in either an aggregate function or the GROUP BY clause.", syntax.Clip(syntax.Print(e)))
			return nil
		}
	}
	return v
}

func (c *compiler) binary(e *syntax.Binary) cexpr {
	l, r := c.expr(e.L), c.expr(e.R)
	op := e.Op
	var fn evalFn
	switch op {
	case "=", "!=":
		not := op == "!="
		fn = func(f *frame) value.Value { return funcs.EqualOp(l.fn(f), r.fn(f), not) }
	case "<", ">", "<=", ">=":
		fn = func(f *frame) value.Value { return funcs.CompareOp(op, l.fn(f), r.fn(f)) }
	case "+", "-", "*", "/", "%":
		fn = func(f *frame) value.Value { return funcs.Arithmetic(op, l.fn(f), r.fn(f)) }
	case "??":
		fn = func(f *frame) value.Value {
			if v := l.fn(f); v.IsDefined() {
				return v
			}
			return r.fn(f)
		}
	default:
		fn = func(f *frame) value.Value { return funcs.Bitwise(op, l.fn(f), r.fn(f)) }
	}
	return fold(fn, l, r)
}

// chain compiles AND, OR and ||.
func (c *compiler) chain(e *syntax.Chain) cexpr {
	xs := c.exprs(e.Xs)
	if e.Op == "||" {
		return fold(func(f *frame) value.Value {
			base := len(f.args)
			for i := range xs {
				f.args = append(f.args, xs[i].fn(f))
			}
			v := funcs.Concat(f.args[base:])
			f.args = f.args[:base]
			return v
		}, xs...)
	}
	decisive := e.Op == "OR"
	return fold(func(f *frame) value.Value {
		defined := true
		for i := range xs {
			v := xs[i].fn(f)
			if v.Kind() != value.Bool {
				defined = false
			} else if v.Bool() == decisive {
				return v
			}
		}
		if !defined {
			return value.Value{}
		}
		return value.BoolOf(!decisive)
	}, xs...)
}

func (c *compiler) between(e *syntax.Between) cexpr {
	x, lo, hi, not := c.expr(e.X), c.expr(e.Lo), c.expr(e.Hi), e.Not
	return fold(func(f *frame) value.Value {
		v := x.fn(f)
		a, b := funcs.CompareOp(">=", v, lo.fn(f)), funcs.CompareOp("<=", v, hi.fn(f))
		switch {
		case a.IsDefined() && !a.Bool(), b.IsDefined() && !b.Bool():
			return value.BoolOf(not)
		case !a.IsDefined() || !b.IsDefined():
			return value.Value{}
		}
		return value.BoolOf(!not)
	}, x, lo, hi)
}

// in compiles IN. A long list of constants becomes a hash set.
func (c *compiler) in(e *syntax.In) cexpr {
	x, list, not := c.expr(e.X), c.exprs(e.List), e.Not
	var set *funcs.Set
	if len(list) > 16 {
		set = funcs.NewSet()
		for _, l := range list {
			if !l.konst {
				set = nil
				break
			}
			set.Add(l.val)
		}
	}
	return fold(func(f *frame) value.Value {
		v := x.fn(f)
		if !v.IsDefined() {
			return v
		}
		if set != nil {
			return value.BoolOf(set.Has(v) != not)
		}
		for i := range list {
			if w := list[i].fn(f); w.IsDefined() && funcs.Equal(v, w) {
				return value.BoolOf(!not)
			}
		}
		return value.BoolOf(not)
	}, append([]cexpr{x}, list...)...)
}

func (c *compiler) like(e *syntax.Like) cexpr {
	x, pat, not := c.expr(e.X), c.expr(e.Pattern), e.Not
	escape := rune(0)
	for _, r := range e.Escape {
		escape = r
	}
	var ready *funcs.Pattern
	if pat.konst && pat.val.Kind() == value.String {
		ready = funcs.CompileLike(pat.val.Str(), escape)
	}
	return fold(func(f *frame) value.Value {
		v, p := x.fn(f), pat.fn(f)
		if v.Kind() != value.String || p.Kind() != value.String {
			return value.Value{}
		}
		lp := ready
		if lp == nil {
			lp = funcs.CompileLike(p.Str(), escape)
		}
		ok, err := lp.Match(v.Bytes())
		if err != nil {
			f.fail(err)
			return value.Value{}
		}
		return value.BoolOf(ok != not)
	}, x, pat)
}

func (c *compiler) object(e *syntax.ObjectExpr) cexpr {
	xs, keys := c.exprs(e.Vals), e.Keys
	return fold(func(f *frame) value.Value {
		var b funcs.Builder
		for i := range xs {
			b.Field(keys[i], xs[i].fn(f))
		}
		return f.ctx.Object(&b)
	}, xs...)
}

// call compiles a function call or an aggregate.
func (c *compiler) call(e *syntax.Call) cexpr {
	if e.UDF {
		return c.userDefined(e)
	}
	if agg := funcs.AggregateOf(e.Name); agg != nil {
		return c.aggregate(e, agg)
	}
	fn := funcs.Lookup(e.Name)
	switch {
	case fn == nil:
		c.failAt(e, syntax.CodeFunction, "'%s' is not a recognized built-in function name.", syntax.Clip(e.Name))
		return konst(value.Value{})
	case fn.Unsupported != "":
		c.failAt(e, syntax.CodeNotSupported, "The function '%s' is not supported: %s.", fn.Name, fn.Unsupported)
		return konst(value.Value{})
	case fn.Refused != "" && strings.EqualFold(e.Name, "RRF"):
		c.failAt(e, syntax.CodeFunction, "%s", fn.Refused)
		return konst(value.Value{})
	case fn.Refused != "":
		c.failAt(e, syntax.CodeRank, "%s", fn.Refused)
		return konst(value.Value{})
	case len(e.Args) < fn.Min || fn.Max >= 0 && len(e.Args) > fn.Max:
		c.failAt(e, syntax.CodeArity, "The %s function requires %s argument(s).", fn.Name, arityText(fn))
		return konst(value.Value{})
	}
	if c.planar && fn.Planar != nil {
		fn = fn.Planar
	}
	if fn.In != nil && e.Language != "" {
		if l, ok := text.LanguageOf(e.Language); ok {
			fn = fn.In(l)
		}
	}
	args := c.exprs(e.Args)
	eval := fn.Eval
	if fn.Prepare != nil {
		vals, is := make([]value.Value, len(args)), make([]bool, len(args))
		for i, a := range args {
			vals[i], is[i] = a.val, a.konst
		}
		if ready := fn.Prepare(vals, is); ready != nil {
			eval = ready
		}
	}
	run := func(f *frame) value.Value {
		base := len(f.args)
		for i := range args {
			v := args[i].fn(f)
			f.args = append(f.args, v)
		}
		v := fn.Call(&f.ctx, eval, f.args[base:])
		f.args = f.args[:base]
		return v
	}
	if fn.Volatile {
		return cexpr{fn: run}
	}
	return fold(run, args...)
}

// arityText returns the number of arguments of a function in the service's words.
func arityText(fn *funcs.Func) string {
	n := func(i int) string { return value.FormatNumber(value.IntOf(int64(i))) }
	switch {
	case fn.Max < 0:
		return "at least " + n(fn.Min)
	case fn.Min == fn.Max:
		return n(fn.Min)
	}
	return n(fn.Min) + " to " + n(fn.Max)
}
