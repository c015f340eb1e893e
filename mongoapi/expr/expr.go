// Package expr compiles MongoDB's aggregation expressions to closures over values.
//
// The registry is the table operators (registry.go). A new operator needs an entry there, its implementation and lines
// in testdata. Operators of MongoDB that this server doesn't support are listed in Unsupported.
//
// Example: {$add: ["$a", 1]} compiles to a closure that reads the field a of the current document (Env.With) and adds
// 1. For {a: 2} it returns 3; for {a: null} and for {} it returns null.
package expr

import (
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// maxDepth is the deepest nesting of expressions.
const maxDepth = 200

// Expr is a compiled expression. It computes its value from e. Undefined stands for a missing value.
type Expr func(e *Env) (value.Value, error)

// Env is the input of an evaluation: the document, the variables and the request's clock. It is not safe for concurrent
// use.
type Env struct {
	root value.Value
	vars []value.Value
	// NowMS is $$NOW, the same for a whole command.
	NowMS int64
	// Random returns a number in [0, 1).
	Random func() float64
	// Score returns the textScore of a document; nil: there is no $text.
	Score func(doc value.Value) float64
	// Search returns the score of a document in a search for vectors. ok is false if it isn't one of the search. Nil:
	// there is no search.
	Search func(doc value.Value) (score float64, ok bool)
	// SortKey returns the values by which a document was sorted; nil: it wasn't.
	SortKey func(doc value.Value) value.Value
	// Roles returns the value of $$USER_ROLES; nil: nobody has logged in.
	Roles func() (value.Value, error)
	// Later says that operators do what MongoDB does after 7.0, where that is something else.
	Later bool
	// Run bounds the time and memory of the evaluation; nil: no limit.
	Run *Run
}

// With sets the document that paths and $$ROOT read, and returns e.
func (e *Env) With(doc value.Value) *Env {
	e.root = doc
	return e
}

// Fork returns an Env with the same variables, for a nested pipeline.
func (e *Env) Fork() *Env {
	n := *e
	n.vars = append([]value.Value(nil), e.vars...)
	return &n
}

// Set binds the variable of a slot.
func (e *Env) Set(slot int, v value.Value) {
	for len(e.vars) <= slot {
		e.vars = append(e.vars, value.Undef())
	}
	e.vars[slot] = v
}

// Scope holds the variables that an expression can use, innermost first. The nil Scope only has the built-in ones.
type Scope struct {
	up     *Scope
	name   string
	slot   int  // below 0: it has no variable
	stable bool // see Stable
}

// Stable returns a scope without variables whose expressions may only have operators of the Stable API.
func Stable() *Scope { return &Scope{slot: -1, stable: true} }

// Bind returns a scope with one more variable, and the slot for Env.Set.
func (s *Scope) Bind(name string) (*Scope, int) {
	n := &Scope{up: s, name: name}
	if s != nil {
		n.slot, n.stable = s.slot+1, s.stable
	}
	return n, n.slot
}

func (s *Scope) find(name string) (int, bool) {
	for ; s != nil; s = s.up {
		if s.name == name && s.slot >= 0 {
			return s.slot, true
		}
	}
	return 0, false
}

// Compile compiles an expression. v must not change while the result is in use.
func Compile(v value.Value, s *Scope) (Expr, error) {
	return compile(v, s, 0)
}

func compile(v value.Value, s *Scope, depth int) (Expr, error) {
	if depth > maxDepth {
		return nil, merr.New(merr.BadValue, "expression exceeds the depth limit of %d", maxDepth)
	}
	switch v.Kind() {
	case value.String:
		if b := v.Bytes(); len(b) > 0 && b[0] == '$' {
			return compilePath(v.Str(), s)
		}
	case value.Array:
		return compileArray(v, s, depth)
	case value.Object:
		it := v.Iter()
		if it.Next() && len(it.Key()) > 0 && it.Key()[0] == '$' {
			name, arg := string(it.Key()), it.Value()
			if it.Next() {
				return nil, merr.New(15983,
					"an object representing an expression must have exactly one field: %s", name)
			}
			return compileOperator(name, arg, s, depth)
		}
		return compileObject(v, s, depth)
	}
	return constant(v), nil
}

func constant(v value.Value) Expr {
	return func(*Env) (value.Value, error) { return v, nil }
}

// isConstant reports whether v contains no expression, so that its value is v itself.
func isConstant(v value.Value) bool {
	switch v.Kind() {
	case value.String:
		b := v.Bytes()
		return len(b) == 0 || b[0] != '$'
	case value.Array, value.Object:
		for it := v.Iter(); it.Next(); {
			if v.Kind() == value.Object && len(it.Key()) > 0 && it.Key()[0] == '$' || !isConstant(it.Value()) {
				return false
			}
		}
	}
	return true
}

func compileArray(v value.Value, s *Scope, depth int) (Expr, error) {
	if isConstant(v) {
		return constant(v), nil
	}
	var xs []Expr
	for it := v.Iter(); it.Next(); {
		x, err := compile(it.Value(), s, depth+1)
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	return func(e *Env) (value.Value, error) {
		out := newArray(e)
		defer out.drop()
		for _, x := range xs {
			v, err := x(e)
			if err != nil {
				return v, err
			}
			if err := out.add(v); err != nil {
				return v, err
			}
		}
		return out.done(), nil
	}, nil
}

func compileObject(v value.Value, s *Scope, depth int) (Expr, error) {
	if isConstant(v) {
		return constant(v), nil
	}
	type field struct {
		name string
		x    Expr
	}
	var fs []field
	for it := v.Iter(); it.Next(); {
		name := string(it.Key())
		if strings.Contains(name, ".") {
			return nil, merr.New(16405, "dotted field names are only allowed at the top level")
		}
		x, err := compile(it.Value(), s, depth+1)
		if err != nil {
			return nil, err
		}
		fs = append(fs, field{name, x})
	}
	return func(e *Env) (value.Value, error) {
		at, b := bson.Begin(nil)
		for _, f := range fs {
			v, err := f.x(e)
			if err != nil {
				return v, err
			}
			b = value.AppendElement(b, f.name, v)
		}
		return value.ObjectOf(bson.End(b, at)), nil
	}, nil
}

// compilePath compiles "$a.b" and "$$var.a".
func compilePath(text string, s *Scope) (Expr, error) {
	if strings.HasPrefix(text, "$$") {
		name, rest, dotted := strings.Cut(text[2:], ".")
		x, err := variable(name, s)
		if err != nil || !dotted {
			return x, err
		}
		path, err := FieldPath(rest)
		if err != nil {
			return nil, err
		}
		return func(e *Env) (value.Value, error) {
			v, err := x(e)
			if err != nil {
				return v, err
			}
			return Path(v, path), nil
		}, nil
	}
	if text == "$" {
		return nil, merr.New(16872, "'$' by itself is not a valid FieldPath")
	}
	path, err := FieldPath(text[1:])
	if err != nil {
		return nil, err
	}
	if len(path) == 1 {
		name := path[0]
		return func(e *Env) (value.Value, error) { return e.root.Get(name), nil }, nil
	}
	return func(e *Env) (value.Value, error) { return Path(e.root, path), nil }, nil
}

// DBRefName reports whether s is a field of a DBRef: these begin with $.
func DBRefName(s string) bool { return s == "$id" || s == "$ref" || s == "$db" }

// FieldPath splits a path of field names. It returns MongoDB's error for names that no field can have, or only one that
// an operator names.
func FieldPath(p string) ([]string, error) {
	switch {
	case p == "":
		return nil, merr.New(40352, "FieldPath cannot be constructed with empty string")
	case p[len(p)-1] == '.':
		return nil, merr.New(40353, "FieldPath must not end with a '.'.")
	case strings.IndexByte(p, 0) >= 0:
		return nil, merr.New(16411, "FieldPath field names may not contain '\\0'.")
	}
	segs := strings.Split(p, ".")
	for _, s := range segs {
		switch {
		case s == "":
			return nil, merr.New(15998, "FieldPath field names may not be empty strings.")
		case s[0] == '$' && !DBRefName(s):
			return nil, merr.New(16410, "FieldPath field names may not start with '$'. Consider using $getField or "+
				"$setField.")
		}
	}
	return segs, nil
}

// Path returns the value at a path in v. For an array on the path it returns an array with the values of the elements.
// Example: the path a.b in {a: [{b: 1}, {b: 2}]} gives [1, 2].
func Path(v value.Value, path []string) value.Value {
	for len(path) > 0 {
		switch v.Kind() {
		case value.Object:
			v, path = v.Get(path[0]), path[1:]
		case value.Array:
			at, b := bson.Begin(nil)
			n := 0
			for it := v.Iter(); it.Next(); {
				if x := Path(it.Value(), path); x.IsDefined() {
					b = value.AppendIndexed(b, n, x)
					n++
				}
			}
			return value.ArrayOf(bson.End(b, at))
		default:
			return value.Undef()
		}
	}
	return v
}

func variable(name string, s *Scope) (Expr, error) {
	if slot, ok := s.find(name); ok {
		return func(e *Env) (value.Value, error) {
			if slot < len(e.vars) {
				return e.vars[slot], nil
			}
			return value.Undef(), nil
		}, nil
	}
	switch name {
	case "ROOT", "CURRENT":
		return func(e *Env) (value.Value, error) { return e.root, nil }, nil
	case "REMOVE":
		return constant(value.Undef()), nil
	case "NOW":
		return func(e *Env) (value.Value, error) { return value.DateOf(e.NowMS, 0), nil }, nil
	case "CLUSTER_TIME":
		return func(e *Env) (value.Value, error) {
			return value.TimestampOf(uint64(e.NowMS/1000)<<32 | 1), nil
		}, nil
	case "DESCEND", "PRUNE", "KEEP":
		return constant(value.StringOf("$$" + name)), nil
	case "USER_ROLES":
		return func(e *Env) (value.Value, error) {
			if e.Roles == nil {
				return value.MakeArray(nil), nil
			}
			return e.Roles()
		}, nil
	case "SEARCH_META":
		return nil, merr.NotSupported("$$" + name)
	}
	if !validName(name) {
		return nil, merr.New(merr.FailedToParse, "'%s' starts with an invalid character for a user variable name", name)
	}
	return nil, merr.New(17276, "Use of undefined variable: %s", name)
}

// validName reports whether a user may give a variable this name.
func validName(name string) bool {
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r > 127:
		case i > 0 && (r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'):
		case i == 0 && name == "CURRENT":
			return true
		default:
			return false
		}
	}
	return name != ""
}

// BindUser is Bind for a name that a user has chosen. It returns MongoDB's error for a name that isn't allowed.
func BindUser(s *Scope, name string) (*Scope, int, error) {
	if !validName(name) || name == "CURRENT" {
		return nil, 0, merr.New(merr.FailedToParse,
			"'%s' starts with an invalid character for a user variable name", name)
	}
	n, slot := s.Bind(name)
	return n, slot, nil
}

// Truthy reports whether a value counts as true in a condition. False, null, missing and zero don't.
func Truthy(v value.Value) bool {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return false
	case value.Bool:
		return v.Bool()
	case value.Int32, value.Int64:
		return v.Int() != 0
	case value.Double:
		return v.Float() != 0
	case value.Decimal:
		return !isZero(v)
	}
	return true
}

// nullish reports whether v is null or missing.
func nullish(v value.Value) bool { return v.Kind() == value.Null || v.Kind() == value.Undefined }
