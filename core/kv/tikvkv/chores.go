package tikvkv

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/kv"
)

// When the chores are done. A version is removed 12 to 22 minutes after it was replaced: it is kept for twelve, and
// garbage is collected every ten. Parts of large values only take room, and looking for them reads the keys of all
// parts.
const (
	garbageFirst = time.Minute
	garbageEvery = KeptVersions
	sweepFirst   = time.Hour
	sweepEvery   = 24 * time.Hour
)

var _ kv.Maintained = (*Engine)(nil)

// Chores implements kv.Maintained.
func (e *Engine) Chores() []kv.Chore {
	return []kv.Chore{
		{Name: "garbage collection", First: garbageFirst, Every: garbageEvery, Do: func(ctx context.Context) error {
			return e.CollectGarbage(ctx, 0)
		}},
		{Name: "removal of parts of replaced values", First: sweepFirst, Every: sweepEvery,
			Do: func(ctx context.Context) error {
				_, err := e.Sweep(ctx)
				return err
			}},
	}
}
