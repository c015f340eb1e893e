package syntax

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// binaryPrec is the precedence of the binary operators. A greater precedence binds tighter. All are left-associative.
//
// Example: `a + b * c - d` is read as `((a + (b * c)) - d)`.
var binaryPrec = map[string]int{
	"||": 1, "|": 2, "^": 3, "&": 4,
	"=": 5, "!=": 5, "<>": 5,
	"<": 6, ">": 6, "<=": 6, ">=": 6,
	"<<": 7, ">>": 7, ">>>": 7,
	"+": 8, "-": 8,
	"*": 9, "/": 9, "%": 9,
}

// made returns the Node of an expression with the given parts. The expression begins at byte start and ends before the
// current token. It fails when the expression is higher than the nesting limit.
func (p *parser) made(start int, parts ...Expr) Node {
	h := 0
	for _, x := range parts {
		if x != nil && x.Depth() > h {
			h = x.Depth()
		}
	}
	h++
	if h > p.lim.Depth {
		p.enterTooDeep()
	}
	return Node{Pos: Span{start, p.prevEnd}, h: int32(h)}
}

func (p *parser) enterTooDeep() {
	p.fail(PlainError("The query is nested too deeply: more than %d levels.", p.lim.Depth))
}

// expr reads a whole expression: the conditional operator binds weakest.
func (p *parser) expr() Expr {
	start := p.tok.pos.start
	if !p.enter() {
		return &Lit{}
	}
	defer p.leave()
	c := p.coalesce()
	if !p.acceptOp("?") {
		return c
	}
	a := p.expr()
	p.expectOp(":")
	b := p.expr()
	return &Cond{Node: p.made(start, c, a, b), C: c, A: a, B: b}
}

func (p *parser) coalesce() Expr {
	start := p.tok.pos.start
	l := p.or()
	for p.acceptOp("??") {
		r := p.or()
		l = &Binary{Node: p.made(start, l, r), Op: "??", L: l, R: r}
	}
	return l
}

func (p *parser) or() Expr {
	start := p.tok.pos.start
	x := p.and()
	if !p.isKw("OR") {
		return x
	}
	xs := []Expr{x}
	for p.acceptKw("OR") {
		xs = append(xs, p.and())
	}
	return &Chain{Node: p.made(start, xs...), Op: "OR", Xs: xs}
}

func (p *parser) and() Expr {
	start := p.tok.pos.start
	x := p.predicate()
	if !p.isKw("AND") {
		return x
	}
	xs := []Expr{x}
	for p.acceptKw("AND") {
		xs = append(xs, p.predicate())
	}
	return &Chain{Node: p.made(start, xs...), Op: "AND", Xs: xs}
}

// predicate reads x [NOT] BETWEEN .. | IN (..) | LIKE ..
func (p *parser) predicate() Expr {
	start := p.tok.pos.start
	x := p.binary(1)
	for p.err == nil {
		not := false
		if p.isKw("NOT") {
			p.advance()
			if not = true; !p.isKw("BETWEEN") && !p.isKw("IN") && !p.isKw("LIKE") {
				p.unexpected()
				return x
			}
		}
		switch {
		case p.acceptKw("BETWEEN"):
			lo := p.binary(1)
			p.expectKw("AND")
			hi := p.binary(1)
			x = &Between{Node: p.made(start, x, lo, hi), X: x, Lo: lo, Hi: hi, Not: not}
		case p.acceptKw("IN"):
			list := p.inList()
			x = &In{Node: p.made(start, append([]Expr{x}, list...)...), X: x, List: list, Not: not}
		case p.acceptKw("LIKE"):
			x = p.like(start, x, not)
		default:
			return x
		}
	}
	return x
}

