package pebblekv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// ErrNotWhole is the error for a directory that has files but isn't a whole store. If it were opened, Pebble would
// delete its files as obsolete. It is a kv.ErrCorruption.
var ErrNotWhole = fmt.Errorf("%w: not a whole store", kv.ErrCorruption)

// A Problem is a fault of a file, or of the directory as a whole.
type Problem struct {
	File  string `json:"file,omitempty"` // name in the store's directory
	What  string `json:"what"`           // a sentence without its full stop
	Level Level  `json:"level"`
}

// Level says how serious a problem is.
type Level string

// The levels of a problem.
const (
	Note   Level = "note"   // no fault: what a crash left behind
	Damage Level = "damage" // stored data can't be read, or is missing
	Broken Level = "broken" // also the store can't be opened, because that could lose data
)

// String implements fmt.Stringer.
func (p Problem) String() string {
	if p.File == "" {
		return p.What
	}
	return p.File + ": " + p.What
}

// look is the content of a directory.
type look struct {
	parts
	fs       vfs.FS
	dir      string
	fresh    bool   // a store can be made here: there is none, or a crash interrupted the creation of one
	manifest string // name of the current one
	firstLog uint64 // everything in earlier logs is in tables
	lastSeq  uint64 // last sequence number that was assigned when the manifest named firstLog
	identity kv.Identity
	making   bool // see identityFile
	report   func(Problem)
	broken   bool

	manifestDamaged bool
	lostLogs        []Problem // of logs that are missing or incomplete
}

// inspect finds out whether a directory is a whole store. It writes nothing and reports what is wrong. It leaves to
// Pebble what Pebble checks before it writes: a table that is missing or has another size. With restoring it accepts a
// store that is being restored.
func inspect(fs vfs.FS, dir string, restoring bool, report func(Problem)) (*look, error) {
	l := &look{fs: fs, dir: dir, report: report}
	var err error
	if l.parts, err = partsOf(fs, dir); err != nil {
		return l, err
	}
	if l.restoring && !restoring {
		l.bad(restoringName, "%s", cutRestore)
		return l, nil
	}
	if err := l.readIdentity(); err != nil {
		return l, err
	}
	if l.empty() {
		if len(l.foreign) > 0 {
			l.bad("", "the directory has files that don't belong to a store, such as %s", l.foreign[0])
		}
		l.fresh = !l.broken
		return l, nil
	}
	if len(l.heirs) > 0 {
		l.bad(l.heirs[0], "a log that an older version of the server left when it was killed: start and stop that "+
			"version once, so that its writes are kept")
		return l, nil
	}
	if l.fresh, err = l.begun(); err != nil || l.fresh {
		return l, err
	}
	for _, f := range []func() error{l.marks, l.readSettings, l.readManifest, l.readLogs, l.readNote} {
		if err := f(); err != nil || l.broken {
			return l, err
		}
	}
	return l, nil
}

func (l *look) bad(file, format string, args ...any) {
	l.broken = true
	l.report(Problem{file, fmt.Sprintf(format, args...), Broken})
}

// lostLog is bad for missing writes.
func (l *look) lostLog(file, format string, args ...any) {
	l.manifestDamaged = true // or the end of the manifest is missing
	l.lostLogs = append(l.lostLogs, Problem{file, fmt.Sprintf(format, args...), Broken})
	l.bad(file, format, args...)
}

func (l *look) note(file, format string, args ...any) {
	l.report(Problem{file, fmt.Sprintf(format, args...), Note})
}

func (l *look) path(name string) string { return l.fs.PathJoin(l.dir, name) }

// marks checks the marker files, by which Pebble finds the manifest and the format.
func (l *look) marks() error {
	desc, err := pebble.Peek(l.dir, l.fs)
	if err != nil {
		l.bad("", "its markers can't be read: %v", err)
		return nil
	}
	has := func(marker string) bool {
		for _, m := range l.markers {
			if strings.HasPrefix(m, "marker."+marker+".") {
				return true
			}
		}
		return false
	}
	switch {
	case l.old && !desc.Exists:
		l.bad("CURRENT", "the store has a format that is too old, or is another program's")
	case !desc.Exists:
		l.bad("marker.manifest.*", "the file that names the current manifest is missing")
	case !has("format-version"):
		l.bad("marker.format-version.*", "the file that names the store's format is missing")
	default:
		l.manifest = l.fs.PathBase(desc.ManifestFilename)
	}
	return nil
}

// readSettings checks the newest file of settings, with which Pebble compares the present ones. It has no data and no
// checksum, so only a change of what Pebble compares is found. Pebble's error doesn't say which file it is about.
func (l *look) readSettings() error {
	if len(l.options) == 0 {
		return nil
	}
	name := l.options[len(l.options)-1].name
	ours := new(pebble.Options)
	ours.EnsureDefaults()
	text, err := files.Read(l.fs, l.path(name))
	if err == nil {
		err = ours.CheckCompatibility(l.dir, string(text))
	}
	if err != nil {
		l.bad(name, "the settings of the store can't be used (%v); they hold no data, and the store opens without "+
			"this file", err)
	}
	return nil
}

