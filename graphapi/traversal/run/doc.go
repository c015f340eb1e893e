// Package run executes traversals. It compiles instructions (from a script or bytecode) to steps, and pulls traversers
// through them.
//
// A step is an iterator over traversers. To compute its next output it asks the previous step for its next input. So a
// limit stops the work of the steps before it. Memory is only used by steps that must keep their input (order, group,
// dedup, repeat, ..). They count what they keep against one limit for the request.
//
// A traversal is compiled for each request, after variables were replaced by their values, and used once. Parsed
// scripts are cached (see Graph). The parent step of a nested traversal (in by, where, repeat, ..) resets it and gives
// it its input.
//
// Steps access the graph through package graph: point reads, look-ups by predicate, and writes of single documents.
//
// Example: g.V().hasLabel('a').out().limit(2). V() with its filter is one look-up. limit asks out for a traverser, out
// asks V for a vertex and opens a look-up of its edges. After two results limit returns nil without asking again, so no
// further vertex is read.
package run

import (
	"fmt"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gremlin"
)

// Kind is the kind of failure of an Error.
type Kind uint8

// The kinds of failure.
const (
	Parse       Kind = iota + 1 // the script is malformed
	Compile                     // a step is unknown or has wrong arguments
	Runtime                     // a step failed on its input
	Unsupported                 // valid, but not supported by this server
	Timeout                     // the evaluation timeout has passed
	Fail                        // the step fail() was reached
	Memory                      // the traversal needs more memory than a request may use
	ReadOnly                    // a traversal that one of its strategies refuses
)

// Error is the failure of a traversal. Line and Col are 0 if the position is unknown (always for bytecode).
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

// ServiceText returns the message in the form of the service: "Gremlin Query Compilation Error: .." for faults in the
// script, "Gremlin Query Execution Error: .." for faults during its execution.
func (e *Error) ServiceText() string {
	switch e.Kind {
	case Parse, Compile:
		return "Gremlin Query Compilation Error: " + e.Error()
	case Unsupported:
		return "Gremlin Query Compilation Error: " + e.Error()
	}
	return "Gremlin Query Execution Error: " + e.Error()
}

//go:noinline // called from many places, see decision 41
func errf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// Stats is the cost of a request.
type Stats struct {
	Charge float64 // request units
	Items  int64   // documents read
	Writes int64
}

// Graph evaluates requests on a graph. It is safe for concurrent use and should be kept, because it caches parsed
// scripts.
type Graph struct {
	*graph.Graph
	clock *clock.Clock
	plans *gremlin.Cache

	claims *EdgeClaims
	scope  string       // name of the graph's edge ids among the claims
	across *core.Engine // keeps the claims of several processes; nil: there is one process
	budget *budget.Budget
	space  *spill.Space // for steps whose memory is used up; nil: such steps are refused
	early  bool         // for tests: steps write all that they keep to files
}

// NewGraph makes a Graph for a container of any API. graph.KeyMode describes the partition keys.
func NewGraph(c *core.Container, clk *clock.Clock) *Graph { return NewGraphOn(graph.Over(c), clk) }

// NewGraphOn makes a Graph for any Store. NewGraph makes one for a container.
func NewGraphOn(s graph.Store, c *clock.Clock) *Graph {
	return &Graph{Graph: graph.New(s), clock: c, plans: gremlin.NewCache(1024), claims: &EdgeClaims{}}
}

// ChargeTo makes the graph's evaluations count their memory in b. Without it only the number of kept values is limited.
// Call it before the first evaluation.
func (g *Graph) ChargeTo(b *budget.Budget) { g.budget = b }

// SpillTo makes steps that collect go on in temporary files when their memory is used up. A nil Space has none. Call it
// before the first evaluation.
func (g *Graph) SpillTo(s *spill.Space) { g.space = s }
