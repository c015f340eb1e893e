// Package run runs traversals: it compiles instructions (from a script or from bytecode) to steps, and pulls traversers
// through them.
//
// A step is an iterator over traversers; it asks the step before it for its next input when it is asked for its own next
// output. So a limit stops the work before it, and memory is bounded by the steps that must keep what they saw (order,
// group, dedup, repeat, ..), which count what they hold against one limit per request.
//
// A traversal is compiled for each request, after the variables were replaced by their values, and used once; parsed
// scripts are kept (see Graph). Child traversals (of by, where, repeat, ..) are reset and fed by their parent step.
//
// What a step needs of the graph it asks of a Store: point reads, look-ups by predicate, and writes of single documents.
package run

import (
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
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

// ServiceText is the message in the words of the service: "Gremlin Query Compilation Error: .." before what was wrong with
// the script, "Gremlin Query Execution Error: .." before what went wrong while it ran.
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

// KeyMode says how the graph's documents are partitioned.
type KeyMode uint8

const (
	// KeySystem is a plain graph: the hidden field _partitionKey holds the vertex's id, or the edge's out-vertex's.
	KeySystem KeyMode = iota
	// KeyProperty is a graph whose partition key is a property.
	KeyProperty
	// KeyID is a container partitioned by the id itself (a MongoDB collection that isn't sharded).
	KeyID
	// KeyOther is a container whose key is no single property. Its vertices can be read, changed and dropped, but not added
	// here; a key is an array of the values of its paths.
	KeyOther
)

// Store is what a graph is kept in. Documents are BSON in the stored form (see element.go). All methods may be called by
// several requests at a time.
type Store interface {
	// Key returns how documents are partitioned; name is the property with KeyProperty.
	Key() (mode KeyMode, name string)
	// Get reads one document; it returns nil when there is none. The bytes are the caller's to read for ever.
	Get(ctx context.Context, pk, id value.Value) (Doc, error)
	// Find looks documents up.
	Find(ctx context.Context, f Find) (Rows, error)
	// Create writes a new document; a taken id is status.Conflict.
	Create(ctx context.Context, pk, id value.Value, doc []byte) (float64, error)
	// Update reads a document and writes what f makes of it, or removes it when f returns drop; f may be called again on a
	// race. found is false when there is no document (f isn't called then). f returning nil and no drop leaves it as it is.
	Update(ctx context.Context, pk, id value.Value, f func(old []byte) (doc []byte, drop bool, err error)) (found bool, charge float64, err error)
}

// Doc is a document with the charge of reading it.
type Doc struct {
	Bytes  []byte // nil: not found
	Charge float64
}

// Find is a look-up.
type Find struct {
	PK   value.Value  // Undefined: all partitions
	Pred *access.Pred // a superset; nil: all
	// Match is the exact filter; nil: all. The document is valid during the call.
	Match func(doc []byte) (bool, error)
	// Limit is how many documents are taken at most; more may be given. 0: all.
	Limit int
	// Shown: the elements are given to the client, so they come in the order in which they were made.
	Shown bool
}

// Rows are the documents found. Doc is valid until Next.
type Rows interface {
	Next() bool
	Doc() []byte
	// Made is the place of the present document in the order in which documents were made.
	Made() uint64
	Err() error
	Close() (charge float64)
}

// Graph is a graph as requests see it. It is safe for concurrent use and meant to be kept: it holds the parsed scripts.
type Graph struct {
	store Store
	clock *clock.Clock
	plans *gremlin.Cache
	mode  KeyMode
	pk    string     // name of the partition key property with KeyProperty
	pkSto string     // its stored name
	paths [][]string // of the partition key, with KeyOther

	claims *EdgeClaims
	scope  string // of the graph's ids among the claims
	budget *budget.Budget
}

// NewGraphOn makes a Graph over any Store; see NewGraph for a container.
func NewGraphOn(s Store, c *clock.Clock) *Graph {
	g := &Graph{store: s, clock: c, plans: gremlin.NewCache(1024), claims: &EdgeClaims{}}
	g.mode, g.pk = s.Key()
	g.pkSto = storedKey(g.pk)
	if p, ok := s.(interface{ KeyPaths() [][]string }); ok {
		g.paths = p.KeyPaths()
	}
	return g
}

// ChargeTo has the memory of the graph's evaluations charged to b; without it only the number of values that one keeps is
// bounded. Call it before the first evaluation.
func (g *Graph) ChargeTo(b *budget.Budget) { g.budget = b }
