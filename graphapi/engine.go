package graphapi

import (
	"context"
	"errors"
	"sync"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Graphs returns the graphs of an engine.
func Graphs(e *core.Engine) Opener {
	return &engineGraphs{core: e, known: map[GraphName]*engineGraph{}}
}

// engineGraphs opens containers as graphs, and keeps them with their parsed scripts.
type engineGraphs struct {
	core *core.Engine

	mu     sync.RWMutex
	known  map[GraphName]*engineGraph
	claims run.EdgeClaims
}

// maxKnownGraphs limits the graphs that are kept. When it is exceeded, all are dropped.
const maxKnownGraphs = 1000

var _ Opener = (*engineGraphs)(nil)

// OpenGraph implements Opener.
func (e *engineGraphs) OpenGraph(ctx context.Context, n GraphName, create bool) (Graph, error) {
	c, err := e.core.Within(ctx).Container(n.Database, n.Graph)
	if status.Is(err, status.NotFound) && create {
		c, err = e.create(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	g := e.known[n]
	e.mu.RUnlock()
	if g != nil && g.rid == c.RID() { // not dropped and created again
		return g, nil
	}
	g = &engineGraph{rid: c.RID(), graph: run.NewGraph(c, e.core.Clock())}
	rid := c.RID()
	g.graph.ChargeTo(e.core.Budget())
	g.graph.SpillTo(e.core.Spill())
	g.graph.ShareClaims(&e.claims, string(rid[:]))
	g.graph.ClaimIn(e.core)
	e.mu.Lock()
	defer e.mu.Unlock()
	if have := e.known[n]; have != nil && have.rid == g.rid { // another request opened it meanwhile
		return have, nil
	}
	if len(e.known) >= maxKnownGraphs {
		clear(e.known)
	}
	e.known[n] = g
	return g, nil
}

// create makes a plain graph: each vertex is a logical partition with its outgoing edges.
func (e *engineGraphs) create(ctx context.Context, n GraphName) (*core.Container, error) {
	if _, err := e.core.EnsureDatabase(ctx, n.Database); err != nil {
		return nil, err
	}
	c, err := e.core.CreateContainer(ctx, n.Database, core.ContainerSpec{ID: n.Graph, Origin: "gremlin",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/_partitionKey"}, SystemKey: true}})
	if status.Is(err, status.Conflict) {
		return e.core.Within(ctx).Container(n.Database, n.Graph)
	}
	return c, err
}

// engineGraph runs evaluations with package run.
type engineGraph struct {
	rid   [8]byte
	graph *run.Graph
}

// Evaluate implements Graph.
func (g *engineGraph) Evaluate(ctx context.Context, r *message.Request, emit func(v any, bulk int64) error) (
	run.Stats, error) {
	return run.Run(ctx, g.graph, r, emit)
}

// stepKinds maps the engine's kinds of failure to ours.
var stepKinds = map[run.Kind]kind{
	run.Parse: kindCompile, run.Compile: kindCompile, run.Runtime: kindRuntime, run.Unsupported: kindUnsupported,
	run.Timeout: kindTimeout, run.Fail: kindFail, run.Memory: kindMemory, run.ReadOnly: kindRuntime,
}

// engineFailure returns the failure for an error of the engine, nil for other errors.
func engineFailure(err error) *failure {
	var e *run.Error
	if !errors.As(err, &e) {
		return nil
	}
	return &failure{kind: stepKinds[e.Kind], msg: e.Error(), serviceMsg: e.ServiceText(), failMsg: e.FailMessage}
}
