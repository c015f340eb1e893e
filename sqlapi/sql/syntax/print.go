package syntax

import (
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// Print returns an expression as text that parses to the same tree. Binary expressions have parentheses. A property is
// written .name where the name allows it, else ["name"]. AND and OR chains stay flat, so the nesting of the text is not
// deeper than that of the tree.
//
// Example: `c.n>1 and c["a b"] = 'x'` is printed as `((c.n > 1) AND (c["a b"] = "x"))`.
func Print(e Expr) string {
	var p printer
	p.expr(e)
	return p.b.String()
}

// PrintRooted is Print with ROOT in place of the alias root.
func PrintRooted(e Expr, root string) string {
	p := printer{root: root}
	p.expr(e)
	return p.b.String()
}

// PrintQuery returns a query as text that parses to the same tree.
func PrintQuery(q *Query) string {
	var p printer
	p.query(q)
	return p.b.String()
}

type printer struct {
	b    strings.Builder
	root string // alias that is printed as ROOT
}

//go:noinline // called from many places, see decision 41
func (p *printer) s(parts ...string) {
	for _, x := range parts {
		p.b.WriteString(x)
	}
}

func (p *printer) list(es []Expr) {
	for i, e := range es {
		if i > 0 {
			p.s(", ")
		}
		p.expr(e)
	}
}

func (p *printer) expr(e Expr) {
	switch e := e.(type) {
	case *Lit:
		p.literal(e.Val)
	case *ParamRef:
		p.s("@", e.Name)
	case *Ident:
		if p.root != "" && e.Name == p.root {
			p.s("ROOT")
		} else {
			p.s(e.Name)
		}
	case *Prop:
		p.base(e.Base)
		if isPlainName(e.Name) {
			p.s(".", e.Name)
		} else {
			p.s("[", quote(e.Name), "]")
		}
	case *Index:
		p.base(e.Base)
		p.s("[")
		p.expr(e.At)
		p.s("]")
	case *Unary:
		p.s("(", e.Op, " ")
		p.expr(e.X)
		p.s(")")
	case *Binary:
		p.s("(")
		p.expr(e.L)
		p.s(" ", e.Op, " ")
		p.expr(e.R)
		p.s(")")
	case *Chain:
		p.s("(")
		for i, x := range e.Xs {
			if i > 0 {
				p.s(" ", e.Op, " ")
			}
			p.expr(x)
		}
		p.s(")")
	case *Cond:
		p.cond(e)
	case *Between, *In, *Like:
		p.predicate(e)
	case *Call:
		if e.UDF {
			p.s("udf.")
		}
		p.s(e.Name, "(")
		p.list(e.Args)
		p.s(")")
	case *ArrayExpr:
		p.s("[")
		p.list(e.Elems)
		p.s("]")
	case *ObjectExpr:
		p.object(e)
	case *SubqueryExpr:
		p.s(e.Kind, "(")
		p.query(e.Q)
		p.s(")")
	}
}

// base writes the expression that a property is read from. A literal gets parentheses: a number needs them before a
// dot.
func (p *printer) base(e Expr) {
	if _, ok := e.(*Lit); !ok {
		p.expr(e)
		return
	}
	p.s("(")
	p.expr(e)
	p.s(")")
}

func (p *printer) cond(e *Cond) {
	p.s("(")
	p.expr(e.C)
	p.s(" ? ")
	p.expr(e.A)
	p.s(" : ")
	p.expr(e.B)
	p.s(")")
}

func (p *printer) predicate(e Expr) {
	not := map[bool]string{true: " NOT"}
	p.s("(")
	switch e := e.(type) {
	case *Between:
		p.expr(e.X)
		p.s(not[e.Not], " BETWEEN ")
		p.expr(e.Lo)
		p.s(" AND ")
		p.expr(e.Hi)
	case *In:
		p.expr(e.X)
		p.s(not[e.Not], " IN (")
		p.list(e.List)
		p.s(")")
	case *Like:
		p.expr(e.X)
		p.s(not[e.Not], " LIKE ")
		p.expr(e.Pattern)
		if e.Escape != "" {
			p.s(" ESCAPE ", quote(e.Escape))
		}
	}
	p.s(")")
}

func (p *printer) object(e *ObjectExpr) {
	p.s("{")
	for i, k := range e.Keys {
		if i > 0 {
			p.s(", ")
		}
		p.s(quote(k), ": ")
		p.expr(e.Vals[i])
	}
	p.s("}")
}

// literal writes a literal in the language's syntax.
func (p *printer) literal(v value.Value) {
	switch v.Kind() {
	case value.Undefined:
		p.s("undefined")
	case value.Null:
		p.s("null")
	case value.Bool:
		p.s(strconv.FormatBool(v.Bool()))
	case value.String:
		p.s(quote(v.Str()))
	case value.Double:
		p.s(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		p.s(strconv.FormatInt(v.Int(), 10))
	}
}

// query writes a whole query.
func (p *printer) query(q *Query) {
	p.s("SELECT ")
	if q.Distinct {
		p.s("DISTINCT ")
	}
	if q.Top != nil {
		p.s("TOP ", q.Top.text(), " ")
	}
	p.selectList(q)
	if q.From != nil {
		p.s(" FROM ")
		p.from(q.From)
	}
	if q.Where != nil {
		p.s(" WHERE ")
		p.expr(q.Where)
	}
	if len(q.GroupBy) > 0 {
		p.s(" GROUP BY ")
		p.list(q.GroupBy)
	}
	p.orderBy(q)
	if q.Offset != nil {
		p.s(" OFFSET ", q.Offset.text(), " LIMIT ", q.Limit.text())
	}
}

func (p *printer) selectList(q *Query) {
	switch {
	case q.Star:
		p.s("*")
	case q.Value != nil:
		p.s("VALUE ")
		p.expr(q.Value)
	default:
		for i, it := range q.Items {
			if i > 0 {
				p.s(", ")
			}
			p.expr(it.Expr)
			if it.Alias != "" {
				p.s(" AS ", aliasText(it.Alias))
			}
		}
	}
}

func (p *printer) orderBy(q *Query) {
	if len(q.OrderBy) == 0 {
		return
	}
	p.s(" ORDER BY ")
	if q.Rank {
		p.s("RANK ")
	}
	for i, o := range q.OrderBy {
		if i > 0 {
			p.s(", ")
		}
		p.expr(o.Expr)
		if o.Desc {
			p.s(" DESC")
		}
	}
}

func (p *printer) from(f *From) {
	for i, s := range f.Sources {
		if i > 0 {
			p.s(" JOIN ")
		}
		if s.In {
			p.s(s.Alias, " IN ")
		}
		if s.Query != nil {
			p.s("(")
			p.query(s.Query)
			p.s(")")
		} else {
			p.expr(s.Path)
		}
		if !s.In && s.Alias != "" && (s.Query != nil || DerivedName(s.Path) != s.Alias) {
			p.s(" AS ", s.Alias)
		}
	}
}

func (c *Count) text() string {
	if c.Param != "" {
		return "@" + c.Param
	}
	return strconv.FormatInt(c.N, 10)
}

// isPlainName reports whether a property can be written as .name, without brackets and quotes.
func isPlainName(s string) bool {
	if s == "" || isDigit(s[0]) || lowerKeywords[s] || keywords[strings.ToUpper(s)] {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !IsWordByte(s[i]) {
			return false
		}
	}
	return true
}

func aliasText(s string) string {
	if isPlainName(s) {
		return s
	}
	return quote(s)
}

// quote writes a string literal.
func quote(s string) string { return string(json.AppendString(nil, s)) }
