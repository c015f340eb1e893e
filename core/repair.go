package core

import (
	"context"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/store"
)

// Types of a repair.
type (
	// Saved is the readable part of a damaged store.
	Saved = store.Saved
	// Gap is a part of a damaged store that couldn't be read.
	Gap = store.Gap
	// Lost describes data that a repair couldn't save.
	Lost = store.Lost
	// Restored counts what a repair has saved.
	Restored = store.Restored
)

// Restore builds a store in an empty storage engine from the readable part of a damaged one. It calls lost for
// everything that couldn't be saved. The caller still owns the engine.
func Restore(ctx context.Context, eng kv.Engine, saved Saved, lost func(Lost)) (Restored, error) {
	return store.Restore(ctx, eng, clock.New(), saved, lost)
}
