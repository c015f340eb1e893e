package shape

import (
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// IsConstant reports whether e has the same value for all items of one execution.
func IsConstant(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Ident, *syntax.SubqueryExpr:
		return false
	case *syntax.Call:
		fn := funcs.Lookup(e.Name)
		if e.UDF || fn == nil || fn.Volatile {
			return false
		}
	}
	ok := true
	syntax.Children(e, func(x syntax.Expr) { ok = ok && IsConstant(x) })
	return ok
}
