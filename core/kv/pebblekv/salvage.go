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
	Lo, Hi []byte // keys from Lo to Hi may have stood there; both nil: any
}

// Salvage is the readable part of a store that may be damaged in any way. The store isn't changed.
//
// OpenSalvage reads every table once, in sequence, to learn which parts of it can be read. Each reads the tables again
// in the order of their first keys: a table is open from its first key to its last. So only the tables that overlap at
// one key are open together: one in each level and run.
type Salvage struct {
	ctx   context.Context
	fs    vfs.FS
	dir   string
	lock  io.Closer
	watch Watch
	lost  []Loss
	parts []tablePart
	log   memory // what the logs have
	drops []span // deleted ranges
}

// OpenSalvage reads the readable part of the store in dir. Losses are reported to w, and Lost returns them.
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

// Each calls visit once for every key, in order, with its newest readable value. It skips keys whose deletion can be
// read. A key may have an older value if the newer one is lost. The slices are valid until visit returns. An error of
// visit ends the walk. Each may be called once.
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

// open finds out which files of the directory matter, and opens the store.
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
			"the manifest can't be read whole: all tables that are there are read", nil, nil)
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

// namedTables asks Pebble for the tables of the manifest. Pebble sees the directory without logs, and with markers
// added where they are missing.
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

// shownFS shows a directory without logs and options, and with other names.
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

// Lock implements vfs.FS: the directory is locked.
func (shownFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements vfs.FS.
func (fs shownFS) Unwrap() vfs.FS { return fs.FS }

type silent struct{}

func (silent) Infof(string, ...any)      {}
func (silent) Errorf(string, ...any)     {}
func (silent) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// logs reads the logs that aren't in tables. It reads all logs if that is unknown.
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

// batch takes the operations of a log's record; false: it is malformed.
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
