package sql

import (
	"github.com/orrerydb/orrery/core/value"
)

// sameExpr reports whether two expressions are written the same, apart from blanks and quoting.
func sameExpr(a, b Expr) bool {
	if a.depth() != b.depth() {
		return false
	}
	switch x := a.(type) {
	case *Lit:
		y, ok := b.(*Lit)
		return ok && x.Val.Kind() == y.Val.Kind() && value.CompareCosmos(x.Val, y.Val) == 0
	case *ParamRef:
		y, ok := b.(*ParamRef)
		return ok && x.Name == y.Name
	case *Ident:
		y, ok := b.(*Ident)
		return ok && x.Name == y.Name
	case *Prop:
		y, ok := b.(*Prop)
		return ok && x.Name == y.Name && sameExpr(x.Base, y.Base)
	case *SubqueryExpr:
		return false
	}
	return printExpr(a) == printExpr(b)
}
