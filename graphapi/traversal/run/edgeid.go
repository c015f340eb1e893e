package run

import (
	"context"
	"sync"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

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
