package gremlin

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// argument reads one argument of a step: a literal, token, predicate, traversal, strategy or variable.
func (p *parser) argument() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.condition()
}

func (p *parser) operand() (any, error) {
	t := p.peek()
	switch t.kind {
	case tokString:
		p.i++
		return t.text, nil
	case tokNumber:
		p.i++
		return number(t, false)
	case tokIdent:
		return p.word()
	case tokPunct:
		switch t.text {
		case "[":
			return p.list()
		case "{":
			if p.closureAhead() {
				return nil, unsupportedAt(t, "Lambdas are not supported")
			}
			return p.set()
		case "(":
			v, err := p.bracketed()
			if err != nil {
				return nil, err
			}
			return v, p.expect(")")
		}
	}
	return nil, p.unexpected("an argument is expected")
}

// closureAhead distinguishes a Groovy closure ({it.get()}, {a, b -> ..}) from a set. The cursor is at the bracket.
func (p *parser) closureAhead() bool {
	if t := p.peekAt(1); t.kind == tokIdent && t.text == "it" && !p.assigned["it"] {
		return true
	}
	for n := 1; n < 8; n++ {
		if p.isAt(n, "-") && p.isAt(n+1, ">") {
			return true
		}
	}
	return false
}

func (p *parser) signed() (any, error) {
	neg := p.next().text == "-"
	switch t := p.peek(); {
	case t.kind == tokNumber:
		p.i++
		return number(t, neg)
	case t.kind == tokIdent && t.text == "Infinity":
		p.i++
		if neg {
			return math.Inf(-1), nil
		}
		return math.Inf(1), nil
	}
	return nil, p.unexpected("a number is expected")
}

// word reads an argument that begins with a name.
func (p *parser) word() (any, error) {
	t := p.peek()
	switch {
	case p.isAt(1, "("):
		return p.function()
	case t.text == "new":
		p.i++
		return p.constructor()
	case t.text == "__" && p.isAt(1, "."):
		p.i += 2
		return p.nested()
	case t.text == "g" && (p.isAt(1, ".") || p.atEnd(1)):
		p.i++
		v, err := p.rootTraversal()
		if b, ok := v.(*gvalue.Bytecode); ok && p.values {
			return &SubQuery{Code: b, Name: "toList", Count: -1}, err
		}
		return v, err
	case p.isVariable(t):
		p.i++
		return Var{t.text, int(t.line), int(t.col)}, nil
	case p.isAt(1, "."):
		return p.qualified()
	}
	return p.bare()
}

func (p *parser) atEnd(n int) bool {
	t := p.peekAt(n)
	return t.kind == tokEOF || t.newline || t.text == ";"
}

// isVariable reports whether a name is bound, and records the answer, because the parsed script depends on it.
func (p *parser) isVariable(t *token) bool {
	if p.assigned[t.text] {
		return true
	}
	is := p.bound != nil && p.bound(t.text)
	if p.s.names == nil {
		p.s.names = map[string]bool{}
	}
	p.s.names[t.text] = is
	return is
}

// bareTokens are the constants that may be written without their type.
var bareTokens = makeBareTokens()

func makeBareTokens() map[string]any {
	m := map[string]any{"true": true, "false": false, "null": nil, "NaN": math.NaN(), "Infinity": math.Inf(1)}
	for _, def := range []struct{ typ, names string }{
		{"T", "id label key value"}, {"Scope", "local global"}, {"Order", "asc desc shuffle incr decr"},
		{"Pop", "first last all mixed"}, {"Cardinality", "single list set"}, {"Column", "keys values"},
		{"Direction", "OUT IN BOTH from to"}, {"Merge", "onCreate onMatch outV inV"}, {"Pick", "any none unproductive"},
		{"Operator", "addAll and assign div max min minus mult or sum sumLong"}, {"Barrier", "normSack"},
		{"DT", "second minute hour day"},
	} {
		for _, n := range strings.Fields(def.names) {
			e, ok := gvalue.MakeEnum(def.typ, n)
			if _, twice := m[n]; twice || !ok {
				panic("gremlin: token " + n)
			}
			m[n] = e
		}
	}
	return m
}

func (p *parser) bare() (any, error) {
	t := p.next()
	if v, ok := bareTokens[t.text]; ok {
		return v, nil
	}
	if strings.HasSuffix(t.text, "Strategy") {
		return &gvalue.Strategy{Class: t.text, Config: &gvalue.Map{}}, nil
	}
	return nil, failAt(t, "Unable to resolve symbol '%s' in the current context.", t.text)
}

