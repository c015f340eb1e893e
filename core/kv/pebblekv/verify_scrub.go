package pebblekv

import (
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

var _ kv.Scrubber = (*Engine)(nil)

// ScrubFiles implements kv.Scrubber. It reads all blocks of the tables from the disk, not from the cache. It skips a
// table that a merge replaces during the scrub.
func (e *Engine) ScrubFiles(ctx context.Context, pause func(bytes int64) error, problem func(string)) error {
	if !e.gate.enter() {
		return kv.ErrClosed
	}
	all, err := partsOf(e.dir.fs, e.dir.path)
	var tables []numbered
	if err == nil {
		tables, err = e.liveTables(all.tables)
	}
	e.gate.leave()
	if err != nil {
		return translate(err)
	}
	for _, t := range tables {
		if err := e.scrubTable(ctx, t, pause, problem); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) scrubTable(ctx context.Context, t numbered, pause func(int64) error, problem func(string)) error {
	path := e.dir.fs.PathJoin(e.dir.path, t.name)
	if _, err := e.dir.fs.Stat(path); files.IsMissing(err) && !e.live(t) {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	at := int64(0)
	verifyTable(ctx, e.dir.fs, path, func(what string) {
		if ctx.Err() != nil || !e.live(t) {
			return
		}
		e.damages.add(t.name, fmt.Errorf("%w: %s", kv.ErrCorruption, what))
		problem(oneLine(t.name + ": " + what))
	}, func(to int64) {
		if failed = pause(to - at); failed != nil {
			stop()
		}
		at = to
	})
	return failed
}

// live reports whether the store still has a table.
func (e *Engine) live(t numbered) bool {
	if !e.gate.enter() {
		return false
	}
	defer e.gate.leave()
	l, err := e.liveTables([]numbered{t})
	return err == nil && len(l) > 0
}
