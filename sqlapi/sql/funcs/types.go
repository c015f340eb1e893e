package funcs

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
)

// init registers the type checks. They return true or false for every argument, also for undefined.
func init() {
	is := func(name string, test func(v value.Value) bool) *Func {
		return &Func{Name: name, Types: "*", Eval: func(_ *Context, a []value.Value) value.Value {
			return boolean(test(a[0]))
		}}
	}
	kind := func(k value.Kind) func(value.Value) bool {
		return func(v value.Value) bool { return v.Kind() == k }
	}
	register(
		is("IS_ARRAY", kind(value.Array)),
		is("IS_BOOL", kind(value.Bool)),
		is("IS_BOOLEAN", kind(value.Bool)), // the Java SDK uses this name when it resumes an ORDER BY
		is("IS_DATETIME", func(v value.Value) bool {
			_, ok := ParseDateTime(v)
			return ok
		}),
		is("IS_DEFINED", value.Value.IsDefined),
		is("IS_FINITE_NUMBER", func(v value.Value) bool {
			return v.IsNumber() && !math.IsInf(v.Float(), 0) && !math.IsNaN(v.Float())
		}),
		is("IS_INTEGER", func(v value.Value) bool {
			return v.IsNumber() && v.Float() == math.Trunc(v.Float()) && math.Abs(v.Float()) < 1<<63
		}),
		is("IS_NULL", kind(value.Null)),
		is("IS_NUMBER", value.Value.IsNumber),
		is("IS_OBJECT", kind(value.Object)),
		is("IS_PRIMITIVE", func(v value.Value) bool {
			return v.Kind() == value.Null || v.Kind() == value.Bool || v.IsNumber() || v.Kind() == value.String
		}),
		is("IS_STRING", kind(value.String)),
		&Func{Name: "IIF", Types: "***", Eval: func(_ *Context, a []value.Value) value.Value {
			if a[0].Bool() {
				return a[1]
			}
			return a[2]
		}},
		&Func{Name: "DOCUMENTID", Types: "*", Volatile: true, Eval: func(c *Context, _ []value.Value) value.Value {
			if c.DocID == nil {
				return value.Value{}
			}
			return c.DocID()
		}},
	)
}
