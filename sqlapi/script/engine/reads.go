package engine

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// A function often gets a whole document and reads few of its properties. Making objects of all the others would take
// most of its time. propertiesRead finds out which properties a function can read, from its text, and errs on the side
// of all of them.
//
// Example: function f(d, n) { if (!d.price) return 0; return d.price * n * (1 + d["tax"]); } reads the properties price
// and tax of d, and n itself. function f(d) { return JSON.stringify(d); } can read all of d.
//
// A parameter qualifies when each place that has its name is the read or the write of a property with a literal name,
// or a test that doesn't depend on its properties. The property must not be called: it would get the object as this.
// The function must have no other way to the object: no arguments, no eval, no getter that is called with it. So
// nothing in the text may lead to the prototype of objects, where a getter could be put: Object, Reflect, constructor,
// computed names, and so on.

const (
	mostReads = 64   // properties; a function that reads more gets whole objects
	mostDepth = 1000 // of the tree
)

// leading are the names that can lead to the prototype of objects, or to all arguments.
var leading = map[string]bool{"arguments": true, "eval": true, "Object": true, "Reflect": true, "Function": true,
	"Proxy": true, "globalThis": true, "constructor": true, "prototype": true, "__proto__": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true}

// uses is what is known about the parameters of a function.
type uses struct {
	read   map[string]map[string]bool // properties by parameter
	whole  map[string]bool            // parameters that are used in another way
	unsure bool                       // nothing is known
	depth  int
}

// propertiesRead returns for each parameter of a program's function the names of the properties that it can read of an
// object there, in their order; nil where it can be all. It returns nil when that holds for all parameters.
func propertiesRead(tree *ast.Program) wire.Reads {
	parameters := entryParameters(tree)
	if parameters == nil {
		return nil
	}
	u := &uses{read: map[string]map[string]bool{}, whole: map[string]bool{}}
	names := make([]string, len(parameters.List))
	own := map[*ast.Identifier]bool{}
	for i, p := range parameters.List {
		if id, ok := p.Target.(*ast.Identifier); ok && p.Initializer == nil {
			names[i] = id.Name.String()
			u.read[names[i]] = map[string]bool{}
			own[id] = true
		}
	}
	u.visit(reflect.ValueOf(tree.Body), own)
	out := make(wire.Reads, len(names))
	known := false
	for i, name := range names {
		if read := u.read[name]; read != nil && !u.whole[name] && !u.unsure && len(read) <= mostReads {
			out[i], known = make([]string, 0, len(read)), true
			for property := range read {
				out[i] = append(out[i], property)
			}
			slices.Sort(out[i])
		}
	}
	if !known {
		return nil
	}
	return out
}

// anyWhole reports whether a function may read all of an argument.
func anyWhole(reads wire.Reads) bool {
	return reads == nil || slices.ContainsFunc(reads, func(names []string) bool { return names == nil })
}

// entryParameters returns the parameters of a program's function: the first one that it declares, or its expression.
func entryParameters(tree *ast.Program) *ast.ParameterList {
	for _, statement := range tree.Body {
		if f, ok := statement.(*ast.FunctionDeclaration); ok {
			return f.Function.ParameterList
		}
	}
	if len(tree.Body) != 1 {
		return nil
	}
	if e, ok := tree.Body[0].(*ast.ExpressionStatement); ok {
		switch f := e.Expression.(type) {
		case *ast.FunctionLiteral:
			return f.ParameterList
		case *ast.ArrowFunctionLiteral:
			return f.ParameterList
		}
	}
	return nil
}

// visit looks at all nodes of a part of the tree. own are the places that declare the parameters.
func (u *uses) visit(v reflect.Value, own map[*ast.Identifier]bool) {
	if u.depth++; u.depth > mostDepth {
		u.unsure = true
	}
	defer func() { u.depth-- }()
	if u.unsure {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			u.visit(v.Elem(), own)
		}
	case reflect.Slice:
		for i := range v.Len() {
			u.visit(v.Index(i), own)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Interface { // of a statement that may be absent
			u.visit(v.Elem(), own)
			return
		}
		if v.IsNil() || u.node(v.Interface(), own) {
			return
		}
		u.fields(v.Elem(), own)
	case reflect.Struct:
		if id, ok := v.Interface().(ast.Identifier); ok {
			u.named(id.Name.String())
			return
		}
		u.fields(v, own)
	default: // positions, operators and texts
	}
}

