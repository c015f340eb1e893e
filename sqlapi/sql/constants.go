package sql

import (
	funcs "github.com/orrerydb/orrery/sqlapi/sql/func"
)

func isConstant(e Expr) bool {
	switch e := e.(type) {
	case *Ident, *SubqueryExpr:
		return false
	case *Call:
		fn := funcs.Lookup(e.Name)
		if e.UDF || fn == nil || fn.Volatile {
			return false
		}
	}
	ok := true
	children(e, func(x Expr) { ok = ok && isConstant(x) })
	return ok
}
