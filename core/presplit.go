package core

import (
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// presplit tells an engine on several machines where the slots of a new container begin, so that its first writes go to
// several of them. A container with one slot gets no range of its own: there may be many of those, and small ones.
//
// If it fails, the engine divides ranges when they have grown. So the error is of no interest.
func (e *Engine) presplit(ctx context.Context, def *catalog.Container) {
	p, ok := e.kv.(kv.Presplitter)
	if !ok || len(def.Slots) < 2 {
		return
	}
	begins := make([][]byte, 0, len(def.Slots))
	for s := range def.SlotKeys() {
		lo, _ := keys.SlotBounds(s)
		begins = append(begins, lo)
	}
	_ = p.Presplit(ctx, begins)
}
