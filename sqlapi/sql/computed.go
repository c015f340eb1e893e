package sql

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Computed properties are expressions that a container gives names to. Where a query reads such a name of an item, the
// expression stands in its place before the query is compiled, so that everything below (filters, indexes, groups) sees
// plain expressions. SELECT * and an item as a whole do not have them.

// Computed is the computed properties of a container. It never changes and is safe for concurrent use.
type Computed struct {
	exprs map[string]Expr // the item is the identifier rootName in them
	sizes map[string]int  // bytes of the definitions, which bound the expressions' nodes
	key   string          // all definitions; programs are cached under it
	hash  uint64
	// distances has the functions of VectorDistance by path, where they aren't cosine: segments joined by U+0000.
	distances map[string]string
}

// ComputedProperty is one definition: SELECT VALUE expression FROM alias.
type ComputedProperty struct{ Name, Query string }

// reservedNames can't be the names of computed properties.
var reservedNames = map[string]bool{"id": true, "_id": true, "_rid": true, "_self": true, "_etag": true, "_ts": true,
	"_attachments": true, "_lsn": true, "ttl": true}

// newComputed checks definitions and returns them; nil when there are none. The errors are for the user. compile parses
// a definition, refuses what the language has no meaning for, and tells how many parameters there are.
func newComputed(defs []ComputedProperty, compile func(text string) (q *Query, params int, err error)) (*Computed,
	error) {
	if len(defs) == 0 {
		return nil, nil
	}
	c := &Computed{exprs: map[string]Expr{}, sizes: map[string]int{}}
	for _, d := range defs {
		if d.Name == "" || reservedNames[d.Name] || strings.IndexByte(d.Name, 0) >= 0 {
			return nil, plainError("The name '%s' can't be that of a computed property.", clip(d.Name))
		}
		if c.exprs[d.Name] != nil {
			return nil, plainError("The computed property '%s' is defined twice.", clip(d.Name))
		}
		e, err := computedExpr(d, compile)
		if err != nil {
			return nil, err
		}
		c.exprs[d.Name], c.sizes[d.Name] = e, len(d.Query)
		c.key += d.Name + "\x00" + d.Query + "\x00"
	}
	for name, e := range c.exprs {
		if other := c.reads(e); other != "" {
			return nil, plainError("The computed property '%s' reads the computed property '%s'.", clip(name),
				clip(other))
		}
	}
	c.hash = xxhash.Sum64String(c.key)
	return c, nil
}

// computedExpr parses a definition and takes its expression, with the alias named rootName.
func computedExpr(d ComputedProperty, compile func(text string) (*Query, int, error)) (Expr, error) {
	q, params, err := compile(d.Query)
	if err != nil {
		return nil, err
	}
	bad := plainError("The query of the computed property '%s' must be SELECT VALUE expression FROM alias, without "+
		"other clauses, aggregates, parameters or user-defined functions.", clip(d.Name))
	if q.Value == nil || q.From == nil || len(q.From.Sources) != 1 || q.Distinct || q.Top != nil || q.Where != nil ||
		len(q.GroupBy) > 0 ||
		len(q.OrderBy) > 0 || q.Offset != nil || q.Limit != nil || isGrouped(q) || params > 0 ||
		!plainComputed(q.Value) {
		return nil, bad
	}
	src := q.From.Sources[0]
	if _, ok := src.Path.(*Ident); !ok || src.In {
		return nil, bad
	}
	x := expander{roots: []string{src.Alias}, rename: true}
	return x.expr(q.Value), nil
}

// plainComputed reports whether an expression has nothing in it that a computed property may not have.
func plainComputed(e Expr) bool {
	switch e := e.(type) {
	case *Call:
		if e.UDF {
			return false
		}
	case *SubqueryExpr:
		return e.Kind == "ARRAY" || e.Kind == ""
	}
	ok := true
	children(e, func(x Expr) { ok = ok && plainComputed(x) })
	return ok
}

// reads returns a computed property that e reads, "" when it reads none.
func (c *Computed) reads(e Expr) (name string) {
	x := expander{comp: c, roots: []string{rootName}, seen: func(n string) { name = n }}
	x.expr(e)
	return name
}

// expand returns q with the expressions in place of the names. q itself stays as it is.
func (c *Computed) expand(q *Query) (*Query, error) {
	x := expander{comp: c}
	n := x.query(q, true)
	if x.size > maxExpanded {
		return nil, plainError("The query is too long with the expressions of its computed properties.")
	}
	return n, nil
}

// maxExpanded bounds what all expressions of computed properties add to one query, in bytes of their definitions: a
// short name may stand for a long expression and be written many times.
const maxExpanded = 1 << 20

