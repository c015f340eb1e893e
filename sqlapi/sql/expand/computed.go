// Package expand rewrites the tree of a query with the definitions of its container: computed properties, and the
// distance functions of vectors.
package expand

import (
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A computed property is a name that a container gives to an expression. Where a query reads that name from an item,
// the name is replaced by the expression before the query is compiled. So filters, indexes and groups only see plain
// expressions. SELECT * and an item as a whole do not contain computed properties.
//
// Example: the container defines `low` as SELECT VALUE LOWER(i.name) FROM i.
//
//	input:  SELECT c.low FROM c WHERE c.low = "x"
//	output: SELECT LOWER(c.name) AS low FROM c WHERE LOWER(c.name) = "x"
//
// In the tree, the inserted expression refers to the item as syntax.RootName (written c above). So an alias in the
// query can't hide the item.

// Computed holds the computed properties of a container. It is immutable and safe for concurrent use.
type Computed struct {
	exprs map[string]syntax.Expr // by name; they refer to the item as syntax.RootName
	sizes map[string]int         // bytes of the definitions; they bound the number of nodes
	Key   string                 // all definitions; programs are cached under it
	Hash  uint64
	// distances maps a path (its segments joined by U+0000) to the distance function of its vectors. Cosine is left
	// out.
	distances map[string]string
	// languages maps a path in the same form to the language of its texts, if it isn't language, that of all others.
	// Both are empty when all texts are English.
	languages map[string]string
	language  string
}

// Property is one definition: SELECT VALUE expression FROM alias.
type Property struct{ Name, Query string }

// reservedNames are the names that a computed property can't have.
var reservedNames = map[string]bool{"id": true, "_id": true, "_rid": true, "_self": true, "_etag": true, "_ts": true,
	"_attachments": true, "_lsn": true, "ttl": true}

// New checks definitions and returns them, or nil when there are none. The errors are texts for the user. compile
// parses a definition and returns its tree and its number of parameters; it fails for a query that doesn't compile.
func New(defs []Property, compile func(text string) (q *syntax.Query, params int, err error)) (*Computed,
	error) {
	if len(defs) == 0 {
		return nil, nil
	}
	c := &Computed{exprs: map[string]syntax.Expr{}, sizes: map[string]int{}}
	for _, d := range defs {
		if d.Name == "" || reservedNames[d.Name] || strings.IndexByte(d.Name, 0) >= 0 {
			return nil, syntax.PlainError("The name '%s' can't be that of a computed property.", syntax.Clip(d.Name))
		}
		if c.exprs[d.Name] != nil {
			return nil, syntax.PlainError("The computed property '%s' is defined twice.", syntax.Clip(d.Name))
		}
		e, err := computedExpr(d, compile)
		if err != nil {
			return nil, err
		}
		c.exprs[d.Name], c.sizes[d.Name] = e, len(d.Query)
		c.Key += d.Name + "\x00" + d.Query + "\x00"
	}
	for name, e := range c.exprs {
		if other := c.reads(e); other != "" {
			return nil, syntax.PlainError("The computed property '%s' reads the computed property '%s'.",
				syntax.Clip(name), syntax.Clip(other))
		}
	}
	c.Hash = xxhash.Sum64String(c.Key)
	return c, nil
}

// computedExpr parses a definition and returns its expression, with the alias replaced by syntax.RootName.
func computedExpr(d Property, compile func(text string) (*syntax.Query, int, error)) (syntax.Expr, error) {
	q, params, err := compile(d.Query)
	if err != nil {
		return nil, err
	}
	bad := syntax.PlainError("The query of the computed property '%s' must be SELECT VALUE expression FROM alias, "+
		"without other clauses, aggregates, parameters or user-defined functions.", syntax.Clip(d.Name))
	if q.Value == nil || q.From == nil || len(q.From.Sources) != 1 || q.Distinct || q.Top != nil || q.Where != nil ||
		len(q.GroupBy) > 0 ||
		len(q.OrderBy) > 0 || q.Offset != nil || q.Limit != nil || shape.IsGrouped(q) || params > 0 ||
		!plainComputed(q.Value) {
		return nil, bad
	}
	src := q.From.Sources[0]
	if _, ok := src.Path.(*syntax.Ident); !ok || src.In {
		return nil, bad
	}
	x := expander{roots: []string{src.Alias}, rename: true}
	return x.expr(q.Value), nil
}

// plainComputed reports whether an expression only has parts that a computed property may have.
func plainComputed(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Call:
		if e.UDF {
			return false
		}
	case *syntax.SubqueryExpr:
		return e.Kind == "ARRAY" || e.Kind == ""
	}
	ok := true
	syntax.Children(e, func(x syntax.Expr) { ok = ok && plainComputed(x) })
	return ok
}

// reads returns the name of a computed property that e reads, "" when there is none.
func (c *Computed) reads(e syntax.Expr) (name string) {
	x := expander{comp: c, roots: []string{syntax.RootName}, seen: func(n string) { name = n }}
	x.expr(e)
	return name
}

