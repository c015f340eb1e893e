package core

import (
	"context"
	"time"
)

// looks is how often a look at the catalog's version is repeated before its error is returned.
const looks = 3

// Shared reports whether other processes may write to the store.
func (e *Engine) Shared() bool { return e.kv.Shared() }

// lookTime is the longest time in which a name is looked up.
const lookTime = 5 * time.Second

// fresh brings the catalog in memory up to the stored one. If no other process can change it, it reads nothing. It
// takes no ctx: callers that look up a name have none. So it ends after lookTime.
func (e *Engine) fresh() (err error) {
	if !e.kv.Shared() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	for range looks {
		if _, err = e.cat.Refresh(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// fresh brings the counts, LSNs and slot map in memory up to the stored ones. After an error they may be old, and must
// not be answered. If no other process can change them, it reads nothing.
func (c *Container) fresh(ctx context.Context) (err error) {
	for range looks {
		if err = c.rt.Refresh(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}
