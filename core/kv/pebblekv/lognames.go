package pebblekv

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// logNames notes in each log which log came before it, so that a log that is missing between two others is known. File
// numbers don't tell, because tables have them too. Nor do the sequence numbers of the writes: a table that is ingested
// takes one that no log has, and a log may end just before it.
//
//	000025.log  writes 1 to 900
//	            an ingested table takes 901
//	000028.log  write 902, "after log 25", writes 903 to 1,200
//
// The note follows the first write to a log. It is a record with data for the log alone (pebble.DB.LogData). A log
// without it, of an older version or cut by a crash, tells nothing about the log before it.
type logNames struct {
	newest atomic.Uint64 // file number; 0 before the first
	before atomic.Uint64 // the one before newest, while no log says so
}

// logNote begins the data of the record. The number follows.
const logNote = "after log "

// listen notes each log that Pebble makes. Pebble makes them one after the other.
func (l *logNames) listen(el *pebble.EventListener) {
	others := el.WALCreated
	el.WALCreated = func(i pebble.WALCreateInfo) {
		if i.Err == nil {
			l.before.Store(l.newest.Swap(uint64(i.FileNum)))
		}
		others(i)
	}
}

// wrote is called after each write. A note that can't be written needs no error of its own: the log then takes no later
// write either.
func (l *logNames) wrote(db *pebble.DB) {
	if l.before.Load() == 0 {
		return
	}
	if n := l.before.Swap(0); n != 0 {
		_ = db.LogData(strconv.AppendUint([]byte(logNote), n, 10), pebble.NoSync)
	}
}

// logBefore returns the number in a note of logNames, and false for any other record of a log.
func logBefore(rec []byte) (num uint64, ok bool) {
	if h, ok := batchrepr.ReadHeader(rec); !ok || h.Count > 0 {
		return 0, false
	}
	r := batchrepr.Read(rec)
	kind, data, _, ok, err := r.Next()
	if !ok || err != nil || kind != pebble.InternalKeyKindLogData {
		return 0, false
	}
	digits, ok := strings.CutPrefix(string(data), logNote)
	num, err = strconv.ParseUint(digits, 10, 64)
	return num, ok && err == nil
}
