package pebblekv

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// Loss is a part of a store that can't be read.
type Loss struct {
	Problem
	Lo, Hi []byte // the lost keys are from Lo on and before Hi; both nil: any keys
}

// Salvage is the readable part of a store with any kind of damage. The store isn't changed.
//
// OpenSalvage reads every table once, to find its readable parts. Each reads the parts again, in the order of their
// first keys. A part is open from its first key to its last. So at any key few tables are open: one in each level and
// run.
//
// Example: table A has the keys a to m, table B has c to z. B is opened before Each visits the first key from c on. Key
// d is in A with sequence number 5 and in B with 9: Each visits B's value and skips A's. If the block of B with d can't
// be read, Each visits A's value.
type Salvage struct {
	ctx   context.Context
	fs    vfs.FS
	dir   string
	lock  io.Closer
	watch Watch
	lost  []Loss
	parts []tablePart
	log   memory // the writes in the logs
	drops []span // deleted ranges
}

// OpenSalvage finds the readable parts of the store in dir. Losses are reported to w, and Lost returns them.
func OpenSalvage(ctx context.Context, dir string, o Options, w Watch) (*Salvage, error) {
	o = o.withDefaults()
	s := &Salvage{ctx: ctx, fs: readOnlyFS{o.FS}, dir: dir, watch: w}
	if _, err := s.fs.Stat(dir); files.IsMissing(err) {
		return nil, ErrNoStore
	}
	lock, err := pebble.LockDirectory(dir, s.fs)
	if err != nil {
		return nil, lockError(dir, err)
	}
	s.lock = lock
	if err := s.open(o); err != nil {
		return nil, errors.Join(claiming(err), s.Close())
	}
	return s, nil
}

// Lost returns the losses that were found so far.
func (s *Salvage) Lost() []Loss { return s.lost }

// Each calls visit once for every key, in order, with its newest readable value. It skips keys with a readable
// deletion. If the newest value of a key is lost, it visits an older one. The slices are valid until visit returns. An
// error of visit ends the walk. Each may be called once.
func (s *Salvage) Each(visit func(key, val []byte) error) (err error) {
	m := newMerger(s)
	defer func() { err = errors.Join(err, m.close()) }()
	return m.each(visit)
}

// lose records a loss.
func (s *Salvage) lose(file, what string, lo, hi []byte) {
	l := Loss{Problem{file, oneLine(what), Damage}, lo, hi}
	s.lost = append(s.lost, l)
	s.watch.report(l.Problem)
}

// open finds the files of the directory that count, and reads the tables and logs.
func (s *Salvage) open(o Options) error {
	l := &look{fs: s.fs, dir: s.dir, report: func(Problem) {}}
	var err error
	if l.parts, err = partsOf(s.fs, s.dir); err != nil {
		return err
	}
	if l.restoring {
		return fmt.Errorf("%w: %s: %s", ErrNotWhole, restoringName, cutRestore)
	}
	if err := l.readIdentity(); err != nil && errors.Is(err, ErrNewer) {
		return err
	}
	if l.empty() {
		return ErrNoStore
	}
	if err := l.marks(); err != nil {
		return err
	}
	if k := len(l.manifests); l.manifest == "" && k > 0 {
		l.manifest = l.manifests[k-1].name
	}
	if l.manifest != "" {
		if err := l.readManifest(); err != nil {
			return err
		}
	}
	if err := errors.Join(l.readLogs(), l.readNote()); err != nil {
		return err
	}
	tables, named := make([]liveTable, 0, len(l.tables)), false
	if live, err := namedTables(s.fs, s.dir, l, o); err == nil {
		named = true
		have := map[uint64]bool{}
		for _, t := range l.tables {
			have[t.num] = true
		}
		for _, t := range live {
			if have[t.num] {
				tables = append(tables, t)
			} else {
				s.lose(t.name, "the table is missing", t.lo, bytes.Clone(append(t.hi, 0)))
			}
		}
	}
	if l.manifest == "" || !named || l.manifestDamaged {
		tables = tables[:0]
		for _, t := range l.tables {
			tables = append(tables, liveTable{numbered: t})
		}
		s.lose(cmp.Or(l.manifest, "MANIFEST"),
			"the manifest can't be read completely: all existing tables are read", nil, nil)
	}
	for i, t := range tables {
		if err := s.table(t); err != nil {
			return err
		}
		if s.watch.Progress != nil {
			s.watch.Progress(int64(i+1), int64(len(tables)))
		}
	}
	return s.logs(l)
}

