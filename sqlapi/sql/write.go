package sql

import (
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// writeFn appends the JSON of a projection; ok is false when it is undefined and nothing was appended.
type writeFn func(f *frame, dst []byte) (out []byte, ok bool)

// writer compiles e as a projection that appends JSON directly. Objects and arrays of constructors are written without
// building their values first.
func (c *compiler) writer(e syntax.Expr) writeFn {
	switch e := e.(type) {
	case *syntax.Ident:
		if len(c.groups) == 0 {
			if v := c.scope.find(e.Name); v != nil && v.root {
				return writeItem
			}
		}
	case *syntax.ObjectExpr:
		return c.objectWriter(e)
	case *syntax.ArrayExpr:
		xs := make([]writeFn, len(e.Elems))
		for i, x := range e.Elems {
			xs[i] = c.writer(x)
		}
		return func(f *frame, dst []byte) ([]byte, bool) {
			dst = append(dst, '[')
			start := len(dst)
			for _, x := range xs {
				at := len(dst)
				if at > start {
					dst = append(dst, ',')
				}
				out, ok := x(f, dst)
				if dst = out; !ok {
					dst = dst[:at]
				}
				if !f.fits(len(dst) - start) {
					break
				}
			}
			return append(dst, ']'), true
		}
	}
	return valueWriter(c.expr(e).fn)
}

// objectWriter writes the members of an object constructor; undefined ones are left out.
func (c *compiler) objectWriter(o *syntax.ObjectExpr) writeFn {
	xs, keys := make([]writeFn, len(o.Vals)), make([][]byte, len(o.Vals))
	for i, x := range o.Vals {
		xs[i] = c.writer(x)
		keys[i] = append(json.AppendString(nil, o.Keys[i]), ':')
	}
	return func(f *frame, dst []byte) ([]byte, bool) {
		dst = append(dst, '{')
		start := len(dst)
		for i, x := range xs {
			at := len(dst)
			if at > start {
				dst = append(dst, ',')
			}
			out, ok := x(f, append(dst, keys[i]...))
			if dst = out; !ok {
				dst = dst[:at]
			}
			if !f.fits(len(dst) - start) {
				break
			}
		}
		return append(dst, '}'), true
	}
}

// fits ends the execution if an array or object has too many bytes of JSON.
func (f *frame) fits(n int) bool {
	if n > funcs.MaxBuilt {
		f.fail(funcs.ErrTooMuch)
	}
	return f.err == nil
}

func valueWriter(fn evalFn) writeFn {
	return func(f *frame, dst []byte) ([]byte, bool) {
		v := fn(f)
		if !v.IsDefined() {
			return dst, false
		}
		return doc.AppendJSON(dst, v), true
	}
}

// writeItem writes the item itself, with its system properties.
func writeItem(f *frame, dst []byte) ([]byte, bool) {
	if f.root.doc == nil {
		return dst, false
	}
	if f.root.item != nil && f.env.ItemJSON != nil {
		return f.env.ItemJSON(dst, f.root.item), true
	}
	if f.root.row != nil {
		return append(dst, f.root.row.JSON...), true
	}
	return doc.AppendJSON(dst, f.wholeItem()), true
}
