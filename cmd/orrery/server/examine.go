package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
)

// openError returns a sentence that says why the store of a data directory can't be opened.
func openError(data string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebblekv.ErrLocked):
		return fmt.Errorf("the data directory %s is in use by another server: stop it, or give another --data", data)
	case errors.Is(err, pebblekv.ErrNoStore):
		return fmt.Errorf("%s holds no store", data)
	case errors.Is(err, kv.ErrCorruption):
		return fmt.Errorf("the data directory %s is damaged, nothing in it was changed: orrery check %s says more, "+
			"orrery repair %s --to NEWDIR saves what can be read: %w", data, data, data, err)
	}
	return fmt.Errorf("the data directory %s can't be opened: %w", data, err)
}

// readOnly are the options for a store that must not be changed.
func readOnly() pebblekv.Options {
	return pebblekv.Options{ReadOnly: true, CacheMB: 16, Scanned: core.OnlyScanned}
}

// OpenForReading opens the store in a data directory without serving it, and without changing anything. It is an error
// if there is no store.
func OpenForReading(ctx context.Context, data string) (*core.Engine, error) {
	dir, err := storeIn(data)
	if err != nil {
		return nil, err
	}
	e, err := pebblekv.Open(dir, readOnly())
	if err != nil {
		return nil, openError(data, err)
	}
	eng, err := openCore(ctx, e, nil)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return eng, nil
}

// Examine reads all files of the store in a data directory, reports problems to w, and opens the store like
// OpenForReading. The engine is nil if the store is too damaged to open, which is also reported to w.
func Examine(ctx context.Context, data string, w pebblekv.Watch) (*core.Engine, error) {
	dir, err := storeIn(data)
	if err != nil {
		return nil, err
	}
	if isBackup(data) {
		if err := verifyBackup(ctx, data, w); err != nil {
			return nil, err
		}
	}
	e, err := pebblekv.Examine(ctx, dir, readOnly(), w)
	if err != nil || e == nil {
		return nil, openError(data, err)
	}
	eng, err := openCore(ctx, e, nil)
	if err != nil {
		w.Report(pebblekv.Problem{What: fmt.Sprintf("the catalog can't be read: %v", err), Level: pebblekv.Broken})
		return nil, e.Close()
	}
	return eng, nil
}

// verifyBackup checks that the files of a backup are unchanged since it was made.
func verifyBackup(ctx context.Context, dir string, w pebblekv.Watch) error {
	m, err := backup.ReadManifest(backup.OS, dir)
	if err != nil {
		w.Report(pebblekv.Problem{File: backup.ManifestName, What: err.Error(), Level: pebblekv.Damage})
		return nil
	}
	return backup.Verify(ctx, backup.Work{FS: backup.OS, Progress: w.Progress}, dir, m, func(file, what string) {
		w.Report(pebblekv.Problem{File: file, What: what, Level: pebblekv.Damage})
	})
}
