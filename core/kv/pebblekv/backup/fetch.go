package backup

import (
	"context"
	"fmt"
	"slices"

	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// Fetch copies the store of the backup in dir to the existing directory to. It fails if a file differs from the
// manifest. All files are durable when it returns. The markers that make the directory a store are written last. The
// files are copies, not links: a restored store shares nothing with the backup.
func Fetch(ctx context.Context, w Work, dir string, m *Manifest, to string) error {
	w.total = m.Bytes()
	list := slices.Clone(m.Files)
	few.Sort(list, func(a, b File) int { return byRank(a.Name, b.Name) })
	last := 0
	for i := range list {
		f := &list[i]
		if r := rank(f.Name); r != last { // a marker's name must not be durable before the files that it names
			if last = r; r >= 2 {
				if err := files.SyncDir(w.FS, to); err != nil {
					return err
				}
			}
		}
		if err := w.fetch(ctx, dir, f, to); err != nil {
			return err
		}
	}
	return files.SyncDir(w.FS, to)
}

func (w *Work) fetch(ctx context.Context, dir string, f *File, to string) error {
	size, sum, err := w.write(ctx, w.FS.PathJoin(dir, StoreName, f.Name), w.FS.PathJoin(to, f.Name))
	if err == nil {
		if what := f.differs(size, sum); what != "" {
			err = fmt.Errorf("%s: the backup is damaged: %s %s", dir, f.Name, what)
		}
	}
	if files.IsMissing(err) {
		err = fmt.Errorf("%s: the backup is damaged: %s is missing", dir, f.Name)
	}
	return err
}

func (f *File) differs(size int64, sum string) string {
	switch {
	case size != f.Size:
		return fmt.Sprintf("has %d bytes; it had %d when the backup was made", size, f.Size)
	case sum != f.Sum:
		return "is not what it was when the backup was made"
	}
	return ""
}

// Verify reads the files of the backup in dir. It calls bad for each file that differs from the manifest.
func Verify(ctx context.Context, w Work, dir string, m *Manifest, bad func(file, what string)) error {
	w.total = m.Bytes()
	ours := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		ours[f.Name] = true
		before := w.done
		size, sum, err := w.copy(ctx, w.FS.PathJoin(dir, StoreName, f.Name), nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case files.IsMissing(err):
			bad(f.Name, "missing; it was there when the backup was made")
		case err != nil:
			bad(f.Name, fmt.Sprintf("can't be read: %v", err))
		default:
			if what := f.differs(size, sum); what != "" {
				bad(f.Name, what)
			}
		}
		w.done = before
		w.step(f.Size)
	}
	names, err := w.FS.List(w.FS.PathJoin(dir, StoreName))
	if err != nil && !files.IsMissing(err) {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if !ours[name] {
			bad(name, "doesn't belong to the backup; has a server opened it?")
		}
	}
	return nil
}
