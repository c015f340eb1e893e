package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// msgTaken is the text of the core's error for an id that exists. A value that must be unique has another.
const msgTaken = "Resource with specified id or name already exists."

// errTaken returns the core's error for an id that exists.
func errTaken() error {
	return status.New(status.Conflict, msgTaken)
}

// Exists is in the text of an error for an id that exists.
const Exists = " with id already exists: "

// taken names the element in the error for an id that exists, in the words of TinkerGraph: clients search for them.
func taken(err error, what string, d *draft) error {
	var s *status.Error
	if !errors.As(err, &s) || s.Code != status.Conflict || s.Msg != msgTaken {
		return err
	}
	id, _ := idText(d.id)
	return status.New(status.Conflict, "%s%s%s", what, Exists, id)
}

// createNamedEdge writes an edge with a given id, unless another edge of the graph has that id. Concurrent writers of
// the same id wait for each other.
func (x *exec) createNamedEdge(id string, pk, stored value.Value, doc []byte) error {
	done, err := x.g.claims.take(x.ctx, x.g.scope+id)
	if err != nil {
		return x.cause(err)
	}
	defer done()
	if x.g.across != nil {
		return x.createClaimed(id, pk, stored, doc)
	}
	if err := x.unused(id); err != nil {
		return err
	}
	return x.create(pk, stored, doc)
}

// unused returns an error if an edge of the graph has an id.
func (x *exec) unused(id string) error {
	it, err := x.byID(false, id)
	if it == nil || err != nil {
		return err
	}
	_, taken, err := it.next(x)
	it.close()
	if err == nil && taken {
		err = errTaken()
	}
	return err
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

// If several processes share the store, a claim is a record in it as well. The commit that writes the edge removes the
// record, under the precondition that it is still the same. So a process whose claim has expired, and was taken by
// another one, can't write.
//
// Example: processes A and B add an edge "e". A has stored its claim and finds no edge "e". B finds A's claim and
// waits. A writes the edge and removes the claim in one commit. B stores its claim, finds the edge, and fails with a
// conflict.

const (
	// claimIdle is the time after which the claim of a process that has ended is removed.
	claimIdle = 30 * time.Second
	// claimLook is the time between two looks at another process's claim.
	claimLook = 5 * time.Millisecond
)

// ClaimIn makes the graph store its claims if other processes write to the engine's store too. Call it before the first
// evaluation.
func (g *Graph) ClaimIn(e *core.Engine) {
	if e.Shared() {
		g.across = e
	}
}

// createClaimed writes an edge with a given id under a stored claim.
func (x *exec) createClaimed(id string, pk, stored value.Value, doc []byte) error {
	sum := sha256.Sum256([]byte(x.g.scope + id))
	name := core.RecordName{Kind: core.EdgeRecord, Name: string(sum[:])}
	claim, err := x.claim(name)
	if err != nil {
		return x.cause(err)
	}
	err = x.unused(id)
	if err == nil {
		err = x.createWith(pk, stored, doc, &core.Attached{Name: name, Check: func(is core.Record) error {
			if !is.Same(&claim) {
				return status.New(status.RetryWith, "The id of the edge was given to another one at the same time.")
			}
			return nil
		}, Next: func() []byte { return nil }})
	}
	if err != nil { // the claim of an edge that was written is gone already
		_, _ = x.g.across.DropRecord(context.WithoutCancel(x.ctx), name, claim)
	}
	return err
}

// claim stores a claim. It waits while another process has one.
func (x *exec) claim(name core.RecordName) (core.Record, error) {
	for {
		claim, ok, err := x.g.across.WriteRecord(x.ctx, name, core.Record{}, nil, claimIdle)
		if ok || err != nil {
			return claim, err
		}
		t := time.NewTimer(claimLook)
		select {
		case <-t.C:
		case <-x.ctx.Done():
		}
		t.Stop()
		if err := x.ctx.Err(); err != nil {
			return claim, err
		}
	}
}
