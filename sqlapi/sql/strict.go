package sql

import (
	"strings"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// This file tells which indexes a query needs. An API uses it to refuse queries that the service's indexes can't
// answer.

// OrderPath is one item of ORDER BY.
type OrderPath struct {
	Path     access.Path // stored names; unset for a computed property
	Computed string      // name of the computed property
	Desc     bool
}

// Orders returns the items of ORDER BY that name a path of the item or a computed property. It returns none for an
// order by the distance of vectors and for a query with groups.
func (pl *Plan) Orders() []OrderPath {
	var out []OrderPath
	for _, o := range pl.p.order {
		switch {
		case len(o.steps) == 0:
			return nil
		case strings.HasPrefix(o.steps[0].Name, "\x00"):
			out = append(out, OrderPath{Computed: o.steps[0].Name[1:], Desc: o.desc})
		default:
			path, _, ok := shape.StoredPath(o.steps, false)
			if !ok { // a system property without an index has its own name as path
				path = access.NewPath(o.steps[0].Name)
			}
			out = append(out, OrderPath{Path: path, Desc: o.desc})
		}
	}
	return out
}

// Inner returns the error with which the service refuses ORDER BY and OFFSET LIMIT in sub-queries, nil if the query has
// none there.
func (pl *Plan) Inner() error {
	if e := pl.p.q.Inner; e != nil {
		return e
	}
	return nil
}

// Descends reports whether rows with equal ORDER BY values come in descending order of the item's number. The direction
// is that of the first ORDER BY expression.
func (pl *Plan) Descends() bool { return len(pl.p.order) > 0 && pl.p.order[0].desc }

// FilterPaths returns the paths that WHERE reads. whole is false when WHERE also reads something else: elements of
// arrays, sub-queries or the item as a whole.
func (pl *Plan) FilterPaths() (paths []access.Path, whole bool) {
	whole = true
	var walk func(e syntax.Expr)
	walk = func(e syntax.Expr) {
		steps, base := shape.SplitPath(e)
		switch b := base.(type) {
		case *syntax.Ident:
			v := pl.p.top.variable(b.Name)
			path, _, ok := shape.StoredPath(steps, false)
			if whole = whole && v != nil && v.root && ok; ok {
				paths = append(paths, path)
			}
			return
		case *syntax.SubqueryExpr:
			whole = false
			return
		case nil:
			return
		}
		if len(steps) > 0 { // a property of a computed value
			walk(base)
			return
		}
		syntax.Children(e, walk)
	}
	walk(pl.p.q.Where)
	return paths, whole
}

// variable returns the alias of FROM with the given name, nil when there is none.
func (cq *cquery) variable(name string) *variable {
	for _, v := range cq.vars {
		if v.name == name {
			return v
		}
	}
	return nil
}
