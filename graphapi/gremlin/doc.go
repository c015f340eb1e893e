// Package gremlin parses Gremlin scripts: the language of TinkerPop 3.8's grammar, and the additions of the service and
// of older Groovy clients (g.V() as a nested traversal, store(), incr and decr, strategy builders, assignments, both
// kinds of comments). The result is the same list of instructions that clients send as bytecode, so one compiler
// processes both.
//
// A script is a list of statements. Each is a literal or a traversal, which may end with a terminal method such as
// next(). Names that aren't part of the language are variables: the request must bind them, or an earlier statement
// must assign them. Operators and method calls on values (x + 1, x == 'a' ? 1 : 2, list.size()) are Groovy's.
//
//	g.V().has('name', x).out()
//	-> [{V} {has "name" Var(x)} {out}]
package gremlin

import (
	"fmt"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Limits of a script. The service allows 64 KB of text and 400 operators. Plain graphs accept longer scripts, but
// nesting is limited, because the parser and the execution are recursive.
const (
	maxScript = 1 << 20 // bytes
	maxDepth  = 300     // nested brackets, predicates and traversals
)

// Error says why a script can't be parsed, and where. Line and column count from 1; columns count characters.
type Error struct {
	Msg         string
	Line, Col   int
	Unsupported bool // valid, but not supported by this server
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s @ line %d, column %d.", e.Msg, e.Line, e.Col) }

// Script is a parsed script. It is immutable and may be shared.
type Script struct {
	Stmts []Stmt
	// names has every identifier whose meaning depends on the bindings, and whether it is a variable.
	names map[string]bool
}

// Stmt is one statement: an expression. Its value is the script's result if it is the last statement, or is stored in
// the variable Assign.
type Stmt struct {
	Assign    string
	Expr      any // *gvalue.Bytecode, *SubQuery, *Arith, *Expr, Var, or a literal
	Line, Col int
}

// SubQuery is a traversal with a terminal method: g.V(1).next(). Name is the method, Count its argument (next(n)), or
// -1.
type SubQuery struct {
	Code  *gvalue.Bytecode
	Name  string
	Count int64
}

// Var is an argument that the request's bindings or an assignment provide.
type Var struct {
	Name      string
	Line, Col int
}

// Now is the value of datetime() and NewUUID that of UUID(): both are evaluated when the script runs.
type (
	Now     struct{}
	NewUUID struct{}
)

// terminals are the methods that end a traversal, with their allowed argument counts.
var terminals = map[string]int{
	"next": 1, "toList": 0, "toSet": 0, "toBulkSet": 0, "iterate": 0, "hasNext": 0, "tryNext": 0, "explain": 0,
	"toString": 0,
}

// sourceOps are the methods of a traversal source that configure it.
var sourceOps = map[string]bool{
	"with": true, "withBulk": true, "withPath": true, "withSack": true, "withSideEffect": true, "withStrategies": true,
	"withoutStrategies": true, "withComputer": true, "withRemote": true,
}
