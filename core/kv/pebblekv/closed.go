package pebblekv

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// closedName is the file in a store that was closed: which files it has, how long they are, and sums of those that have
// no end of their own. It goes before the store is opened for writing. A store without it was not closed, or not by a
// version that writes one.
const closedName = "closed.json"

// tempEnd ends the names of files that are not whole yet, as it does those of Pebble's own.
const tempEnd = ".dbtmp"

// closedNote is closedName's content.
type closedNote struct {
	Format  int          `json:"format"`  // 1
	Options string       `json:"options"` // the newest file of options: a version that knows no notes writes a newer one
	Files   []closedFile `json:"files"`
	Sum     string       `json:"sum"` // xxhash64 of the note without it, hexadecimal
}

type closedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sum,omitempty"` // xxhash64, hexadecimal; of logs, manifests and options
}

func (n closedNote) sum() string {
	n.Sum = ""
	b, _ := json.Marshal(n)
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}

// noteOf makes the note of the files that are there.
func noteOf(fs vfs.FS, dir string, p *parts) (n closedNote, err error) {
	n.Format = 1
	if k := len(p.options); k > 0 {
		n.Options = p.options[k-1].name
	}
	for _, l := range []struct {
		files  []numbered
		summed bool // a table has checksums of its own
	}{{p.logs, true}, {newest(p.manifests), true}, {newest(p.options), true}, {p.tables, false}} {
		for _, f := range l.files {
			c := closedFile{Name: f.name}
			if c.Size, c.Sum, err = sized(fs, fs.PathJoin(dir, f.name), l.summed); err != nil {
				return n, err
			}
			n.Files = append(n.Files, c)
		}
	}
	for _, m := range p.markers {
		n.Files = append(n.Files, closedFile{Name: m})
	}
	n.Sum = n.sum()
	return n, nil
}

// newest is the last of some files, which counts.
func newest(l []numbered) []numbered { return l[max(0, len(l)-1):] }

// sized returns the length of a file, and its sum when that is wanted.
func sized(fs vfs.FS, path string, summed bool) (int64, string, error) {
	info, err := fs.Stat(path)
	if err != nil || !summed {
		if err != nil {
			return 0, "", err
		}
		return info.Size(), "", nil
	}
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := xxhash.New()
	size, err := io.Copy(h, f)
	return size, fmt.Sprintf("%016x", h.Sum64()), err
}

// writeNote notes that the store is closed. Without it the store is as good; only less of a later damage would show.
func writeNote(fs vfs.FS, dir string) error {
	p, err := partsOf(fs, dir)
	if err != nil {
		return err
	}
	n, err := noteOf(fs, dir, &p)
	if err != nil {
		return err
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return files.Replace(fs, fs.PathJoin(dir, closedName), tempEnd, append(b, '\n'))
}

// readNote compares a closed store with its note.
func (l *look) readNote() error {
	if !l.parts.note {
		return nil
	}
	b, err := files.Read(l.fs, l.path(closedName))
	if err != nil {
		return err
	}
	var n closedNote
	if json.Unmarshal(b, &n) != nil || n.Sum != n.sum() || n.Format != 1 {
		l.report(Problem{closedName, "the note of the files that the store was closed with is damaged; it is of no " +
			"weight", Damage})
		return nil
	}
	if k := len(l.options); k > 0 && newer(l.options[k-1].name, n.Options) {
		l.note(closedName, "an older version has had the store open since; the note is of no weight")
		return nil
	}
	for _, c := range n.Files {
		l.compare(c)
	}
	return nil
}

// newer reports whether a is the name of a file with a greater number than b's; both have at least six digits.
func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// compare reports the difference between a file and its note.
func (l *look) compare(c closedFile) {
	size, sum, err := sized(l.fs, l.path(c.Name), c.Sum != "")
	bad := l.bad
	switch {
	case c.Name == l.manifest && (err != nil || size != c.Size || sum != c.Sum):
		l.manifestDamaged = true
	case strings.HasSuffix(c.Name, ".log") && !l.obsolete(c.Name) && (err != nil || size != c.Size):
		bad = l.lostLog
	}
	if strings.HasSuffix(c.Name, ".log") && l.obsolete(c.Name) {
		bad = func(file, format string, args ...any) { // nothing depends on it
			l.report(Problem{file, fmt.Sprintf(format, args...), Damage})
		}
	}
	switch {
	case files.IsMissing(err):
		bad(c.Name, "missing; it was there when the store was closed")
	case err != nil:
		bad(c.Name, "can't be read: %v", err)
	case size != c.Size:
		bad(c.Name, "has %d bytes; it had %d when the store was closed", size, c.Size)
	case sum != c.Sum:
		bad(c.Name, "is not what it was when the store was closed")
	}
}

// obsolete reports whether a log is in tables.
func (l *look) obsolete(name string) bool {
	for _, f := range l.logs {
		if f.name == name {
			return f.num < l.firstLog
		}
	}
	return false
}
