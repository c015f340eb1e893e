// Package funcs is what the query language makes of values: functions, operators, LIKE, aggregates, and sets of values
// by its equality. Scalar functions are one file per family, one entry per function. The registry also lists the names
// that the language knows and this server doesn't evaluate, so that they are refused as "not supported" and not as
// unknown.
package funcs

import (
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/value"
)

// Context is what a function may see beside its arguments. It belongs to one execution and is not safe for concurrent
// use.
type Context struct {
	Now    time.Time          // time of the execution: the same for all rows of a page
	Clock  func() time.Time   // present time
	Random func() float64     // [0, 1)
	Fail   func(error)        // ends the execution with an error; nil while constants are folded
	DocID  func() value.Value // document part of the present item's _rid, for DOCUMENTID

	memos map[*byte]*memo // by the place of a call in the query
}

// Func is one function. Types has one letter per argument: s string, n number, a array, o object, b boolean, * anything
// (also undefined), d anything defined. Optional arguments follow a '?'; the last letter repeats after a '+'. A call
// whose arguments don't have these types is undefined, without calling Eval.
type Func struct {
	Name  string
	Types string
	Eval  func(c *Context, a []value.Value) value.Value
	// Prepare, when set, may turn constant arguments into a faster Eval (nil when it can't); consts has Undefined for
	// arguments that are not constant and isConst tells them apart.
	Prepare func(consts []value.Value, isConst []bool) func(c *Context, a []value.Value) value.Value
	// Planar, when set, stands for the function in containers whose geospatial configuration is Geometry.
	Planar *Func
	// Volatile functions are not folded when their arguments are constant.
	Volatile bool
	// Unsupported says why the function is refused.
	Unsupported string

	Min, Max int // number of arguments, from Types; Max -1 is without limit
	types    []byte
	variadic bool
}

// registry maps upper-case names to functions.
var registry = map[string]*Func{}

// register adds functions and panics on a name that is there already: each name has one entry.
func register(fs ...*Func) {
	for _, f := range fs {
		f.parseTypes()
		key := strings.ToUpper(f.Name)
		if registry[key] != nil {
			panic("funcs: two entries for " + f.Name)
		}
		registry[key] = f
	}
}

// unsupported lists known names that are refused.
func unsupported(reason string, names ...string) {
	for _, n := range names {
		register(&Func{Name: n, Types: "*+", Unsupported: reason})
	}
}

func (f *Func) parseTypes() {
	optional := false
	for i := 0; i < len(f.Types); i++ {
		switch c := f.Types[i]; c {
		case '?':
			optional = true
		case '+':
			f.variadic = true
		default:
			f.types = append(f.types, c)
			f.Max++
			if !optional {
				f.Min++
			}
		}
	}
	if f.variadic {
		f.Max = -1
	}
}

// Lookup finds a function by its name, case-insensitive; nil when there is none.
func Lookup(name string) *Func { return registry[strings.ToUpper(name)] }

// Call checks the argument types and evaluates f.
func (f *Func) Call(c *Context, eval func(*Context, []value.Value) value.Value, a []value.Value) value.Value {
	for i := range a {
		t := f.types[min(i, len(f.types)-1)]
		ok := false
		switch t {
		case '*':
			ok = true
		case 'd':
			ok = a[i].IsDefined()
		case 's':
			ok = a[i].Kind() == value.String
		case 'n':
			ok = a[i].IsNumber()
		case 'a':
			ok = a[i].Kind() == value.Array
		case 'o':
			ok = a[i].Kind() == value.Object
		case 'b':
			ok = a[i].Kind() == value.Bool
		}
		if !ok {
			return value.Value{}
		}
	}
	return eval(c, a)
}
