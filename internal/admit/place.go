package admit

import (
	"context"
	"sync/atomic"
)

// Place is what one request holds that a gate has let in. It is a yield.Place: while the request waits for the disk
// another one runs. The zero value is no place. Leave and Return may be called by several goroutines of the request;
// the place is away while the first of them that left hasn't come back.
type Place struct {
	gate *Gate
	held atomic.Bool
}

// Enter has a gate let the request in. Who was let in calls Leave at its end.
func (p *Place) Enter(ctx context.Context, g *Gate) error {
	if err := g.Enter(ctx); err != nil {
		return err
	}
	p.gate = g
	p.held.Store(true)
	return nil
}

// Leave makes room for another request. It is false when the place isn't held.
func (p *Place) Leave() bool {
	if !p.held.CompareAndSwap(true, false) {
		return false
	}
	p.gate.Leave()
	return true
}

// Return takes the place again that Leave gave back, whether or not there is room: the request is under way.
func (p *Place) Return() {
	p.gate.Return()
	p.held.Store(true)
}