func (u *uses) fields(v reflect.Value, own map[*ast.Identifier]bool) {
	for i := range v.NumField() {
		u.visit(v.Field(i), own)
	}
}

// node looks at one node. It returns false if its parts must be looked at.
func (u *uses) node(n any, own map[*ast.Identifier]bool) (done bool) {
	visit := func(e ast.Expression) {
		if e != nil {
			u.visit(reflect.ValueOf(e), own)
		}
	}
	switch n := n.(type) {
	case *ast.Identifier:
		if !own[n] {
			u.named(n.Name.String())
		}
		return true
	case *ast.DotExpression:
		u.member(n.Left, n.Identifier.Name.String(), visit)
		return true
	case *ast.BracketExpression:
		return u.bracket(n, visit)
	case *ast.CallExpression:
		u.called(n.Callee)
	case *ast.TemplateLiteral:
		u.called(n.Tag)
	case *ast.ThisExpression, *ast.SuperExpression, *ast.ClassLiteral, *ast.WithStatement, *ast.MetaProperty:
		u.unsure = true
	case *ast.PropertyKeyed:
		key, literal := n.Key.(*ast.StringLiteral)
		if n.Computed || literal && leading[key.Value.String()] {
			u.unsure = true
		}
	case *ast.IfStatement:
		if u.parameter(n.Test) == "" {
			visit(n.Test)
		}
		u.visit(reflect.ValueOf(&n.Consequent), own)
		u.visit(reflect.ValueOf(&n.Alternate), own)
		return true
	case *ast.UnaryExpression:
		return (n.Operator == token.TYPEOF || n.Operator == token.NOT) && u.parameter(n.Operand) != ""
	case *ast.BinaryExpression:
		switch {
		case n.Operator == token.LOGICAL_AND && u.parameter(n.Left) != "":
			visit(n.Right)
			return true
		case comparesToNothing(n):
			return u.parameter(n.Left) != ""
		}
	case *ast.ConditionalExpression:
		if u.parameter(n.Test) != "" {
			visit(n.Consequent)
			visit(n.Alternate)
			return true
		}
	}
	return false
}

// comparesToNothing reports whether an expression compares with null or undefined.
func comparesToNothing(n *ast.BinaryExpression) bool {
	switch n.Operator {
	case token.EQUAL, token.NOT_EQUAL, token.STRICT_EQUAL, token.STRICT_NOT_EQUAL:
	default:
		return false
	}
	switch right := n.Right.(type) {
	case *ast.NullLiteral:
		return true
	case *ast.Identifier:
		return right.Name == "undefined"
	}
	return false
}

// parameter returns the name of the parameter that an expression is, "" if it is none.
func (u *uses) parameter(e ast.Expression) string {
	if o, ok := e.(*ast.Optional); ok {
		e = o.Expression
	}
	if id, ok := e.(*ast.Identifier); ok && u.read[id.Name.String()] != nil {
		return id.Name.String()
	}
	return ""
}

// member notes the use of a property.
func (u *uses) member(of ast.Expression, property string, visit func(ast.Expression)) {
	if leading[property] {
		u.unsure = true
	}
	name := u.parameter(of)
	switch {
	case name == "":
		visit(of)
	case property == "" || strings.ContainsRune(property, 0): // wire.Reads has no such names
		u.whole[name] = true
	default:
		u.read[name][property] = true
	}
}

// bracket notes the use of a property in brackets.
func (u *uses) bracket(n *ast.BracketExpression, visit func(ast.Expression)) bool {
	switch name := n.Member.(type) {
	case *ast.StringLiteral:
		u.member(n.Left, name.Value.String(), visit)
		return true
	case *ast.NumberLiteral:
		return false // an element of an array; a parameter is used as a whole
	}
	u.unsure = true
	return true
}

// called notes that the value of an expression is called. A property that is called gets the object.
func (u *uses) called(e ast.Expression) {
	for {
		switch x := e.(type) {
		case *ast.OptionalChain:
			e = x.Expression
		case *ast.Optional:
			e = x.Expression
		case *ast.DotExpression:
			u.whole[u.parameter(x.Left)] = true
			return
		case *ast.BracketExpression:
			u.whole[u.parameter(x.Left)] = true
			return
		default:
			return
		}
	}
}

// named notes a place with a name that isn't the use of a property.
func (u *uses) named(name string) {
	u.whole[name] = true
	if leading[name] {
		u.unsure = true
	}
}