// liveTable is a table that the manifest names.
type liveTable struct {
	numbered
	lo, hi []byte
}

// namedTables asks Pebble which tables the manifest names. Pebble sees the directory without logs, and with the markers
// that are missing.
func namedTables(fs vfs.FS, dir string, l *look, o Options) (out []liveTable, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", kv.ErrCorruption, r)
		}
	}()
	if len(l.manifests) == 0 {
		return nil, ErrNotWhole
	}
	shown := shownFS{FS: fs}
	if !slices.ContainsFunc(l.markers, func(m string) bool { return strings.HasPrefix(m, "marker.manifest.") }) {
		shown.more = append(shown.more, "marker.manifest.000001."+l.manifests[len(l.manifests)-1].name)
	}
	if !slices.ContainsFunc(l.markers, func(m string) bool { return strings.HasPrefix(m, "marker.format-version.") }) {
		shown.more = append(shown.more, fmt.Sprintf("marker.format-version.000001.%03d", uint64(pebble.FormatNewest)))
	}
	po := &pebble.Options{FS: shown, ReadOnly: true, DisableConsistencyCheck: true, Logger: silent{}}
	db, err := pebble.Open(dir, po)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	seen := map[uint64]bool{}
	for _, level := range levels {
		for i := range level {
			t := &level[i]
			if num := uint64(t.BackingSSTNum); !seen[num] {
				seen[num] = true
				out = append(out, liveTable{
					numbered{fmt.Sprintf("%06d.sst", num), num}, bytes.Clone(t.Smallest.UserKey),
					bytes.Clone(t.Largest.UserKey)})
			}
		}
	}
	return out, nil
}

// shownFS shows a directory without logs and options, and with additional names.
type shownFS struct {
	vfs.FS
	more []string
}

// List implements vfs.FS.
func (fs shownFS) List(dir string) ([]string, error) {
	names, err := fs.FS.List(dir)
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasSuffix(n, ".log") || strings.HasPrefix(n, "OPTIONS-")
	})
	return append(names, fs.more...), err
}

// Lock implements vfs.FS. The directory is locked already.
func (shownFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements vfs.FS.
func (fs shownFS) Unwrap() vfs.FS { return fs.FS }

type silent struct{}

func (silent) Infof(string, ...any)      {}
func (silent) Errorf(string, ...any)     {}
func (silent) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// logs reads the logs whose writes aren't in tables. If it is unknown which these are, it reads all logs.
func (s *Salvage) logs(l *look) error {
	for i, f := range l.logs {
		if f.num < l.firstLog {
			continue
		}
		end, err := scanFile(s.fs, s.fs.PathJoin(s.dir, f.name), uint32(f.num), true, func(at int64, rec []byte) error {
			if !s.batch(rec) {
				s.lose(f.name, fmt.Sprintf("a record at byte %d is malformed", at), nil, nil)
			}
			return nil
		})
		switch {
		case err != nil:
			s.lose(f.name, fmt.Sprintf("the log can't be read: %v", err), nil, nil)
		case end.how == endDamaged || end.how == endTorn && i < len(l.logs)-1:
			s.lose(f.name, fmt.Sprintf("the log is damaged at byte %d: writes there are lost", end.at), nil, nil)
		}
	}
	for _, what := range l.lostLogs {
		s.lose(what.File, what.What, nil, nil)
	}
	slices.SortStableFunc(s.log.all, func(a, b version) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq))
	})
	return nil
}

// batch adds the operations of a log's record. It returns false if the record is malformed.
func (s *Salvage) batch(rec []byte) bool {
	m := &s.log
	h, ok := batchrepr.ReadHeader(rec)
	if !ok {
		return false
	}
	rec = bytes.Clone(rec)
	r := batchrepr.Read(rec)
	for seq := uint64(h.SeqNum); ; {
		kind, key, val, ok, err := r.Next()
		if err != nil || !ok {
			return err == nil
		}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			m.all = append(m.all, version{key: key, val: val, seq: seq})
		case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
			m.all = append(m.all, version{key: key, seq: seq, deleted: true})
		case pebble.InternalKeyKindRangeDelete:
			s.drops = append(s.drops, span{key, val, seq})
		}
		seq++
	}
}

// Close releases the store.
func (s *Salvage) Close() error { return s.lock.Close() }
