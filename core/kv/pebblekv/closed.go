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

// closedName is a file that is written when a store is closed. It lists the store's files with their sizes, and
// checksums of those that have none inside. It is removed before the store is opened for writing. If it is missing, the
// store was not closed cleanly, or by a version that doesn't write it.
const closedName = "closed.json"

// tempEnd ends the names of incomplete files. Pebble uses the same ending.
const tempEnd = ".dbtmp"

// closedNote is the content of closedName.
type closedNote struct {
	Format  int          `json:"format"`  // 1
	Options string       `json:"options"` // the newest file of options: a version without notes writes a newer one
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

// noteOf makes the note of the existing files.
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

// newest returns the last of some files, which is the current one.
func newest(l []numbered) []numbered { return l[max(0, len(l)-1):] }

// sized returns the length of a file, and if summed its checksum.
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

// writeNote records that the store is closed. The store also works without the note, but less damage is detected.
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
		l.report(Problem{closedName, "the list of files from the last close is damaged and is ignored", Damage})
		return nil
	}
	if k := len(l.options); k > 0 && newer(l.options[k-1].name, n.Options) {
		l.note(closedName, "an older version has opened the store since; the list of files is ignored")
		return nil
	}
	for _, c := range n.Files {
		l.compare(c)
	}
	return nil
}

// newer reports whether the file a has a greater number than b. Both numbers have at least six digits.
func newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// compare reports the difference between a file and its note.
func (l *look) compare(c closedFile) {
	size, sum, err := sized(l.fs, l.path(c.Name), c.Sum != "")
	bad := l.bad
	switch {
	case c.Name == l.manifest && (err != nil || size != c.Size || sum != c.Sum):
		l.manifestDamaged = true
	case strings.HasSuffix(c.Name, ".log") && !l.obsolete(c.Name) &&
		(err != nil || size != c.Size || sum != c.Sum && l.endless(c.Name)):
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

// endless reports whether a log of a closed store seems to end before its end: without the mark of a log that was
// closed, and without anything after it that shows the damage. Zeros follow every log, so a last page that was zeroed
// looks like that.
func (l *look) endless(name string) bool {
	for _, f := range l.logs {
		if f.name == name {
			end, err := scanFile(l.fs, l.path(name), uint32(f.num), false, func(int64, []byte) error { return nil })
			return err == nil && (end.how == endOpen || end.how == endTorn)
		}
	}
	return false
}

// obsolete reports whether everything in a log is also in tables.
func (l *look) obsolete(name string) bool {
	for _, f := range l.logs {
		if f.name == name {
			return f.num < l.firstLog
		}
	}
	return false
}
