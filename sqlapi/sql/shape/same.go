package shape

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Same reports whether two expressions have the same text, apart from white space and quoting.
func Same(a, b syntax.Expr) bool {
	if a.Depth() != b.Depth() {
		return false
	}
	switch x := a.(type) {
	case *syntax.Lit:
		y, ok := b.(*syntax.Lit)
		return ok && x.Val.Kind() == y.Val.Kind() && value.CompareCosmos(x.Val, y.Val) == 0
	case *syntax.ParamRef:
		y, ok := b.(*syntax.ParamRef)
		return ok && x.Name == y.Name
	case *syntax.Ident:
		y, ok := b.(*syntax.Ident)
		return ok && x.Name == y.Name
	case *syntax.Prop:
		y, ok := b.(*syntax.Prop)
		return ok && x.Name == y.Name && Same(x.Base, y.Base)
	case *syntax.SubqueryExpr:
		return false
	}
	return syntax.Print(a) == syntax.Print(b)
}
