// Package gremlin reads Gremlin scripts: the language that TinkerPop 3.8's grammar describes together with what the
// service and older Groovy clients write beyond it (g.V() as a nested traversal, store(), incr and decr, strategy
// builders, assignments, comments of both kinds). The result is the same instruction list that clients send as
// bytecode, so one compiler serves both.
//
// A script is a list of statements; each is a traversal, optionally closed by a terminal method such as next(), or a
// literal. Names that are no part of the language are variables: they must be bound by the request or assigned before.
package gremlin

import (
	"fmt"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Limits of a script. The service allows 64 KB of text and 400 operators; a plain graph takes longer scripts, but
// nesting stays bounded, because parsing and running are recursive.
const (
	MaxScript = 1 << 20 // bytes
	maxDepth  = 300     // nested brackets, predicates and traversals
)

// Error is a script that can't be read: what is wrong and where (both count from 1; columns count characters).
type Error struct {
	Msg         string
	Line, Col   int
	Unsupported bool // the text is understood, but this server doesn't do it
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s @ line %d, column %d.", e.Msg, e.Line, e.Col) }

// Script is a parsed script. It is immutable and may be shared.
type Script struct {
	Stmts []Stmt
	// names holds every identifier whose meaning depends on the bindings, and whether it was taken as a variable.
	names map[string]bool
}

// Stmt is one statement: an expression whose value is the script's result when it is the last, or is kept under Assign.
type Stmt struct {
	Assign    string
	Expr      any // *gvalue.Bytecode, *SubQuery, Var, or a literal
	Line, Col int
}

// SubQuery is a traversal closed by a terminal method: g.V(1).next(). Name is that method, Count its argument
// (next(n)), -1 without one.
type SubQuery struct {
	Code  *gvalue.Bytecode
	Name  string
	Count int64
}

// Var is an argument that is given by the request's bindings or by an assignment.
type Var struct {
	Name      string
	Line, Col int
}

// Now stands for datetime() and NewUUID for UUID(): values of the moment at which the script runs.
type (
	Now     struct{}
	NewUUID struct{}
)

// terminals are the methods that close a traversal, with what may be their argument count.
var terminals = map[string]int{
	"next": 1, "toList": 0, "toSet": 0, "toBulkSet": 0, "iterate": 0, "hasNext": 0, "tryNext": 0, "explain": 0,
	"toString": 0,
}

// sourceOps are the methods of a traversal source that configure it.
var sourceOps = map[string]bool{
	"with": true, "withBulk": true, "withPath": true, "withSack": true, "withSideEffect": true, "withStrategies": true,
	"withoutStrategies": true, "withComputer": true, "withRemote": true,
}
