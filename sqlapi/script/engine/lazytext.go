package engine

import (
	"reflect"

	"github.com/dop251/goja/ast"
)

// takesLazy reports whether a program may get lazy objects: nothing in its text can tell them from plain ones. It errs
// on the side of plain objects.
//
// Example: function f(d) { let n = 0; for (const k in d) n += d[k]; return n; } may. Not so one that has the word
// freeze, Symbol or prototype anywhere, a class, or a call of a method by a computed name.
func takesLazy(tree *ast.Program) bool {
	v := &lazyVisit{}
	v.visit(reflect.ValueOf(tree.Body))
	return !v.unsure
}

// telling are the names that lead to what differs for lazy objects: their attributes, their prototypes, functions that
// are called with them as this, and ways to run or find code by its name.
var telling = map[string]bool{"eval": true, "Function": true, "Object": true, "Reflect": true, "Proxy": true,
	"Symbol": true, "WeakRef": true, "globalThis": true, "constructor": true, "prototype": true, "__proto__": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
	"defineProperty": true, "defineProperties": true, "freeze": true, "seal": true, "preventExtensions": true,
	"call": true, "apply": true, "bind": true, "sort": true}

// plainStatics are the functions of Object that treat lazy objects as they treat plain ones.
var plainStatics = map[string]bool{"assign": true, "entries": true, "fromEntries": true, "getOwnPropertyNames": true,
	"hasOwn": true, "is": true, "keys": true, "values": true}

// lazyVisit looks for what tells lazy objects from plain ones.
type lazyVisit struct {
	unsure bool
	depth  int
}

// visit looks at all nodes of a part of the tree.
func (l *lazyVisit) visit(v reflect.Value) {
	if l.depth++; l.depth > mostDepth {
		l.unsure = true
	}
	defer func() { l.depth-- }()
	if l.unsure {
		return
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct && l.node(v.Interface()) {
			return
		}
		l.visit(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			l.visit(v.Index(i))
		}
	case reflect.Struct:
		if id, ok := v.Interface().(ast.Identifier); ok {
			l.named(id.Name.String())
			return
		}
		for i := range v.NumField() {
			l.visit(v.Field(i))
		}
	default: // positions, operators and texts
	}
}

func (l *lazyVisit) named(name string) { l.unsure = l.unsure || telling[name] }

// node looks at one node. It returns false if its parts must be looked at.
func (l *lazyVisit) node(n any) (done bool) {
	switch n := n.(type) {
	case *ast.StringLiteral:
		l.named(n.Value.String())
	case *ast.ThisExpression, *ast.SuperExpression, *ast.ClassLiteral, *ast.WithStatement, *ast.MetaProperty,
		*ast.PrivateDotExpression:
		l.unsure = true
	case *ast.CallExpression:
		return l.call(n)
	case *ast.NewExpression:
		l.computed(n.Callee)
	case *ast.TemplateLiteral:
		l.computed(n.Tag)
	}
	return l.unsure
}

// call looks at a call. Some names are allowed only there: of functions of Object, and of the method sort. The last
// one with a plain array as this, because no property of a lazy object is that method.
func (l *lazyVisit) call(n *ast.CallExpression) (done bool) {
	l.computed(n.Callee)
	dot, ok := n.Callee.(*ast.DotExpression)
	if !ok || l.unsure {
		return l.unsure
	}
	of, _ := dot.Left.(*ast.Identifier)
	switch method := dot.Identifier.Name.String(); {
	case of != nil && of.Name == "Object" && plainStatics[method]:
	case method == "sort", method == "call" && isHasOwn(dot.Left):
		if method == "sort" {
			l.visit(reflect.ValueOf(dot.Left))
		}
	default:
		return false
	}
	l.visit(reflect.ValueOf(n.ArgumentList))
	return true
}

// isHasOwn reports whether an expression is Object.prototype.hasOwnProperty, which programs use to call it for objects
// that may have a property of that name.
func isHasOwn(e ast.Expression) bool {
	for _, name := range []string{"hasOwnProperty", "prototype"} {
		dot, ok := e.(*ast.DotExpression)
		if !ok || dot.Identifier.Name.String() != name {
			return false
		}
		e = dot.Left
	}
	of, ok := e.(*ast.Identifier)
	return ok && of.Name == "Object"
}

// computed is unsure about a call whose function is found by a computed name.
func (l *lazyVisit) computed(callee ast.Expression) {
	for {
		switch x := callee.(type) {
		case *ast.OptionalChain:
			callee = x.Expression
		case *ast.Optional:
			callee = x.Expression
		case *ast.BracketExpression:
			_, text := x.Member.(*ast.StringLiteral)
			_, number := x.Member.(*ast.NumberLiteral)
			l.unsure = l.unsure || !text && !number
			return
		default:
			return
		}
	}
}
