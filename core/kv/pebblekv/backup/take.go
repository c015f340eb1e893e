package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// Job describes a backup to be made.
type Job struct {
	Work
	From  string // directory with the files of a store, which must not change
	Of    string // the store's own directory: without hard links From has copies, with other modification times
	To    string // an existing directory of backups
	Name  string // see Name
	Store string // id of the store; "": it has none
	Taken time.Time
	Fits  func(bytes int64) error // called before that many bytes are written; may be nil
}

// Take makes a backup. It makes hard links to tables that the previous backup of the same store has. It also uses the
// files of unfinished backups, and removes these at the end. If From is on the same file system, its other tables are
// linked too. Everything else is copied.
//
// After an error the finished files stay for the next backup. If the disk is full, they are removed.
//
// Example: the previous backup has table 4, the store has tables 4 and 7 and log 8. Take links 4 from the previous
// backup, links 7 from From, and copies the log.
func Take(ctx context.Context, j Job) (b kv.Backup, err error) {
	if err := onlyBackups(j.FS, j.To); err != nil { // before a lock is left there
		return b, err
	}
	lock, err := j.FS.Lock(j.FS.PathJoin(j.To, lockName))
	if err != nil {
		return b, fmt.Errorf("%s can't be locked, does another server make a backup there? %w", j.To, err)
	}
	t := &taker{Job: j, dir: j.FS.PathJoin(j.To, j.Name), known: map[string][]source{}}
	if err = t.survey(); err == nil {
		err = t.take(ctx)
	}
	if vfs.IsNoSpaceError(err) || errors.Is(err, kv.ErrFull) {
		_ = t.FS.RemoveAll(t.dir)
	}
	return t.result, errors.Join(err, lock.Close())
}

type taker struct {
	Job
	dir     string
	left    []string            // directories of unfinished backups
	known   map[string][]source // by name: tables that earlier backups have
	plan    []planned
	links   bool // the store's tables can be linked
	journal vfs.File
	result  kv.Backup
}

// source is a table of another backup.
type source struct {
	File
	path string
	left bool // of an unfinished backup
}

// planned is a file, and where it is taken from.
type planned struct {
	File
	shared *source // nil: it is taken from the store
}

// onlyBackups checks that a directory holds nothing but backups.
func onlyBackups(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockName && name != lostFound && !named.MatchString(name) {
			return fmt.Errorf("%s has files that don't belong to a backup, such as %s: choose another directory", dir,
				name)
		}
	}
	return nil
}

// survey finds the backups in the directory. They must be of the same store.
func (t *taker) survey() error {
	all, err := List(t.FS, t.To)
	if err != nil {
		return err
	}
	var newest *Entry
	for i := range all {
		e := &all[i]
		switch {
		case e.Name == t.Name:
			return fmt.Errorf("%s exists already", e.Path)
		case e.Manifest != nil && e.Manifest.Store != t.Store:
			return t.foreign(e.Path)
		case e.Manifest != nil:
			newest = e
		case errors.Is(e.Err, ErrNoBackup):
			if err := t.leftover(e); err != nil {
				return err
			}
		}
	}
	if newest != nil {
		for _, f := range newest.Manifest.Files {
			t.know(f, newest.Path, false)
		}
	}
	return nil
}

func (t *taker) foreign(path string) error {
	return fmt.Errorf("%s is a backup of another store: use a separate directory for each store", path)
}

// know remembers a table of another backup.
func (t *taker) know(f File, dir string, left bool) {
	if isTable(f.Name) {
		s := source{File: f, path: t.FS.PathJoin(dir, StoreName, f.Name), left: left}
		t.known[f.Name] = append(t.known[f.Name], s)
	}
}

// header is the first line of a journal.
type header struct {
	Format int    `json:"format"`
	Store  string `json:"store,omitempty"`
}

// leftover remembers the tables of an unfinished backup. Its journal may end in the middle of a line.
func (t *taker) leftover(e *Entry) error {
	names, err := t.FS.List(e.Path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != StoreName && name != journalName && name != ManifestName+unfinished {
			return fmt.Errorf("%s has files that don't belong to a backup, such as %s", e.Path, name)
		}
	}
	b, err := files.Read(t.FS, t.FS.PathJoin(e.Path, journalName))
	if err != nil && !files.IsMissing(err) {
		return err
	}
	lines := bytes.Split(b, []byte("\n"))
	var h header
	if json.Unmarshal(lines[0], &h) == nil {
		if h.Store != t.Store {
			return t.foreign(e.Path)
		}
		for _, line := range lines[1:] {
			var f File
			if h.Format == format && json.Unmarshal(line, &f) == nil && t.FS.PathBase(f.Name) == f.Name {
				t.know(f, e.Path, true)
			}
		}
	}
	t.left = append(t.left, e.Path)
	return nil
}

