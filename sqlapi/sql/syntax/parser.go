package syntax

import (
	"math"
	"strconv"
	"strings"
)

// Limits bound what Parse accepts.
type Limits struct {
	Text    int // bytes of the text
	Joins   int
	InItems int
	Depth   int // nesting of parentheses, sub-queries and operators
}

// DefaultLimits returns the service's limits. The nesting limit is higher than generated queries need.
func DefaultLimits() Limits { return Limits{Text: 512 << 10, Joins: 10, InItems: 16000, Depth: 2000} }

const (
	maxDepth      = 2000 // cap of Limits.Depth: closures recurse as deep as the tree
	maxSubqueries = 200
	MaxCount      = math.MaxUint32 // TOP, OFFSET, LIMIT
)

// Parse reads a query text. The error is an *Error.
func Parse(text string, lim Limits) (*Query, error) {
	if lim.Depth <= 0 || lim.Depth > maxDepth {
		lim.Depth = maxDepth
	}
	if len(text) > lim.Text {
		return nil, PlainError("The SQL query text exceeded the maximum limit of %d characters.", lim.Text)
	}
	p := &parser{lex: lexer{text: text}, lim: lim}
	p.advance()
	q := p.query()
	if p.err == nil && p.tok.kind != tEOF {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	q.Inner = p.inner
	return q, nil
}

// parser is a recursive-descent parser with one token of look-ahead. Each function reads one construct: it begins at
// the construct's first token (tok) and ends with tok behind its last one. After the first error every token reads as
// the end of the text, so all loops stop.
//
// Example: for `SELECT TOP 2 c.a FROM c`, query calls selectClause. That reads SELECT, TOP, the count 2 and the select
// list c.a, and stops at FROM. query then reads FROM and calls source for c.
type parser struct {
	lex     lexer
	tok     token
	ahead   *token
	prevEnd int // end of the token before tok
	lim     Limits
	err     error
	nest    int
	queries int
	inner   *Error // see Query.Inner
}

func (p *parser) advance() {
	p.prevEnd = p.tok.pos.end
	if p.err != nil {
		p.tok = token{kind: tEOF, pos: p.tok.pos}
		return
	}
	if p.ahead != nil {
		p.tok, p.ahead = *p.ahead, nil
		return
	}
	t, err := p.lex.next()
	if err != nil {
		p.fail(err)
		return
	}
	p.tok = t
}

// peek returns the token after the current one, without consuming it.
func (p *parser) peek() token {
	if p.err != nil {
		return token{}
	}
	if p.ahead == nil {
		t, err := p.lex.next()
		if err != nil {
			p.fail(err)
			return token{}
		}
		p.ahead = &t
	}
	return *p.ahead
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.tok, p.ahead = token{kind: tEOF, pos: p.tok.pos}, nil
}

func (p *parser) failAt(sp Span, code, format string, args ...any) {
	p.fail(ErrorAt(p.lex.text, sp, code, format, args...))
}

// unexpected reports a syntax error at the current token.
func (p *parser) unexpected() {
	if p.err != nil {
		return
	}
	if p.tok.kind == tEOF {
		p.failAt(p.tok.pos, CodeEOF, "Syntax error, unexpected end-of-file.")
		return
	}
	p.failAt(p.tok.pos, CodeSyntax, "Syntax error, incorrect syntax near '%s'.", Clip(p.tok.raw))
}

func (p *parser) isOp(op string) bool { return p.tok.kind == tOp && p.tok.text == op }
func (p *parser) isKw(kw string) bool { return p.tok.kind == tKeyword && p.tok.text == kw }

func (p *parser) acceptOp(op string) bool {
	if p.isOp(op) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) acceptKw(kw string) bool {
	if p.isKw(kw) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.acceptOp(op) {
		p.unexpected()
	}
}

func (p *parser) expectKw(kw string) {
	if !p.acceptKw(kw) {
		p.unexpected()
	}
}

// ident reads an identifier. RANK is an identifier everywhere except directly after ORDER BY.
func (p *parser) ident() string {
	if p.tok.kind == tIdent || p.isKw("RANK") {
		name := p.tok.raw
		p.advance()
		return name
	}
	p.unexpected()
	return ""
}

func (p *parser) isIdent() bool { return p.tok.kind == tIdent || p.isKw("RANK") }

// enter counts one more level of nesting and reports whether the limit allows it. leave ends the level.
func (p *parser) enter() bool {
	p.nest++
	if p.nest > p.lim.Depth {
		p.fail(PlainError("The query is nested too deeply: more than %d levels.", p.lim.Depth))
		return false
	}
	return true
}

func (p *parser) leave() { p.nest-- }

// query reads a query or sub-query, from SELECT to its last clause.
func (p *parser) query() *Query {
	q := &Query{Text: p.lex.text}
	q.pos.start = p.tok.pos.start
	if !p.enter() {
		return q
	}
	defer p.leave()
	if p.queries++; p.queries > maxSubqueries {
		p.fail(PlainError("The query has more than %d sub-queries.", maxSubqueries))
		return q
	}
	top := p.queries == 1
	p.selectClause(q)
	if p.acceptKw("FROM") {
		q.From = p.from()
	}
	if p.acceptKw("WHERE") {
		q.Where = p.expr()
	}
	if p.acceptKw("GROUP") {
		p.expectKw("BY")
		q.GroupBy = p.exprList()
	}
	begin := p.tok.pos.start
	if p.acceptKw("ORDER") {
		p.expectKw("BY")
		p.orderBy(q)
		if !top {
			p.unservedInside(begin, codeInnerOrder, "'ORDER BY' is not supported in subqueries.")
		}
		begin = p.tok.pos.start
	}
	if p.acceptKw("OFFSET") {
		q.Offset = p.count(codeOffset, "OFFSET")
		p.expectKw("LIMIT")
		q.Limit = p.count(codeLimit, "LIMIT")
		if !top {
			p.unservedInside(begin, codeInnerLimit, "'OFFSET LIMIT' clause is not supported in subqueries.")
		}
	}
	q.pos.end, q.height = p.prevEnd, q.measure()
	return q
}

// unservedInside records a clause of a sub-query that the service doesn't serve there: the one that ends before the
// current token.
func (p *parser) unservedInside(begin int, code, message string) {
	e := ErrorAt(p.lex.text, Span{begin, p.prevEnd}, code, "%s", message)
	if p.inner == nil {
		p.inner = e
	} else if p.inner.TakesMore() {
		p.inner.Also(e)
	}
}

// selectClause reads SELECT [DISTINCT] [TOP n] and the select list.
func (p *parser) selectClause(q *Query) {
	p.expectKw("SELECT")
	q.Distinct = p.acceptKw("DISTINCT")
	if p.acceptKw("TOP") {
		q.Top = p.count(codeTop, "TOP")
	}
	q.SelectSpan.start = p.tok.pos.start
	switch {
	case p.acceptOp("*"):
		q.Star = true
	case p.acceptKw("VALUE"):
		q.Value = p.expr()
	default:
		for {
			q.Items = append(q.Items, p.selectItem())
			if !p.acceptOp(",") {
				break
			}
		}
	}
	q.SelectSpan.end = p.prevEnd
}

func (p *parser) selectItem() SelectItem {
	it := SelectItem{pos: p.tok.pos}
	it.Expr = p.expr()
	it.Named = Span{it.pos.start, p.prevEnd}
	as := p.acceptKw("AS")
	alias := p.tok.pos
	switch {
	case p.isIdent():
		it.Alias = p.ident()
	case p.tok.kind == tString:
		it.Alias = p.outputName()
	case as:
		p.unexpected()
	}
	if it.pos.end = p.prevEnd; it.Alias != "" {
		it.Named = alias
	}
	return it
}

// count reads the number of TOP, OFFSET or LIMIT.
func (p *parser) count(code, clause string) *Count {
	c := &Count{Pos: p.tok.pos}
	switch p.tok.kind {
	case tParam:
		c.Param = p.tok.text
		p.advance()
	case tNumber:
		n, err := strconv.ParseInt(p.tok.text, 10, 64)
		switch whole := err == nil || p.tok.num == math.Trunc(p.tok.num); {
		case whole && err == nil && n <= MaxCount:
		case code == codeTop:
			p.failAt(p.tok.pos, code, "The count value provided for a TOP clause must be an integer.")
			return c
		case !whole:
			p.unexpected()
			return c
		default:
			p.failAt(p.tok.pos, code, "The %s count value exceeds the maximum allowed value.", clause)
			return c
		}
		c.N = n
		p.advance()
	default:
		p.unexpected()
	}
	return c
}

func (p *parser) from() *From {
	f := &From{}
	for {
		f.Sources = append(f.Sources, p.source())
		if p.err != nil || !p.isKw("JOIN") {
			return f
		}
		if len(f.Sources) > p.lim.Joins {
			p.fail(PlainError("The query contains more than the maximum allowed number of JOINs: %d.", p.lim.Joins))
			return f
		}
		p.advance()
	}
}

// source reads: path [[AS] alias] | alias IN (path | (query)) | (query) [[AS] alias].
func (p *parser) source() Source {
	s := Source{Pos: p.tok.pos}
	if p.isIdent() {
		if next := p.peek(); next.kind == tKeyword && next.text == "IN" {
			s.Alias, s.In = p.ident(), true
			p.advance()
			p.sourceSet(&s)
			s.Pos.end = p.prevEnd
			return s
		}
	}
	p.sourceSet(&s)
	s.Pos.end = p.prevEnd
	if p.acceptKw("AS") || p.isIdent() {
		s.Alias = p.ident()
	} else if s.Path != nil {
		s.Alias = DerivedName(s.Path)
	}
	return s
}

// sourceSet reads a path or a parenthesised sub-query.
func (p *parser) sourceSet(s *Source) {
	if p.isOp("(") {
		p.advance()
		s.Query = p.query()
		p.expectOp(")")
		return
	}
	pos := p.tok.pos
	var e Expr = &Ident{Node: Node{Pos: pos, h: 1}, Name: p.ident()}
	for p.err == nil && (p.isOp(".") || p.isOp("[")) {
		if e.Depth() >= p.lim.Depth {
			p.enterTooDeep()
			break
		}
		if p.acceptOp(".") {
			name := p.ident()
			e = &Prop{Node: p.made(pos.start, e), Base: e, Name: name}
			continue
		}
		p.advance()
		switch p.tok.kind {
		case tString:
			name := p.tok.text
			p.advance()
			p.expectOp("]")
			e = &Prop{Node: p.made(pos.start, e), Base: e, Name: name}
		case tNumber:
			at := p.numberLit()
			p.expectOp("]")
			e = &Index{Node: p.made(pos.start, e, at), Base: e, At: at}
		default:
			p.unexpected()
		}
	}
	s.Path = e
}

func (p *parser) orderBy(q *Query) {
	if p.isKw("RANK") {
		if next := p.peek(); next.kind == tIdent || next.kind == tKeyword && next.text != "ASC" &&
			next.text != "DESC" && next.text != "OFFSET" {
			p.advance()
			q.Rank = true
		}
	}
	for {
		it := OrderItem{Expr: p.expr()}
		if q.Rank && (p.isKw("ASC") || p.isKw("DESC")) {
			p.failAt(p.tok.pos, CodeRank, "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not "+
				"allowed.")
			return
		}
		if call, ok := it.Expr.(*Call); ok && !call.UDF && strings.EqualFold(call.Name, "VectorDistance") &&
			(p.isKw("ASC") || p.isKw("DESC")) {
			p.failAt(p.tok.pos, CodeRank, "Specifying a sorting order (ASC or DESC) with VectorDistance function is "+
				"not supported.")
			return
		}
		if p.acceptKw("DESC") {
			it.Desc = true
		} else {
			p.acceptKw("ASC")
		}
		q.OrderBy = append(q.OrderBy, it)
		if !p.acceptOp(",") {
			return
		}
	}
}

func (p *parser) exprList() []Expr {
	var xs []Expr
	for {
		xs = append(xs, p.expr())
		if !p.acceptOp(",") {
			return xs
		}
	}
}

// DerivedName returns the name of a select item or source without an alias. For a path that is its last property.
func DerivedName(e Expr) string {
	switch e := e.(type) {
	case *Ident:
		return e.Name
	case *Prop:
		return e.Name
	}
	return ""
}