// readManifest reads the manifest to its end. Pebble stops at the first record that it can't read, and would open an
// older state of the store.
func (l *look) readManifest() error {
	records := 0
	end, err := scanFile(l.fs, l.path(l.manifest), 0, false, func(_ int64, rec []byte) error {
		if log, seq, ok := logOfEdit(rec); ok {
			l.firstLog, l.lastSeq = log, seq
		}
		records++
		return nil
	})
	switch {
	case files.IsMissing(err):
		l.manifestDamaged = true
		l.bad(l.manifest, "the manifest is missing")
		return nil
	case err != nil:
		l.manifestDamaged = true
		l.bad(l.manifest, "the manifest can't be read: %v", err)
		return nil
	case end.how == endDamaged:
		l.manifestDamaged = true
		l.bad(l.manifest, "damaged at byte %d; its later changes of tables and logs are lost", end.at)
	case records == 0:
		l.manifestDamaged = true
		l.bad(l.manifest, "the manifest is empty")
	case records == 1 && l.firstLog > 0:
		// Pebble begins a manifest with two records and syncs both before it makes the manifest the current one. In a
		// new store the first record names no log.
		l.manifestDamaged = true
		l.bad(l.manifest, "cut at byte %d; its later changes of tables and logs are lost", end.at)
	case end.how == endTorn:
		l.note(l.manifest, "ends with a record that a crash cut off, at byte %d", end.at)
	}
	return nil
}

// logOfEdit reads two fields of a record of the manifest: the first log that isn't in tables, and the last sequence
// number. ok is false if the record doesn't name the log. A record is LevelDB's version edit: fields of a tag and
// values, all uvarints. These two fields come before the tables.
func logOfEdit(rec []byte) (log, seq uint64, ok bool) {
	const comparer, logNumber, nextFile, lastSequence, prevLog, newBacking, oldBacking = 1, 2, 3, 4, 9, 105, 106
	next := func() uint64 {
		v, n := binary.Uvarint(rec)
		if n <= 0 {
			rec = nil
			return math.MaxUint64
		}
		rec = rec[n:]
		return v
	}
	for len(rec) > 0 {
		switch next() {
		case comparer:
			n := next()
			if n > uint64(len(rec)) {
				return 0, 0, false
			}
			rec = rec[n:]
		case logNumber:
			log, ok = next(), true
		case nextFile, prevLog, oldBacking:
			next()
		case newBacking:
			next()
			next()
		case lastSequence:
			return log, next(), ok
		default:
			return log, 0, ok
		}
	}
	return log, 0, ok
}

// readLogs reads the logs that aren't in tables yet. A missing log is known from the note in a later one (logNames).
// The first log is also known from the manifest, and from the sequence number of the first write that exists.
func (l *look) readLogs() error {
	var live []numbered
	for _, f := range l.logs {
		if f.num >= l.firstLog {
			live = append(live, f)
		}
	}
	if len(live) == 0 && !l.opened {
		l.note(fmt.Sprintf("%06d.log", l.firstLog), "missing: a crash came while the store was opened, when "+
			"everything was in tables")
		return nil
	}
	if len(live) == 0 {
		l.lostLog(fmt.Sprintf("%06d.log", l.firstLog), "the log is missing, and with it the last writes")
		return nil
	}
	firstMissing := live[0].num != l.firstLog && l.lastSeq > 0
	for i, f := range live {
		end, err := scanFile(l.fs, l.path(f.name), uint32(f.num), false, func(at int64, rec []byte) error {
			h, ok := batchrepr.ReadHeader(rec)
			if !ok {
				l.bad(f.name, "a record is incomplete, at byte %d", at)
				return io.EOF
			}
			if firstMissing && uint64(h.SeqNum) > l.lastSeq+1 {
				l.lostLog(f.name, "a log before it is missing: writes %d to %d", l.lastSeq+1, uint64(h.SeqNum)-1)
				return io.EOF
			}
			firstMissing = false
			before, ok := logBefore(rec)
			isIt := func(f numbered) bool { return f.num == before }
			if ok && before >= l.firstLog && !slices.ContainsFunc(live, isIt) {
				l.lostLog(fmt.Sprintf("%06d.log", before), "the log is missing, and with it the writes before those "+
					"in %s", f.name)
				return io.EOF
			}
			return nil
		})
		switch {
		case l.broken:
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			l.bad(f.name, "the log can't be read: %v", err)
		case end.how == endDamaged:
			l.bad(f.name, "the log is damaged at byte %d; writes from there on that were acknowledged would be lost",
				end.at)
		case end.how == endTorn && i < len(live)-1:
			l.bad(f.name, "the log is cut at byte %d, and there is a newer one", end.at)
		case end.how == endTorn:
			l.note(f.name, "ends with a record that a crash cut off, at byte %d; it held nothing acknowledged "+
				"if the disk kept what it had synced", end.at)
		}
		if l.broken {
			return nil
		}
	}
	return nil
}
