// Package run runs traversals: it compiles instructions (from a script or from bytecode) to steps, and pulls traversers
// through them.
//
// A step is an iterator over traversers; it asks the step before it for its next input when it is asked for its own
// next output. So a limit stops the work before it, and memory is bounded by the steps that must keep what they saw
// (order, group, dedup, repeat, ..), which count what they hold against one limit per request.
//
// A traversal is compiled for each request, after the variables were replaced by their values, and used once; parsed
// scripts are kept (see Graph). Child traversals (of by, where, repeat, ..) are reset and fed by their parent step.
//
// What a step needs of the graph it asks of package graph: point reads, look-ups by predicate, and writes of single
// documents.
package run

import (
	"fmt"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gremlin"
)

// Kind says what kind of failure an Error is.
type Kind uint8

// The kinds of failure.
const (
	Parse       Kind = iota + 1 // the script can't be read
	Compile                     // a step is unknown or called with wrong arguments
	Runtime                     // a step failed on the data that it met
	Unsupported                 // understood, but not done by this server
	Timeout                     // the evaluation timeout is over
	Fail                        // the step fail() was reached
	Memory                      // the traversal holds more than one request may
	ReadOnly                    // a write under ReadOnlyStrategy
)

// Error is a traversal that failed. Line and Col are 0 when the place isn't known (bytecode has none).
type Error struct {
	Kind      Kind
	Msg       string
	Line, Col int
	// FailMessage is the message of fail().
	FailMessage string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s @ line %d, column %d.", e.Msg, e.Line, e.Col)
	}
	return e.Msg
}

// ServiceText is the message in the words of the service: "Gremlin Query Compilation Error: .." before what was wrong
// with the script, "Gremlin Query Execution Error: .." before what went wrong while it ran.
func (e *Error) ServiceText() string {
	switch e.Kind {
	case Parse, Compile:
		return "Gremlin Query Compilation Error: " + e.Error()
	case Unsupported:
		return "Gremlin Query Compilation Error: " + e.Error()
	}
	return "Gremlin Query Execution Error: " + e.Error()
}

func errf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// Stats is what a request cost.
type Stats struct {
	Charge float64 // request units
	Items  int64   // documents read
	Writes int64
}

// Graph is a graph as requests see it. It is safe for concurrent use and meant to be kept: it holds the parsed scripts.
type Graph struct {
	*graph.Graph
	clock *clock.Clock
	plans *gremlin.Cache

	claims *EdgeClaims
	scope  string // of the graph's ids among the claims
	budget *budget.Budget
}

// NewGraph makes a Graph over a container. Containers of every API will do: see graph.KeyMode for what their partition
// keys mean.
func NewGraph(c *core.Container, clk *clock.Clock) *Graph { return NewGraphOn(graph.Over(c), clk) }

// NewGraphOn makes a Graph over any Store; see NewGraph for a container.
func NewGraphOn(s graph.Store, c *clock.Clock) *Graph {
	return &Graph{Graph: graph.New(s), clock: c, plans: gremlin.NewCache(1024), claims: &EdgeClaims{}}
}

// ChargeTo has the memory of the graph's evaluations charged to b; without it only the number of values that one
// keeps is bounded. Call it before the first evaluation.
func (g *Graph) ChargeTo(b *budget.Budget) { g.budget = b }
