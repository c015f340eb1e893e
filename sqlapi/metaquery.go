package sqlapi

import (
	"bytes"
	"strings"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// Resources that are no items (databases, containers, offers, ranges) are few and live in the catalog. Their queries are the
// language's, in the part that SDKs send: SELECT * with a WHERE of equalities joined by AND.

// query answers a query over the rows of a feed.
func (f *feedReply) query() error {
	spec, err := f.c.readQuery()
	if err != nil {
		return err
	}
	q, err := sql.Parse(spec.text, sql.DefaultLimits())
	if err != nil {
		return err
	}
	match, err := metaFilter(q, spec.params)
	if err != nil {
		return err
	}
	rows := f.rows[:0]
	for _, r := range f.rows {
		v, err := doc.ValueFromJSON(r)
		if err != nil {
			return err
		}
		if match(v) {
			rows = append(rows, r)
		}
	}
	f.rows = rows
	return f.send()
}

func metaUnsupported(what string) error {
	return status.New(status.NotSupported, "Queries over resources that are no items support SELECT * and a WHERE of equalities joined by AND only: %s is not supported by this server.", what)
}

// metaFilter turns WHERE into a test of a row.
func metaFilter(q *sql.Query, params []sql.Param) (func(value.Value) bool, error) {
	switch {
	case q.From == nil || len(q.From.Sources) != 1 || q.From.Sources[0].Query != nil || q.From.Sources[0].In:
		return nil, metaUnsupported("this FROM clause")
	case !isStar(q) || q.Distinct:
		return nil, metaUnsupported("a projection")
	case q.Top != nil || q.Offset != nil || q.Limit != nil || len(q.OrderBy) > 0 || len(q.GroupBy) > 0:
		return nil, metaUnsupported("TOP, OFFSET, ORDER BY or GROUP BY")
	}
	var terms []func(value.Value) bool
	var add func(e sql.Expr) error
	add = func(e sql.Expr) error {
		switch e := e.(type) {
		case nil:
			return nil
		case *sql.Chain:
			if strings.EqualFold(e.Op, "AND") {
				for _, x := range e.Xs {
					if err := add(x); err != nil {
						return err
					}
				}
				return nil
			}
		case *sql.Binary:
			if e.Op == "=" {
				t, err := metaEquality(e.L, e.R, params)
				terms = append(terms, t)
				return err
			}
		}
		return metaUnsupported("this condition")
	}
	if err := add(q.Where); err != nil {
		return nil, err
	}
	return func(v value.Value) bool {
		for _, t := range terms {
			if !t(v) {
				return false
			}
		}
		return true
	}, nil
}

// isStar reports whether the whole row is selected: SELECT * or SELECT VALUE alias.
func isStar(q *sql.Query) bool {
	if q.Star {
		return true
	}
	id, ok := q.Value.(*sql.Ident)
	return ok && id.Name == q.From.Sources[0].Alias
}

// metaEquality makes the test of path = constant, in either order.
func metaEquality(l, r sql.Expr, params []sql.Param) (func(value.Value) bool, error) {
	path, ok := metaPath(l)
	c := r
	if !ok {
		if path, ok = metaPath(r); !ok {
			return nil, metaUnsupported("this comparison")
		}
		c = l
	}
	var want value.Value
	switch c := c.(type) {
	case *sql.Lit:
		want = c.Val
	case *sql.ParamRef:
		found := false
		for _, p := range params {
			if strings.TrimPrefix(p.Name, "@") == c.Name {
				want, found = p.Value, true
			}
		}
		if !found {
			return nil, status.New(status.BadRequest, "The query parameter '@%s' is not specified.", clip(c.Name))
		}
	default:
		return nil, metaUnsupported("this comparison")
	}
	return func(v value.Value) bool {
		got := doc.GetIn(v, path...)
		if got.Kind() == value.String && want.Kind() == value.String {
			return bytes.Equal(got.Bytes(), want.Bytes())
		}
		return got.IsDefined() && want.IsDefined() && value.EqualCosmos(got, want)
	}, nil
}

// metaPath reads alias.a.b.
func metaPath(e sql.Expr) ([]string, bool) {
	p, ok := e.(*sql.Prop)
	if !ok {
		return nil, false
	}
	if _, ok := p.Base.(*sql.Ident); ok {
		return []string{p.Name}, true
	}
	base, ok := metaPath(p.Base)
	return append(base, p.Name), ok
}
