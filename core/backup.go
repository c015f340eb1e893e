package core

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// ErrNoBackups is the error of engines that can't be backed up: data in memory ends with the process.
var ErrNoBackups = errors.New("the store is in memory only, so there is nothing to back up")

// Backup copies the store into a new directory of this name below to. Requests continue meanwhile. The copy has
// everything that was acknowledged before the call, in all containers, and no part of a batch. progress gets the number
// of copied bytes; it may be nil. A *kv.Refusal says why no backup can be made.
func (e *Engine) Backup(ctx context.Context, to string, o kv.BackupOptions) (kv.Backup, error) {
	b, ok := e.kv.(kv.Backuper)
	switch {
	case !ok && e.kv.Shared():
		return kv.Backup{}, &kv.Refusal{Kind: kv.ErrUnavailable, Sentence: "The store is one that several processes " +
			"share: the tools of its cluster make its backups."}
	case !ok:
		return kv.Backup{}, ErrNoBackups
	}
	l, err := e.leases().Try(ctx, lease.Name{Kind: lease.Backup})
	if err != nil {
		return kv.Backup{}, kv.Status(err)
	}
	if l == nil {
		return kv.Backup{}, &kv.Refusal{Kind: kv.ErrUnavailable,
			Sentence: "Another process is making a backup of this store."}
	}
	defer l.Release()
	return b.Backup(l.Context(), to, o)
}

// Raise prepares a store that was restored from a backup. All numbers that are given out from now on (LSNs, item
// numbers, numbers of databases and containers) are above the numbers that were given out after the backup and are
// lost. So a reader of a change feed whose position is ahead of the store misses nothing new, and no etag or _rid is
// used twice. The result is durable when Raise returns. The engine must have no other user.
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
