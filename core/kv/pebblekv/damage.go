package pebblekv

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// damages has the files of the store in which something couldn't be read. A file stays in it until the store is
// repaired.
type damages struct {
	mu     sync.Mutex
	files  map[string]bool
	reason string
	log    *slog.Logger
}

// maxDamagedFiles bounds the number of files that are kept and logged.
const maxDamagedFiles = 1000

// listen registers for damage that the store finds in requests, scrubs and merges.
func (d *damages) listen(l *pebble.EventListener, log *slog.Logger) {
	d.log = log
	l.DataCorruption = func(i pebble.DataCorruptionInfo) { d.add(filepath.Base(i.Path), i.Details) }
}

// add records that a file is damaged, and logs it once. A log that blocks delays no other caller.
func (d *damages) add(file string, err error) {
	if d.record(file) {
		d.log.Error("A file of the store is damaged: stop the server and run orrery check", "file", file, "error", err)
	}
}

// record reports whether a file is to be logged.
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

// damage returns whether something couldn't be read since the store was opened, and what.
func (e *Engine) damage() (reason string, ok bool) {
	e.damages.mu.Lock()
	defer e.damages.mu.Unlock()
	return e.damages.reason, e.damages.reason != ""
}
