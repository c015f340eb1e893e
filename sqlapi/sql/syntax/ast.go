// Package syntax turns the text of a query into a syntax tree and back. It holds the lexer, the parser, the printer and
// the errors of a text that is refused. It knows no functions and evaluates nothing.
//
// Example: Parse reads
//
//	SELECT VALUE c.a FROM c WHERE c.n > 1 AND c.s = "x"
//
// and returns
//
//	Query{
//		Value: Prop{Ident c, "a"},
//		From:  {Source{Path: Ident c, Alias: "c"}},
//		Where: Chain{"AND", Binary{">", Prop{Ident c, "n"}, Lit 1}, Binary{"=", Prop{Ident c, "s"}, Lit "x"}},
//	}
//
// Print and PrintQuery write such a tree as text again.
package syntax

import "github.com/orrerydb/orrery/core/value"

// RootName is the name of an identifier that stands for the item itself, whatever alias the query gives it. No text can
// contain it, because it begins with U+0000.
const RootName = "\x00item"

// Query is the syntax tree of a query or sub-query. It is immutable after Parse.
type Query struct {
	Distinct bool
	Top      *Count // nil when absent
	Star     bool   // SELECT *
	Value    Expr   // SELECT VALUE e
	Items    []SelectItem
	From     *From // nil when absent
	Where    Expr
	GroupBy  []Expr
	OrderBy  []OrderItem
	Rank     bool // ORDER BY RANK
	Offset   *Count
	Limit    *Count

	pos        Span
	SelectSpan Span // the select list
	height     int  // see measure
	Text       string

	// Inner, of a whole query, is the error with which the service refuses clauses of its sub-queries: ORDER BY and
	// OFFSET LIMIT. It is nil if there are none.
	Inner *Error
}

// ValueOf returns the query SELECT VALUE e without FROM. sp is its position in the text.
func ValueOf(e Expr, sp Span) *Query { return &Query{Value: e, pos: sp, height: e.Depth()} }

// Count is the number of a TOP, OFFSET or LIMIT clause: a literal or a parameter.
type Count struct {
	N     int64
	Param string // without @; "" for a literal
	Pos   Span
}

// SelectItem is one expression of a select list; Alias "" when none was written.
type SelectItem struct {
	Expr  Expr
	Alias string
	Named Span // the alias, or the expression when there is none
	pos   Span
}

// OrderItem is one ORDER BY expression.
type OrderItem struct {
	Expr Expr
	Desc bool

	Computed string // name of the computed property that Expr replaces; "" otherwise
}

// From is the FROM clause: sources joined from left to right.
type From struct {
	Sources []Source
}

// Source is one input set: a path or sub-query, iterated when In is set.
type Source struct {
	Alias string // explicit or derived; "" for a sub-query without one
	Path  Expr   // Ident, Prop, Index chain; nil for a sub-query
	Query *Query
	In    bool // alias IN path: one row per array element
	Pos   Span
}

// Expr is a scalar expression.
type Expr interface {
	Span() Span
	Depth() int // height of the tree, bounded by maxDepth
}

// Node is the part that all expressions share: the position and the height.
type Node struct {
	Pos Span
	h   int32
}

// Above returns n with a height that is greater than the height of each part.
func (n Node) Above(parts ...Expr) Node {
	h := n.h
	for _, x := range parts {
		h = max(h, int32(x.Depth())+1)
	}
	n.h = max(h, 1)
	return n
}

// Span implements Expr.
func (n Node) Span() Span { return n.Pos }

// Depth implements Expr.
func (n Node) Depth() int { return int(n.h) }

// The expressions.
type (
	// Lit is a literal; undefined is a Lit of the zero Value.
	Lit struct {
		Node
		Val value.Value
	}
	// ParamRef is @name.
	ParamRef struct {
		Node
		Name string
	}
	// Ident is an alias.
	Ident struct {
		Node
		Name string
	}
	// Prop is base.name or base["name"].
	Prop struct {
		Node
		Base Expr
		Name string
	}
	// Index is base[expression].
	Index struct {
		Node
		Base, At Expr
	}
	// Unary is + - ~ or NOT.
	Unary struct {
		Node
		Op string
		X  Expr
	}
	// Binary is an arithmetic, bitwise, shift, comparison or ?? operator.
	Binary struct {
		Node
		Op   string
		L, R Expr
	}
	// Chain is a flat list joined by AND, OR or ||.
	Chain struct {
		Node
		Op string
		Xs []Expr
	}
	// Cond is c ? a : b.
	Cond struct {
		Node
		C, A, B Expr
	}
	// Between is x [NOT] BETWEEN lo AND hi.
	Between struct {
		Node
		X, Lo, Hi Expr
		Not       bool
	}
	// In is x [NOT] IN (list).
	In struct {
		Node
		X    Expr
		List []Expr
		Not  bool
	}
	// Like is x [NOT] LIKE pattern [ESCAPE 'c'].
	Like struct {
		Node
		X, Pattern Expr
		Escape     string
		Not        bool
	}
	// Call is a function call; UDF for udf.name(..).
	Call struct {
		Node
		Name string // as written
		UDF  bool
		Args []Expr
		// Language is that of the text that a full-text function searches, "" for English. The text of a query doesn't
		// have it. Package expand sets it.
		Language string
	}
	// ArrayExpr is [a, b].
	ArrayExpr struct {
		Node
		Elems []Expr
	}
	// ObjectExpr is {"k": v}.
	ObjectExpr struct {
		Node
		Keys []string
		Vals []Expr
	}
	// SubqueryExpr is (q), EXISTS(q), ARRAY(q), ALL(q), FIRST(q) or LAST(q).
	SubqueryExpr struct {
		Node
		Kind string // "", EXISTS, ARRAY, ALL, FIRST, LAST
		Q    *Query
	}
)

// Children calls f for each direct sub-expression of e; sub-queries are not entered.
func Children(e Expr, f func(Expr)) {
	switch e := e.(type) {
	case *Prop:
		f(e.Base)
	case *Index:
		f(e.Base)
		f(e.At)
	case *Unary:
		f(e.X)
	case *Binary:
		f(e.L)
		f(e.R)
	case *Chain:
		for _, x := range e.Xs {
			f(x)
		}
	case *Cond:
		f(e.C)
		f(e.A)
		f(e.B)
	case *Between:
		f(e.X)
		f(e.Lo)
		f(e.Hi)
	case *In:
		f(e.X)
		for _, x := range e.List {
			f(x)
		}
	case *Like:
		f(e.X)
		f(e.Pattern)
	case *Call:
		for _, x := range e.Args {
			f(x)
		}
	case *ArrayExpr:
		for _, x := range e.Elems {
			f(x)
		}
	case *ObjectExpr:
		for _, x := range e.Vals {
			f(x)
		}
	}
}

// measure returns the greatest depth of the expressions of q and of its sub-queries in FROM.
func (q *Query) measure() int {
	h := 0
	see := func(e Expr) {
		if e != nil && e.Depth() > h {
			h = e.Depth()
		}
	}
	see(q.Value)
	see(q.Where)
	for _, it := range q.Items {
		see(it.Expr)
	}
	for _, e := range q.GroupBy {
		see(e)
	}
	for _, o := range q.OrderBy {
		see(o.Expr)
	}
	if q.From != nil {
		for _, s := range q.From.Sources {
			see(s.Path)
			if s.Query != nil && s.Query.height >= h {
				h = s.Query.height + 1
			}
		}
	}
	return h
}
