package core

import (
	"context"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/store"
)

// The words of a repair.
type (
	// Saved is what can be read of a damaged store.
	Saved = store.Saved
	// Gap is a part of a damaged store that couldn't be read.
	Gap = store.Gap
	// Lost is what a repair couldn't save.
	Lost = store.Lost
	// Restored counts what a repair has saved.
	Restored = store.Restored
)

// Restore makes a store in an empty storage engine of what is saved of a damaged one, and tells lost of what couldn't
// be saved. The engine stays the caller's.
func Restore(ctx context.Context, eng kv.Engine, saved Saved, lost func(Lost)) (Restored, error) {
	return store.Restore(ctx, eng, clock.New(), saved, lost)
}
