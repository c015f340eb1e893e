package sql

import "github.com/orrerydb/orrery/core/value"

// rootName is an identifier that no text can hold: the item, whatever aliases there are.
const rootName = "\x00item"

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

	pos        span
	selectSpan span // the select list
	height     int  // see measure
	text       string
}

// valueQuery is SELECT VALUE e, written where sp says.
func valueQuery(e Expr, sp span) *Query { return &Query{Value: e, pos: sp, height: e.depth()} }

// Count is the number of a TOP, OFFSET or LIMIT clause: a literal or a parameter.
type Count struct {
	N     int64
	Param string // without @; "" for a literal
	pos   span
}

// SelectItem is one expression of a select list; Alias "" when none was written.
type SelectItem struct {
	Expr  Expr
	Alias string
	pos   span
}

// OrderItem is one ORDER BY expression.
type OrderItem struct {
	Expr Expr
	Desc bool

	computed string // the computed property that Expr was written as
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
	pos   span
}

// Expr is a scalar expression.
type Expr interface {
	span() span
	depth() int // height of the tree, bounded by maxDepth
}

// node is what every expression has.
type node struct {
	pos span
	h   int32
}

// above returns n with a height above those of the parts.
func (n node) above(parts ...Expr) node {
	h := n.h
	for _, x := range parts {
		h = max(h, int32(x.depth())+1)
	}
	n.h = max(h, 1)
	return n
}

func (n node) span() span { return n.pos }
func (n node) depth() int { return int(n.h) }

// The expressions.
type (
	// Lit is a literal; undefined is a Lit of the zero Value.
	Lit struct {
		node
		Val value.Value
	}
	// ParamRef is @name.
	ParamRef struct {
		node
		Name string
	}
	// Ident is an alias.
	Ident struct {
		node
		Name string
	}
	// Prop is base.name or base["name"].
	Prop struct {
		node
		Base Expr
		Name string
	}
	// Index is base[expression].
	Index struct {
		node
		Base, At Expr
	}
	// Unary is + - ~ or NOT.
	Unary struct {
		node
		Op string
		X  Expr
	}
	// Binary is an arithmetic, bitwise, shift, comparison or ?? operator.
	Binary struct {
		node
		Op   string
		L, R Expr
	}
	// Chain is a flat list joined by AND, OR or ||.
	Chain struct {
		node
		Op string
		Xs []Expr
	}
	// Cond is c ? a : b.
	Cond struct {
		node
		C, A, B Expr
	}
	// Between is x [NOT] BETWEEN lo AND hi.
	Between struct {
		node
		X, Lo, Hi Expr
		Not       bool
	}
	// In is x [NOT] IN (list).
	In struct {
		node
		X    Expr
		List []Expr
		Not  bool
	}
	// Like is x [NOT] LIKE pattern [ESCAPE 'c'].
	Like struct {
		node
		X, Pattern Expr
		Escape     string
		Not        bool
	}
	// Call is a function call; UDF for udf.name(..).
	Call struct {
		node
		Name string // as written
		UDF  bool
		Args []Expr
	}
	// ArrayExpr is [a, b].
	ArrayExpr struct {
		node
		Elems []Expr
	}
	// ObjectExpr is {"k": v}.
	ObjectExpr struct {
		node
		Keys []string
		Vals []Expr
	}
	// SubqueryExpr is (q), EXISTS(q), ARRAY(q), ALL(q), FIRST(q) or LAST(q).
	SubqueryExpr struct {
		node
		Kind string // "", EXISTS, ARRAY, ALL, FIRST, LAST
		Q    *Query
	}
)

// children calls f for each direct sub-expression of e; sub-queries are not entered.
func children(e Expr, f func(Expr)) {
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
		if e != nil && e.depth() > h {
			h = e.depth()
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