// function reads name(..): a predicate, a value function, or the first step of an anonymous traversal.
func (p *parser) function() (any, error) {
	t := p.peek()
	switch t.text {
	case "datetime", "DateTime", "UUID":
		p.i++
		return p.valueFunction(t)
	case "single", "list", "set":
		p.i++
		return p.cardinality(t)
	case "not":
		if p.predicateAhead() {
			return p.predicate()
		}
	}
	if _, ok := predicates[t.text]; ok && t.text != "not" {
		return p.predicate()
	}
	if strings.HasSuffix(t.text, "Strategy") {
		p.i++
		return p.strategyCall(t)
	}
	return p.nested()
}

func (p *parser) valueFunction(t *token) (any, error) {
	args, err := p.arguments("(", ")")
	if err != nil {
		return nil, err
	}
	isUUID := t.text == "UUID"
	switch {
	case len(args) == 0 && isUUID:
		return NewUUID{}, nil
	case len(args) == 0:
		return Now{}, nil
	case len(args) == 1:
		if s, ok := args[0].(string); ok {
			return valueOf(t, s, isUUID)
		}
		if n, ok := integral(args[0]); ok && !isUUID {
			return gvalue.Date(n), nil
		}
	}
	return nil, failAt(t, "%s() takes one string", t.text)
}

func (p *parser) cardinality(t *token) (any, error) {
	args, err := p.arguments("(", ")")
	if err != nil {
		return nil, err
	}
	if len(args) != 1 {
		return nil, failAt(t, "%s() takes one value", t.text)
	}
	return gvalue.CardinalityValue{Cardinality: gvalue.Cardinality(t.text), Value: args[0]}, nil
}

// qualified reads Type.name, Type.name(..) or a strategy's builder. A package name before the type is ignored.
func (p *parser) qualified() (any, error) {
	t := p.next()
	for p.is(".") && p.peekAt(1).kind == tokIdent &&
		(lowerFirst(t.text) || t.text == "VertexProperty" || t.text == "SackFunctions" ||
			t.text == "TraversalOptionParent" || t.text == "GraphTraversal" && !p.isAt(2, "(")) {
		if p.isAt(2, "(") {
			break
		}
		p.i++
		t = p.next()
	}
	if !p.is(".") || p.peekAt(1).kind != tokIdent {
		return nil, failAt(t, "Unable to resolve symbol '%s' in the current context.", t.text)
	}
	if strings.HasSuffix(t.text, "Strategy") {
		return p.builder(t)
	}
	p.i++
	name := p.peek()
	if e, ok := gvalue.MakeEnum(t.text, name.text); ok && !(t.text == "Cardinality" && p.isAt(1, "(")) {
		p.i++
		return e, nil
	}
	switch t.text {
	case "P", "TextP":
		if _, ok := predicates[name.text]; ok && p.isAt(1, "(") {
			return p.predicate()
		}
	case "Cardinality":
		if p.isAt(1, "(") && (name.text == "single" || name.text == "list" || name.text == "set") {
			p.i++
			return p.cardinality(name)
		}
	case "WithOptions":
		if v, ok := withOptions[name.text]; ok {
			p.i++
			return v, nil
		}
	case "Pick", "Barrier", "DT":
	case "UUID":
		if (name.text == "fromString" || name.text == "randomUUID") && p.isAt(1, "(") {
			p.i++
			return p.valueFunction(t)
		}
	case "Integer", "Long", "Double", "Float", "String", "Math", "System":
		if n, ok := functions[t.text+"."+name.text]; ok && p.isAt(1, "(") {
			p.i++
			args, err := p.arguments("(", ")")
			if err == nil && len(args) != n {
				err = failAt(name, "%s.%s() takes %d argument(s)", t.text, name.text, n)
			}
			return exprAt(name, "static", t.text+"."+name.text, args...), err
		}
		if v, ok := javaConstants[t.text+"."+name.text]; ok {
			p.i++
			return v, nil
		}
	}
	return nil, failAt(t, "Unable to resolve symbol '%s.%s' in the current context.", t.text, name.text)
}

func lowerFirst(s string) bool { return s[0] >= 'a' && s[0] <= 'z' }

// withOptions are the constants of WithOptions: keys and values of with() after valueMap() and index().
var withOptions = map[string]any{
	"tokens": "~tinkerpop.valueMap.tokens", "none": int32(0), "ids": int32(1), "labels": int32(2), "keys": int32(4),
	"values": int32(8), "all": int32(15), "indexer": "~tinkerpop.index.indexer", "list": int32(0), "map": int32(1),
}

