package pebblekv

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// damages holds the names of files in which something couldn't be read since the store was opened.
type damages struct {
	mu     sync.Mutex
	files  map[string]bool
	reason string
	log    *slog.Logger
}

// maxDamagedFiles is the maximum number of files that are remembered and logged.
const maxDamagedFiles = 1000

// listen registers for damage that Pebble finds in requests, scrubs and merges.
func (d *damages) listen(l *pebble.EventListener, log *slog.Logger) {
	d.log = log
	l.DataCorruption = func(i pebble.DataCorruptionInfo) { d.add(filepath.Base(i.Path), i.Details) }
}

// add records that a file is damaged, and logs it once. The mutex is released first, so a slow log delays no other
// caller.
func (d *damages) add(file string, err error) {
	if d.record(file) {
		d.log.Error("A file of the store is damaged: stop the server and run orrery check", "file", file, "error", err)
	}
}

// record adds a file and reports whether it has to be logged.
func (d *damages) record(file string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[file] || len(d.files) >= maxDamagedFiles {
		return false
	}
	if d.files == nil {
		d.files = map[string]bool{}
	}
	d.files[file] = true
	if d.reason == "" {
		d.reason = fmt.Sprintf("the file %s of the store is damaged", file)
	}
	return true
}

// damage reports whether something couldn't be read since the store was opened, and what.
func (e *Engine) damage() (reason string, ok bool) {
	e.damages.mu.Lock()
	defer e.damages.mu.Unlock()
	return e.damages.reason, e.damages.reason != ""
}