func (p *parser) inList() []Expr {
	var list []Expr
	p.expectOp("(")
	for p.err == nil {
		list = append(list, p.expr())
		if len(list) > p.lim.InItems {
			p.fail(PlainError("The IN list has more than %d items.", p.lim.InItems))
		}
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp(")")
	return list
}

func (p *parser) like(start int, x Expr, not bool) Expr {
	l := &Like{X: x, Not: not}
	l.Pattern = p.binary(1)
	if p.acceptKw("ESCAPE") {
		if p.tok.kind != tString || len([]rune(p.tok.text)) != 1 {
			p.unexpected()
			return l
		}
		l.Escape = p.tok.text
		p.advance()
	}
	l.Node = p.made(start, x, l.Pattern)
	return l
}

// binary reads a sequence of operators of precedence min or higher (precedence climbing). A sequence of || becomes one
// flat Chain.
func (p *parser) binary(min int) Expr {
	start := p.tok.pos.start
	l := p.unary()
	for p.tok.kind == tOp {
		op := p.tok.text
		prec := binaryPrec[op]
		if prec == 0 || prec < min {
			return l
		}
		p.advance()
		r := p.binary(prec + 1)
		if op == "||" {
			xs := []Expr{l, r}
			for p.acceptOp("||") {
				xs = append(xs, p.binary(prec+1))
			}
			l = &Chain{Node: p.made(start, xs...), Op: op, Xs: xs}
			continue
		}
		if op == "<>" {
			op = "!="
		}
		l = &Binary{Node: p.made(start, l, r), Op: op, L: l, R: r}
	}
	return l
}

func (p *parser) unary() Expr {
	op := ""
	switch {
	case p.isOp("-"), p.isOp("+"), p.isOp("~"):
		op = p.tok.text
	case p.isKw("NOT"):
		op = "NOT"
	default:
		return p.postfix()
	}
	start := p.tok.pos.start
	if !p.enter() {
		return &Lit{}
	}
	defer p.leave()
	p.advance()
	x := p.unary()
	return &Unary{Node: p.made(start, x), Op: op, X: x}
}

// postfix reads a primary and its .name and [expression] steps.
func (p *parser) postfix() Expr {
	start := p.tok.pos.start
	e := p.primary()
	for p.err == nil {
		switch {
		case p.acceptOp("."):
			name := p.ident()
			e = &Prop{Node: p.made(start, e), Base: e, Name: name}
		case p.acceptOp("["):
			at := p.expr()
			p.expectOp("]")
			if lit, ok := at.(*Lit); ok && lit.Val.Kind() == value.String {
				e = &Prop{Node: p.made(start, e), Base: e, Name: lit.Val.Str()}
			} else {
				e = &Index{Node: p.made(start, e, at), Base: e, At: at}
			}
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary() Expr {
	t := p.tok
	leaf := Node{Pos: t.pos, h: 1}
	switch t.kind {
	case tNumber:
		return p.numberLit()
	case tString:
		p.advance()
		return &Lit{Node: leaf, Val: value.StringOf(t.text)}
	case tParam:
		p.advance()
		return &ParamRef{Node: leaf, Name: t.text}
	case tIdent:
		return p.identOrCall()
	case tKeyword:
		return p.keywordPrimary()
	}
	switch {
	case p.isOp("("):
		return p.parenthesised()
	case p.isOp("["):
		return p.arrayLit()
	case p.isOp("{"):
		return p.objectLit()
	}
	p.unexpected()
	return &Lit{Node: leaf}
}

// numberLit reads a number. A whole number that fits is stored as an integer, in the same way as numbers in JSON.
func (p *parser) numberLit() Expr {
	t := p.tok
	p.advance()
	l := &Lit{Node: Node{Pos: t.pos, h: 1}, Val: value.DoubleOf(t.num)}
	if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
		l.Val = value.IntOf(n)
	} else if t.num == float64(int64(t.num)) && t.num < 1<<53 {
		l.Val = value.IntOf(int64(t.num))
	}
	return l
}

// keywordPrimary reads an expression that begins with a reserved word.
func (p *parser) keywordPrimary() Expr {
	t := p.tok
	leaf := Node{Pos: t.pos, h: 1}
	switch t.text {
	case "true", "false":
		p.advance()
		return &Lit{Node: leaf, Val: value.BoolOf(t.text == "true")}
	case "null":
		p.advance()
		return &Lit{Node: leaf, Val: value.NullValue()}
	case "undefined":
		p.advance()
		return &Lit{Node: leaf}
	case "EXISTS", "ARRAY":
		p.advance()
		if !p.isOp("(") {
			p.unexpected()
		}
		return p.subquery(t.pos.start, t.text)
	case "LEFT", "RIGHT":
		if n := p.peek(); n.kind == tOp && n.text == "(" {
			p.advance()
			return p.call(t, false)
		}
	case "RANK":
		return p.identOrCall()
	case "udf":
		p.advance()
		p.expectOp(".")
		name := p.tok
		p.ident()
		name.pos.start = t.pos.start
		return p.call(name, true)
	}
	p.unexpected()
	return &Lit{Node: leaf}
}

// identOrCall reads an alias, a function call, or ALL, FIRST, LAST with a sub-query.
func (p *parser) identOrCall() Expr {
	t := p.tok
	p.ident()
	if !p.isOp("(") {
		return &Ident{Node: Node{Pos: t.pos, h: 1}, Name: t.raw}
	}
	switch up := strings.ToUpper(t.raw); up {
	case "ALL", "FIRST", "LAST":
		if n := p.peek(); n.kind == tKeyword && n.text == "SELECT" {
			return p.subquery(t.pos.start, up)
		}
	}
	return p.call(t, false)
}

func (p *parser) call(name token, udf bool) Expr {
	c := &Call{Name: name.raw, UDF: udf}
	p.expectOp("(")
	if !p.isOp(")") {
		for p.err == nil {
			c.Args = append(c.Args, p.expr())
			if !p.acceptOp(",") {
				break
			}
		}
	}
	p.expectOp(")")
	c.Node = p.made(name.pos.start, c.Args...)
	return c
}

// parenthesised reads (expression) or (query).
func (p *parser) parenthesised() Expr {
	start := p.tok.pos.start
	if n := p.peek(); n.kind == tKeyword && n.text == "SELECT" {
		return p.subquery(start, "")
	}
	p.advance()
	e := p.expr()
	p.expectOp(")")
	return e
}

func (p *parser) subquery(start int, kind string) Expr {
	p.expectOp("(")
	q := p.query()
	p.expectOp(")")
	n := p.made(start)
	if n.h += int32(q.height); int(n.h) > p.lim.Depth {
		p.enterTooDeep()
	}
	return &SubqueryExpr{Node: n, Kind: kind, Q: q}
}

func (p *parser) arrayLit() Expr {
	a := &ArrayExpr{}
	start := p.tok.pos.start
	p.advance()
	if !p.isOp("]") {
		a.Elems = p.exprList()
	}
	p.expectOp("]")
	a.Node = p.made(start, a.Elems...)
	return a
}

// outputName reads a string that names a property of the result. It refuses U+0000, which stored names can't contain.
func (p *parser) outputName() string {
	name := p.tok.text
	if strings.IndexByte(name, 0) >= 0 {
		p.failAt(p.tok.pos, codeString, "Syntax error, invalid string literal token '%s'.", Clip(p.tok.raw))
	}
	p.advance()
	return name
}

func (p *parser) objectLit() Expr {
	o := &ObjectExpr{}
	start := p.tok.pos.start
	p.advance()
	if !p.isOp("}") {
		for p.err == nil {
			switch {
			case p.tok.kind == tString:
				o.Keys = append(o.Keys, p.outputName())
			default:
				o.Keys = append(o.Keys, p.ident())
			}
			p.expectOp(":")
			o.Vals = append(o.Vals, p.expr())
			if !p.acceptOp(",") {
				break
			}
		}
	}
	p.expectOp("}")
	o.Node = p.made(start, o.Vals...)
	return o
}