var javaConstants = map[string]any{
	"Integer.MAX_VALUE": int32(math.MaxInt32), "Integer.MIN_VALUE": int32(math.MinInt32),
	"Long.MAX_VALUE": int64(math.MaxInt64),
	"Long.MIN_VALUE": int64(math.MinInt64), "Double.MAX_VALUE": math.MaxFloat64, "Double.NaN": math.NaN(),
	"Double.POSITIVE_INFINITY": math.Inf(1), "Double.NEGATIVE_INFINITY": math.Inf(-1),
	"Float.MAX_VALUE": float32(math.MaxFloat32),
}

// functions are the functions of Java's classes, with the number of their arguments.
var functions = map[string]int{
	"Integer.parseInt": 1, "Integer.valueOf": 1, "Long.parseLong": 1, "Long.valueOf": 1, "Double.parseDouble": 1,
	"Double.valueOf": 1, "String.valueOf": 1, "Math.abs": 1, "Math.max": 2, "Math.min": 2,
	"System.currentTimeMillis": 0,
}

// predicates are the names of P and TextP with the fewest and the most arguments (-1: any number).
var predicates = map[string]struct {
	min, max int
	text     bool
}{
	"eq": {1, 1, false}, "neq": {1, 1, false}, "lt": {1, 1, false}, "lte": {1, 1, false}, "gt": {1, 1, false},
	"gte":    {1, 1, false},
	"inside": {2, 2, false}, "outside": {2, 2, false}, "between": {2, 2, false}, "within": {0, -1, false},
	"without": {0, -1, false},
	"not":     {1, 1, false}, "typeOf": {1, 1, false},
	"startingWith": {1, 1, true}, "notStartingWith": {1, 1, true}, "endingWith": {1, 1, true},
	"notEndingWith": {1, 1, true},
	"containing":    {1, 1, true}, "notContaining": {1, 1, true}, "regex": {1, 1, true}, "notRegex": {1, 1, true},
}

// predicateAhead distinguishes P.not(predicate) from the step not(traversal). The cursor is at not.
func (p *parser) predicateAhead() bool {
	for n := 2; n < maxDepth; n += 2 {
		t := p.peekAt(n)
		if t.kind != tokIdent {
			return false
		}
		if t.text == "P" || t.text == "TextP" {
			return true
		}
		if t.text == "not" && p.isAt(n+1, "(") {
			continue
		}
		_, ok := predicates[t.text]
		return ok && p.isAt(n+1, "(")
	}
	return false
}

// predicate reads eq(x) and optionally .and(..), .or(..), .negate().
func (p *parser) predicate() (any, error) {
	t := p.next()
	args, err := p.arguments("(", ")")
	if err != nil {
		return nil, err
	}
	def := predicates[t.text]
	if len(args) < def.min || def.max >= 0 && len(args) > def.max {
		return nil, failAt(t, "%s() is called with a wrong number of arguments", t.text)
	}
	if t.text == "not" {
		if _, ok := args[0].(*gvalue.P); !ok {
			return nil, failAt(t, "not() takes a predicate")
		}
	}
	pr := &gvalue.P{Op: t.text, Args: args, Text: def.text}
	if t.text == "within" || t.text == "without" {
		pr.Args = unroll(args)
	}
	for p.is(".") && p.peekAt(1).kind == tokIdent && p.isAt(2, "(") {
		name := p.peekAt(1)
		if name.text != "and" && name.text != "or" && name.text != "negate" {
			break
		}
		p.i += 2
		more, err := p.arguments("(", ")")
		if err != nil {
			return nil, err
		}
		if name.text == "negate" {
			if len(more) != 0 {
				return nil, failAt(name, "negate() takes no argument")
			}
			pr = &gvalue.P{Op: "not", Args: []any{pr}}
			continue
		}
		if len(more) != 1 {
			return nil, failAt(name, "%s() takes one predicate", name.text)
		}
		if _, ok := more[0].(*gvalue.P); !ok {
			return nil, failAt(name, "%s() takes a predicate", name.text)
		}
		pr = &gvalue.P{Op: name.text, Args: []any{pr, more[0]}}
	}
	return pr, nil
}

// unroll replaces a single collection argument of within and without by its elements.
func unroll(args []any) []any {
	if len(args) != 1 {
		return args
	}
	switch c := args[0].(type) {
	case []any:
		return c
	case *gvalue.Set:
		return c.Items()
	}
	return args
}