// Expand returns a copy of q in which the names are replaced by the expressions. q itself isn't changed.
func (c *Computed) Expand(q *syntax.Query) (*syntax.Query, error) {
	x := expander{comp: c}
	n := x.query(q, true)
	if x.size > maxExpanded {
		return nil, syntax.PlainError("The query is too long with the expressions of its computed properties.")
	}
	return n, nil
}

// maxExpanded bounds the size that computed properties add to one query, in bytes of their definitions. It is needed
// because a query can use a short name many times, and each use adds a long expression.
const maxExpanded = 1 << 20

// expander copies the parts of a tree that it changes. It keeps track of the aliases that stand for the item.
type expander struct {
	comp   *Computed
	roots  []string // aliases that stand for the item
	rename bool     // only rename the item to syntax.RootName
	size   int      // bytes of the definitions that were inserted
	seen   func(name string)
}

func (x *expander) isRoot(e syntax.Expr) bool {
	id, ok := e.(*syntax.Ident)
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

// query expands a query or sub-query. container is true when its first source is the container.
func (x *expander) query(q *syntax.Query, container bool) *syntax.Query {
	n, outer := *q, x.roots
	defer func() { x.roots = outer }()
	if q.From != nil {
		from := &syntax.From{Sources: append([]syntax.Source(nil), q.From.Sources...)}
		for i := range from.Sources {
			x.source(&from.Sources[i], container && i == 0)
		}
		n.From = from
	}
	n.Value, n.Where = x.expr(q.Value), x.expr(q.Where)
	n.Items = append([]syntax.SelectItem(nil), q.Items...)
	for i := range n.Items {
		it := &n.Items[i]
		if it.Alias == "" { // the name of the column stays the written one
			it.Alias = syntax.DerivedName(it.Expr)
		}
		it.Expr = x.expr(it.Expr)
	}
	n.GroupBy = append([]syntax.Expr(nil), q.GroupBy...)
	for i, e := range n.GroupBy {
		n.GroupBy[i] = x.expr(e)
	}
	n.OrderBy = append([]syntax.OrderItem(nil), q.OrderBy...)
	for i := range n.OrderBy {
		o := &n.OrderBy[i]
		if p, ok := o.Expr.(*syntax.Prop); ok && x.comp != nil && x.isRoot(p.Base) && x.comp.exprs[p.Name] != nil {
			o.Computed = p.Name
		}
		o.Expr = x.expr(o.Expr)
	}
	return &n
}

// source expands a source and declares its alias. An alias of something else hides an outer alias of the item that has
// the same name.
func (x *expander) source(s *syntax.Source, container bool) {
	root := false
	switch {
	case s.Query != nil:
		s.Query = x.query(s.Query, container)
	case container:
		_, plain := s.Path.(*syntax.Ident)
		root = plain && !s.In
	case x.isRoot(s.Path) && !s.In:
		root = true
		s.Path = x.expr(s.Path)
	default:
		if e := x.expr(s.Path); shape.IsPath(e) {
			s.Path = e
		} else { // the expansion of the path is no path
			s.Query, s.Path = syntax.ValueOf(e, s.Pos), nil
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

// expr returns e with the names replaced by expressions. It never changes e.
func (x *expander) expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Ident:
		if x.rename && x.isRoot(e) {
			n := *e
			n.Name = syntax.RootName
			return &n
		}
	case *syntax.Prop:
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
	case *syntax.Index:
		n := *e
		n.Base, n.At = x.expr(e.Base), x.expr(e.At)
		return &n
	case *syntax.Unary:
		n := *e
		n.X = x.expr(e.X)
		return &n
	case *syntax.Binary:
		n := *e
		n.L, n.R = x.expr(e.L), x.expr(e.R)
		return &n
	case *syntax.Chain:
		n := *e
		n.Xs = x.list(e.Xs)
		return &n
	case *syntax.Cond:
		n := *e
		n.C, n.A, n.B = x.expr(e.C), x.expr(e.A), x.expr(e.B)
		return &n
	case *syntax.Between:
		n := *e
		n.X, n.Lo, n.Hi = x.expr(e.X), x.expr(e.Lo), x.expr(e.Hi)
		return &n
	case *syntax.In:
		n := *e
		n.X, n.List = x.expr(e.X), x.list(e.List)
		return &n
	case *syntax.Like:
		n := *e
		n.X, n.Pattern = x.expr(e.X), x.expr(e.Pattern)
		return &n
	case *syntax.Call:
		n := *e
		n.Args = x.list(e.Args)
		x.distance(&n)
		x.text(&n)
		return &n
	case *syntax.ArrayExpr:
		n := *e
		n.Elems = x.list(e.Elems)
		return &n
	case *syntax.ObjectExpr:
		n := *e
		n.Vals = x.list(e.Vals)
		return &n
	case *syntax.SubqueryExpr:
		n := *e
		n.Q = x.query(e.Q, false)
		return &n
	}
	return e
}

func (x *expander) list(es []syntax.Expr) []syntax.Expr {
	out := make([]syntax.Expr, len(es))
	for i, e := range es {
		out[i] = x.expr(e)
	}
	return out
}
