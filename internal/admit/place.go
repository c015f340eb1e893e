package admit

import (
	"context"
	"sync/atomic"
)

// Place is the place of one request in a gate. It is a yield.Place: while the request waits for the disk, another
// request runs. The zero value holds no place. Several goroutines of the request may call Leave and Return; the place
// is given up from the first Leave until that goroutine's Return.
type Place struct {
	gate *Gate
	held atomic.Bool
}

// Enter has the gate admit the request. An admitted request must call Leave at its end.
func (p *Place) Enter(ctx context.Context, g *Gate) error {
	if err := g.Enter(ctx); err != nil {
		return err
	}
	p.gate = g
	p.held.Store(true)
	return nil
}

// Leave gives up the place. It returns false if the place isn't held.
func (p *Place) Leave() bool {
	if !p.held.CompareAndSwap(true, false) {
		return false
	}
	p.gate.Leave()
	return true
}

// Return takes the place back after Leave, whether or not one is free, because the request has begun.
func (p *Place) Return() {
	p.gate.Return()
	p.held.Store(true)
}
