package core

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// ErrNoBackups is the error of engines that can't be backed up: what is in memory ends with the process.
var ErrNoBackups = errors.New("the store is in memory only: there is nothing that a backup could be made of")

// Backup copies the store into a new directory of this name below to, while everything goes on: all that was
// acknowledged before the call, over all containers, and nothing in part. progress is told of the bytes that are done;
// it may be nil. A *kv.Refusal says why there is no backup.
func (e *Engine) Backup(ctx context.Context, to string, o kv.BackupOptions) (kv.Backup, error) {
	b, ok := e.kv.(kv.Backuper)
	if !ok {
		return kv.Backup{}, ErrNoBackups
	}
	return b.Backup(ctx, to, o)
}

// Raise prepares a store that was restored from a backup: what is given out from now on (LSNs, item numbers, numbers of
// databases and containers) is above everything that was given out after the backup was made, and lost. So a reader of
// a change feed that is ahead of the store misses nothing new, and no etag or _rid comes a second time. It is durable
// when Raise returns. Nobody else may use the engine.
func Raise(ctx context.Context, eng kv.Engine) error {
	var b kv.Batch
	gens, err := catalog.Raise(ctx, eng, &b)
	if err != nil {
		return err
	}
	if err := store.Raise(ctx, eng, gens, &b); err != nil {
		return err
	}
	w, err := eng.Write(ctx, &b, nil)
	if err == nil {
		err = w.Wait()
	}
	if err != nil {
		return status.Wrap(status.Unavailable, err, "The restored store can't be written to.")
	}
	return nil
}
