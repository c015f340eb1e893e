package run

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// The ids of edges. On a graph without a partition key of its own an edge's id is the only one among all edges, and a
// vertex may have the same one (decision 0016). Where the store would take the two for one item, the edge is stored
// under another id and keeps its own in _idValue.

// edgeMark ends the stored id of an edge that can't be stored under its own.
const edgeMark = "|edge"

// freeEdgeIDs reports whether edges have ids apart from vertices. With a partition key property the service's rule
// holds: an id is taken once in a logical partition, be it by a vertex or an edge.
func (g *Graph) freeEdgeIDs() bool { return g.mode == KeySystem || g.mode == KeyID }

// storedEdgeID is the id under which an edge is stored whose own id was given, and that leaves the vertex with the
// stored id out.
func (g *Graph) storedEdgeID(id string, out value.Value) string {
	switch {
	case g.mode == KeyID, g.mode == KeySystem && (id == out.Str() || strings.HasSuffix(id, edgeMark)):
		return id + edgeMark
	}
	return id
}

// edgeCandidates are the stored ids that an edge with one of these ids can have.
func (g *Graph) edgeCandidates(ids []value.Value) []value.Value {
	if !g.freeEdgeIDs() {
		return ids
	}
	return append(ids[:len(ids):len(ids)], value.StringOf(ids[0].Str()+edgeMark))
}

// hasID reports whether the element of a document shows one of ids, the first of which is text.
func hasID(d []byte, ids []value.Value) bool {
	o := value.ObjectOf(d)
	switch kept := o.Get(fIDValue); kept.Kind() {
	case value.String:
		return string(kept.Bytes()) == ids[0].Str()
	case value.Int32, value.Int64:
		return strconv.FormatInt(kept.Int(), 10) == ids[0].Str()
	}
	have := o.Get(fID)
	for _, id := range ids {
		if sameKey(have, id) {
			return true
		}
	}
	return false
}

// errTaken is the core's own answer to an id that is in use.
func errTaken() error {
	return status.New(status.Conflict, "Resource with specified id or name already exists.")
}

// createNamedEdge writes an edge whose id was given, unless another edge of the graph has it. Who writes one with the
// same id waits.
func (x *exec) createNamedEdge(id string, pk, stored value.Value, doc []byte) error {
	done, err := x.g.claims.take(x.ctx, x.g.scope+id)
	if err != nil {
		return x.cause(err)
	}
	defer done()
	it, err := x.byID(false, id)
	if err != nil {
		return err
	}
	if it != nil {
		_, taken, err := it.next(x)
		it.close()
		if err != nil {
			return err
		}
		if taken {
			return errTaken()
		}
	}
	return x.create(pk, stored, doc)
}

// EdgeClaims are the ids of edges that are being written now. Graphs over one container must share them, see
// Graph.ShareClaims. The zero value is ready. Safe for concurrent use.
type EdgeClaims struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the claim ends
}

// take waits until nobody else holds the claim. done gives it back.
func (c *EdgeClaims) take(ctx context.Context, id string) (done func(), err error) {
	for {
		c.mu.Lock()
		other, taken := c.held[id]
		if !taken {
			if c.held == nil {
				c.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			c.held[id] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.held, id)
				c.mu.Unlock()
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ShareClaims makes graphs over one container, which scope names, share their claims. Call it before the first
// evaluation.
func (g *Graph) ShareClaims(c *EdgeClaims, scope string) { g.claims, g.scope = c, scope+"/" }