// expander copies what it changes of a tree, and knows which aliases are the item.
type expander struct {
	comp   *Computed
	roots  []string // aliases that are the item
	rename bool     // only rename the item to rootName
	size   int      // bytes of the definitions that were put in
	seen   func(name string)
}

func (x *expander) isRoot(e Expr) bool {
	id, ok := e.(*Ident)
	if !ok {
		return false
	}
	for _, r := range x.roots {
		if r == id.Name {
			return true
		}
	}
	return false
}

// query expands a query or sub-query; container says that its first source is the container.
func (x *expander) query(q *Query, container bool) *Query {
	n, outer := *q, x.roots
	defer func() { x.roots = outer }()
	if q.From != nil {
		from := &From{Sources: append([]Source(nil), q.From.Sources...)}
		for i := range from.Sources {
			x.source(&from.Sources[i], container && i == 0)
		}
		n.From = from
	}
	n.Value, n.Where = x.expr(q.Value), x.expr(q.Where)
	n.Items = append([]SelectItem(nil), q.Items...)
	for i := range n.Items {
		it := &n.Items[i]
		if it.Alias == "" { // the row names it as it was written
			it.Alias = derivedName(it.Expr)
		}
		it.Expr = x.expr(it.Expr)
	}
	n.GroupBy = append([]Expr(nil), q.GroupBy...)
	for i, e := range n.GroupBy {
		n.GroupBy[i] = x.expr(e)
	}
	n.OrderBy = append([]OrderItem(nil), q.OrderBy...)
	for i := range n.OrderBy {
		o := &n.OrderBy[i]
		if p, ok := o.Expr.(*Prop); ok && x.comp != nil && x.isRoot(p.Base) && x.comp.exprs[p.Name] != nil {
			o.computed = p.Name
		}
		o.Expr = x.expr(o.Expr)
	}
	return &n
}

// source expands a source and declares its alias. An alias that is not the item hides one that is.
func (x *expander) source(s *Source, container bool) {
	root := false
	switch {
	case s.Query != nil:
		s.Query = x.query(s.Query, container)
	case container:
		_, plain := s.Path.(*Ident)
		root = plain && !s.In
	case x.isRoot(s.Path) && !s.In:
		root = true
		s.Path = x.expr(s.Path)
	default:
		if e := x.expr(s.Path); isPath(e) {
			s.Path = e
		} else { // what was a path is an expression now
			s.Query, s.Path = valueQuery(e, s.pos), nil
		}
	}
	var roots []string
	for _, r := range x.roots {
		if r != s.Alias {
			roots = append(roots, r)
		}
	}
	if root {
		roots = append(roots, s.Alias)
	}
	x.roots = roots
}

// expr returns e with the expressions in place of names, e itself when there are none in it.
func (x *expander) expr(e Expr) Expr {
	switch e := e.(type) {
	case *Ident:
		if x.rename && x.isRoot(e) {
			n := *e
			n.Name = rootName
			return &n
		}
	case *Prop:
		if x.comp != nil && x.isRoot(e.Base) {
			if c := x.comp.exprs[e.Name]; c != nil {
				if x.seen != nil {
					x.seen(e.Name)
				}
				x.size += x.comp.sizes[e.Name]
				return c
			}
		}
		n := *e
		n.Base = x.expr(e.Base)
		return &n
	case *Index:
		n := *e
		n.Base, n.At = x.expr(e.Base), x.expr(e.At)
		return &n
	case *Unary:
		n := *e
		n.X = x.expr(e.X)
		return &n
	case *Binary:
		n := *e
		n.L, n.R = x.expr(e.L), x.expr(e.R)
		return &n
	case *Chain:
		n := *e
		n.Xs = x.list(e.Xs)
		return &n
	case *Cond:
		n := *e
		n.C, n.A, n.B = x.expr(e.C), x.expr(e.A), x.expr(e.B)
		return &n
	case *Between:
		n := *e
		n.X, n.Lo, n.Hi = x.expr(e.X), x.expr(e.Lo), x.expr(e.Hi)
		return &n
	case *In:
		n := *e
		n.X, n.List = x.expr(e.X), x.list(e.List)
		return &n
	case *Like:
		n := *e
		n.X, n.Pattern = x.expr(e.X), x.expr(e.Pattern)
		return &n
	case *Call:
		n := *e
		n.Args = x.list(e.Args)
		x.distance(&n)
		return &n
	case *ArrayExpr:
		n := *e
		n.Elems = x.list(e.Elems)
		return &n
	case *ObjectExpr:
		n := *e
		n.Vals = x.list(e.Vals)
		return &n
	case *SubqueryExpr:
		n := *e
		n.Q = x.query(e.Q, false)
		return &n
	}
	return e
}

func (x *expander) list(es []Expr) []Expr {
	out := make([]Expr, len(es))
	for i, e := range es {
		out[i] = x.expr(e)
	}
	return out
}
