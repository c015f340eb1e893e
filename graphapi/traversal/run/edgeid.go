package run

import (
	"context"
	"sync"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// errTaken returns the core's error for an id that exists.
func errTaken() error {
	return status.New(status.Conflict, "Resource with specified id or name already exists.")
}

// createNamedEdge writes an edge with a given id, unless another edge of the graph has that id. Concurrent writers of
// the same id wait for each other.
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

// EdgeClaims are the ids of edges that are being written. Graphs on the same container must share them, see
// Graph.ShareClaims. The zero value is ready to use. Safe for concurrent use.
//
// Example: two requests add an edge with the id "e", from different vertices, so in different logical partitions. Both
// claim "e". The first looks up "e" in the whole graph, finds nothing and writes. The second waits for the claim, finds
// the edge of the first, and fails with a conflict.
type EdgeClaims struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the claim is released
}

// take waits until no other request holds the claim. done releases it.
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

// ShareClaims makes graphs on the same container share their claims. scope names the container. Call it before the
// first evaluation.
func (g *Graph) ShareClaims(c *EdgeClaims, scope string) { g.claims, g.scope = c, scope+"/" }
