package expand

import (
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Parameters may stand for names of properties. They are replaced by their values before the query is compiled, so that
// indexes and policies see paths.
//
// Example: with the parameter @field = "text"
//
//	input:  SELECT c.id FROM c ORDER BY RANK FullTextScore(c[@field], "x")
//	output: SELECT c.id FROM c ORDER BY RANK FullTextScore(c.text, "x")

// Names returns a copy of q in which the parameters that stand for names are replaced. value returns the value of a
// parameter; ok is false if it isn't a string.
func Names(q *syntax.Query, value func(param string) (name string, ok bool)) *syntax.Query {
	x := expander{names: value}
	return x.query(q, true)
}

// named returns the property that base[@param] reads, nil if e is something else.
func (x *expander) named(e *syntax.Index) *syntax.Prop {
	if ref, ok := e.At.(*syntax.ParamRef); ok && x.names != nil {
		if name, ok := x.names(ref.Name); ok {
			return &syntax.Prop{Node: e.Node, Base: x.expr(e.Base), Name: name}
		}
	}
	return nil
}

// keepColumns gives the columns of a select list the names that they have before parameters are replaced.
func (x *expander) keepColumns(items []syntax.SelectItem) {
	if x.names == nil {
		return
	}
	for i, name := range shape.ItemNames(items) {
		items[i].Alias = name
	}
}
