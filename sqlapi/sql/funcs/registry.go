// Package funcs implements the query language's operations on values: functions, operators, LIKE, aggregates, and sets
// of values that use the language's equality. Scalar functions have one file per family and one registry entry per
// function. The registry also lists functions of the language that this server doesn't support. They are refused as
// "not supported" and not as unknown.
package funcs

import (
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/regex"
)

// Context holds what a function can use besides its arguments. It belongs to one execution and is not safe for
// concurrent use.
type Context struct {
	Now    time.Time          // time of the execution, the same for all rows of a page
	Clock  func() time.Time   // current time
	Random func() float64     // [0, 1)
	Fail   func(error)        // ends the execution with an error; nil while constants are folded
	End    regex.End          // of the execution, when its request ends; nil: it has none
	DocID  func() value.Value // document part of the current item's _rid, for DOCUMENTID

	memos    map[*byte]*memo // by the place of an argument in the query
	readers  map[*text.Language]*text.Reader
	searches map[*searchSite]*search
}

// Func is one function. Types has one letter per argument: s string, n number, a array, o object, b boolean, * anything
// (also undefined), d anything defined. Optional arguments follow a '?'; the last letter repeats after a '+'. If the
// arguments don't have these types, the result is undefined and Eval isn't called.
type Func struct {
	Name  string
	Types string
	Eval  func(c *Context, a []value.Value) value.Value
	// Prepare, when set, is called once at compile time and can return a faster Eval for the constant arguments, or
	// nil. consts has Undefined for arguments that are not constant; isConst tells which ones are.
	Prepare func(consts []value.Value, isConst []bool) func(c *Context, a []value.Value) value.Value
	// Planar, when set, replaces the function in containers whose geospatial configuration is Geometry.
	Planar *Func
	// In, when set, returns the function for the texts of another language than English.
	In func(l *text.Language) *Func
	// Volatile is true for a function whose result can differ between calls with the same arguments. Its calls are not
	// evaluated at compile time.
	Volatile bool
	// Unsupported is the reason why the function is refused, "" for a supported function.
	Unsupported string
	// Refused is the message with which a call is refused, "" for a function that may be called everywhere. It is for
	// functions that only have a meaning in a clause of their own.
	Refused string

	Min, Max int // number of arguments, from Types; Max -1 is without limit
	types    []byte
	variadic bool
}

// registry maps upper-case names to functions.
var registry = map[string]*Func{}

// register adds functions. It panics when a name is already registered.
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

// unsupported registers known functions that are refused with a reason.
func unsupported(reason string, names ...string) {
	for _, n := range names {
		register(&Func{Name: n, Types: "*+", Unsupported: reason})
	}
}

func (f *Func) parseTypes() {
	if f.types != nil {
		return
	}
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

// Lookup returns the function with a name, nil when there is none. Case is ignored.
func Lookup(name string) *Func { return registry[strings.ToUpper(name)] }

// Call checks the types of the arguments and then calls eval.
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