// take makes the backup.
func (t *taker) take(ctx context.Context) error {
	store := t.FS.PathJoin(t.dir, StoreName)
	err := files.MakeDir(t.FS, t.dir)
	if err == nil {
		err = files.MakeDir(t.FS, store)
	}
	if err != nil {
		return err
	}
	if t.journal, err = t.FS.Create(t.FS.PathJoin(t.dir, journalName), vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	m := &Manifest{Store: t.Store, Taken: t.Taken.UTC()}
	err = t.note(header{format, t.Store})
	if err == nil {
		err = t.arrange()
	}
	for i := range t.plan {
		if err != nil {
			break
		}
		p := &t.plan[i]
		if err = t.file(ctx, p); err == nil {
			m.Files = append(m.Files, p.File)
			err = t.note(p.File)
		}
	}
	if err = errors.Join(err, t.journal.Close()); err != nil {
		return err
	}
	if err := files.SyncDir(t.FS, store); err != nil {
		return err
	}
	if err := writeManifest(t.FS, t.dir, m); err != nil {
		return err
	}
	t.result.Path, t.result.Files, t.result.Bytes = t.dir, len(m.Files), m.Bytes()
	_ = t.FS.Remove(t.FS.PathJoin(t.dir, journalName))
	for _, dir := range t.left {
		_ = t.FS.RemoveAll(dir) // the next backup finds what can't be removed
	}
	return nil
}

// note adds a line to the journal. The journal isn't synced: if a line is lost, a file is copied again.
func (t *taker) note(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = t.journal.Write(append(b, '\n'))
	}
	return err
}

// arrange decides for each file whether it is linked or copied, and asks Fits whether there is space for the copies.
func (t *taker) arrange() error {
	names, err := t.FS.List(t.From)
	if err != nil {
		return err
	}
	slices.SortFunc(names, byRank)
	var writes int64
	for i, name := range names {
		info, err := t.FS.Stat(t.FS.PathJoin(t.From, name))
		if err != nil {
			return err
		}
		if i == 0 {
			t.links = t.linkable(name)
		}
		p := planned{File: File{Name: name, Size: info.Size(), Modified: info.ModTime().UnixNano()}}
		if own, err := t.FS.Stat(t.FS.PathJoin(t.Of, name)); err == nil && isTable(name) {
			p.Modified = own.ModTime().UnixNano()
		}
		if p.shared, err = t.same(&p.File); err != nil {
			return err
		}
		if p.shared == nil && !(t.links && isTable(name)) {
			writes += p.Size
		}
		t.total += p.Size
		t.plan = append(t.plan, p)
	}
	if t.Fits == nil {
		return nil
	}
	return t.Fits(writes)
}

// linkable tries to link a file of the store.
func (t *taker) linkable(name string) bool {
	to := t.FS.PathJoin(t.dir, StoreName, name+unfinished)
	err := t.FS.Link(t.FS.PathJoin(t.From, name), to)
	_ = t.FS.Remove(to)
	return err == nil
}

// same returns the table of another backup that equals a table of the store: same name, size, time, and last bytes. The
// last bytes of a table depend on its whole content. The name alone isn't enough, because a copy of a store gives new
// tables the same numbers as the original.
func (t *taker) same(f *File) (*source, error) {
	for i := range t.known[f.Name] {
		s := &t.known[f.Name][i]
		if s.Size != f.Size || s.Modified != f.Modified {
			continue
		}
		theirs, err := t.end(s.path, f.Size)
		if err != nil {
			continue // missing, or can't be read: it is copied again
		}
		ours, err := t.end(t.FS.PathJoin(t.From, f.Name), f.Size)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(ours, theirs) {
			return s, nil
		}
	}
	return nil, nil
}

// endBytes is how many bytes at the end of tables are compared.
const endBytes = 32 << 10

// end reads the end of a file. The file must have size bytes.
func (t *taker) end(path string, size int64) ([]byte, error) {
	f, err := t.FS.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != size {
		return nil, fmt.Errorf("%s has %d bytes, want %d", path, info.Size(), size)
	}
	b := make([]byte, min(size, endBytes))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// file links or copies one file into the backup.
func (t *taker) file(ctx context.Context, p *planned) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, to := t.FS.PathJoin(t.From, p.Name), t.FS.PathJoin(t.dir, StoreName, p.Name)
	if s := p.shared; s != nil && t.share(s, to) {
		p.Sum = s.Sum
		t.result.Shared += p.Size
		t.step(p.Size)
		return nil
	}
	var size int64
	var err error
	if t.links && isTable(p.Name) && t.FS.Link(from, to) == nil {
		t.result.Linked += p.Size
		size, p.Sum, err = t.copy(ctx, from, nil)
	} else {
		size, p.Sum, err = t.write(ctx, from, to)
		t.result.Copied += size
	}
	if err == nil && size != p.Size {
		err = fmt.Errorf("%s had %d bytes and has %d", from, p.Size, size)
	}
	return err
}

// share links a table of another backup into this one. A table of an unfinished backup may be moved instead.
func (t *taker) share(s *source, to string) bool {
	return t.FS.Link(s.path, to) == nil || s.left && t.FS.Rename(s.path, to) == nil
}
