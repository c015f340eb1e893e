package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core/kv"
)

// tablesName is a directory in the store's directory. It holds tables that are being written and not ingested. An open
// removes it.
const tablesName = "tables.tmp"

var _ kv.Ingester = (*Engine)(nil)

// newTables implements kv.Tables: at most one table file, which is written as keys are added. Pebble links it into the
// store.
//
// Example: 64 MB of keys are added. They are compressed and written as they come, to tables.tmp/7. Ingest syncs the
// file, and has Pebble link it as 000123.sst and name it in the manifest. A crash before that leaves tables.tmp/7,
// which the next open removes. A crash after it leaves a store with all of the keys.
type newTables struct {
	e     *Engine
	ctx   context.Context
	path  string          // of the file; "": there is none
	w     *sstable.Writer // nil: the file is complete, or there is none
	size  int
	paced int // bytes since the last look at the store's backlog
}

// Tables implements kv.Ingester.
func (e *Engine) Tables(ctx context.Context) kv.Tables { return &newTables{e: e, ctx: ctx} }

// Size implements kv.Tables.
func (t *newTables) Size() int { return t.size }

// Add implements kv.Tables.
func (t *newTables) Add(key, value []byte) error {
	e := t.e
	if err := t.enter(); err != nil {
		return err
	}
	defer e.gate.leave()
	if t.w == nil {
		if err := t.begin(); err != nil {
			return tableError(err)
		}
	}
	n := len(key) + len(value)
	if t.paced += n; t.paced >= tablesPace {
		t.paced = 0
		e.pace.admit(tablesPace, true)
	}
	t.size += n
	return tableError(t.w.Set(key, value))
}

// enter begins a call. If it returns nil, the caller has to leave the gate.
func (t *newTables) enter() error {
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if !t.e.gate.enter() {
		return kv.ErrClosed
	}
	err := t.e.disk.admit(false)
	if err != nil {
		t.e.gate.leave()
	}
	return err
}

// tablesPace is the number of bytes between two looks at the store's backlog: about a batch of background work.
const tablesPace = 256 << 10

// tableError is translate for errors of a table that is being written: nothing is applied.
func tableError(err error) error {
	switch {
	case err == nil:
		return nil
	case vfs.IsNoSpaceError(err):
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// begin begins a file.
func (t *newTables) begin() error {
	e := t.e
	dir := e.fs.PathJoin(e.dir.path, tablesName)
	if err := e.fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := e.fs.PathJoin(dir, strconv.FormatUint(e.tables.Add(1), 10))
	f, err := e.fs.Create(path, tablesCategory)
	if err != nil {
		return err
	}
	// The file is written to the disk as it grows: else the sync at its end would hold up those of the log.
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: e.options.BytesPerSync})
	t.path, t.size = path, 0
	t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f),
		e.options.MakeWriterOptions(len(e.options.Levels)-1, e.db.TableFormat()))
	return nil
}

// end completes the file and makes it durable.
func (t *newTables) end() error {
	w := t.w
	t.w = nil
	if w == nil {
		return nil
	}
	return w.Close()
}

// Ingest implements kv.Tables. Commits that change what it checks wait for it.
func (t *newTables) Ingest(pre []kv.Precondition) error {
	if t.path == "" {
		return nil
	}
	e := t.e
	if err := t.enter(); err != nil {
		return err
	}
	defer e.gate.leave()
	if err := t.end(); err != nil {
		return tableError(err)
	}
	f := footprints.Get().(*footprint)
	defer f.free()
	f.begin(0)
	for i := range pre {
		f.pre = append(f.pre, xxhash.Sum64(pre[i].Key))
	}
	e.writing.enter(f)
	defer e.writing.leave(f)
	if err := e.check(pre); err != nil {
		return err
	}
	if err := t.ingest(); err != nil {
		return err
	}
	t.path, t.size = "", 0
	return nil
}

// ingest makes everything written before durable, also in a relaxed store. Then it has Pebble take the file over, which
// removes it here.
//
// Example: a commit has noted that the keys are to be removed if their writer ends early. After a crash the keys aren't
// there without the note.
func (t *newTables) ingest() error {
	defer t.e.disk.fail.recovered()
	if err := t.e.syncLog(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	err := t.e.db.Ingest(context.Background(), []string{t.path})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrClosed):
		return kv.ErrClosed
	}
	return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
}

// Close implements kv.Tables.
func (t *newTables) Close() {
	_ = t.end()
	if t.path != "" {
		_ = t.e.fs.Remove(t.path)
		t.path = ""
	}
}
