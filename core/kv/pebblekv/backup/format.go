// Package backup keeps backups of a store in a directory, one subdirectory each:
//
//	20260102T150405Z-1f2e3d4c/     a backup
//	    store/                     the files of a store
//	    backup.json                names, sizes and checksums of the files; written last
//	    files.jsonl                the same, file by file, while the backup is being made
//	LOCK                           locked while a backup is being made
//
// Invariants:
//  1. A directory with a valid backup.json is a complete, durable backup. A directory without it is an unfinished
//     backup. Its files that have their final names are complete, and the next backup uses them.
//  2. A file of a complete backup never changes. Backups share tables by hard links, so removing one backup leaves the
//     others complete.
//  3. Nothing is removed that isn't part of a backup, and no complete backup is removed.
package backup

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// The names in a directory of backups.
const (
	ManifestName = "backup.json"
	StoreName    = "store"
	journalName  = "files.jsonl"
	lockName     = "LOCK"
	lostFound    = "lost+found" // of file systems
	unfinished   = ".tmp"       // ends the names of files that are being written
)

const format = 1

// OS is the operating system's file system.
var OS = vfs.Default

var named = regexp.MustCompile(`^\d{8}T\d{6}Z-[0-9a-f]{8}$`)

// Name is the name of a backup's directory: its time, and four random bytes.
func Name(taken time.Time, random [4]byte) string {
	return taken.UTC().Format("20060102T150405Z-") + hex.EncodeToString(random[:])
}

// File is one file of a backup.
type File struct {
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	Sum      string `json:"sum"`      // xxhash64, hexadecimal
	Modified int64  `json:"modified"` // when the store wrote it, nanoseconds since 1970
}

// Manifest is the content of backup.json.
type Manifest struct {
	Format int       `json:"format"` // 1
	Store  string    `json:"store,omitempty"`
	Taken  time.Time `json:"taken"`
	Files  []File    `json:"files"` // in the order in which a restore writes them, markers last
	Sum    string    `json:"sum"`   // xxhash64 of the manifest without it, hexadecimal
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

func (m Manifest) sum() string {
	m.Sum = ""
	b, _ := json.Marshal(m)
	return hexSum(xxhash.Sum64(b))
}

func hexSum(n uint64) string { return fmt.Sprintf("%016x", n) }

// ErrNoBackup is the error for a directory without backup.json.
var ErrNoBackup = errors.New("is not a complete backup")

// ReadManifest reads the manifest of the backup in dir.
func ReadManifest(fs vfs.FS, dir string) (*Manifest, error) {
	b, err := files.Read(fs, fs.PathJoin(dir, ManifestName))
	if files.IsMissing(err) {
		return nil, fmt.Errorf("%s %w", dir, ErrNoBackup)
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if json.Unmarshal(b, m) != nil || m.Sum != m.sum() {
		return nil, fmt.Errorf("%s: %s is damaged", dir, ManifestName)
	}
	if m.Format != format {
		return nil, fmt.Errorf("%s: the backup has format %d, and this version reads format %d", dir, m.Format, format)
	}
	for _, f := range m.Files {
		if f.Name == "" || fs.PathBase(f.Name) != f.Name || strings.HasPrefix(f.Name, ".") {
			return nil, fmt.Errorf("%s: %s names a file %q", dir, ManifestName, f.Name)
		}
	}
	return m, nil
}

// writeManifest writes the manifest of dir, whose files are durable. That completes the backup.
func writeManifest(fs vfs.FS, dir string, m *Manifest) error {
	m.Format, m.Sum = format, ""
	m.Sum = m.sum()
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return files.Replace(fs, fs.PathJoin(dir, ManifestName), unfinished, append(b, '\n'))
}

// rank orders files so that an incomplete copy is not a store: first tables, then the other files, then the markers.
// The marker of the manifest is the last one.
func rank(name string) int {
	switch {
	case isTable(name):
		return 0
	case strings.HasPrefix(name, "marker.manifest."):
		return 3
	case strings.HasPrefix(name, "marker."):
		return 2
	}
	return 1
}

// isTable reports whether a file is a table. A store never changes a table.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

func byRank(a, b string) int {
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// Entry is one directory that List has found.
type Entry struct {
	Name     string
	Path     string
	Manifest *Manifest // nil: the backup isn't complete
	Err      error     // why it isn't; ErrNoBackup for an unfinished one
}

// List returns the backups in a directory, complete and unfinished ones, oldest first.
func List(fs vfs.FS, dir string) (out []Entry, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if named.MatchString(name) {
			e := Entry{Name: name, Path: fs.PathJoin(dir, name)}
			e.Manifest, e.Err = ReadManifest(fs, e.Path)
			out = append(out, e)
		}
	}
	few.Sort(out, func(a, b Entry) int {
		if a.Manifest != nil && b.Manifest != nil && !a.Manifest.Taken.Equal(b.Manifest.Taken) {
			return a.Manifest.Taken.Compare(b.Manifest.Taken)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// Home returns the directory of backups that has the backup in dir, and dir itself if nobody makes backups there.
func Home(fs vfs.FS, dir string) string {
	home := fs.PathDir(dir)
	if _, err := fs.Stat(fs.PathJoin(home, lockName)); err != nil {
		return dir
	}
	return home
}

// Pick returns the backup that a directory name stands for: dir itself, or the newest backup in it. It fails if a newer
// backup is damaged, or if there are backups of several stores: then the user has to choose.
func Pick(fs vfs.FS, dir string) (path string, m *Manifest, err error) {
	m, err = ReadManifest(fs, dir)
	if !errors.Is(err, ErrNoBackup) {
		return dir, m, err
	}
	all, lerr := List(fs, dir)
	if lerr != nil && !files.IsMissing(lerr) {
		return "", nil, lerr
	}
	var damaged error // of one that is newer than m
	for _, e := range all {
		switch {
		case errors.Is(e.Err, ErrNoBackup):
		case e.Err != nil:
			damaged = e.Err
		case m != nil && m.Store != e.Manifest.Store:
			return "", nil, fmt.Errorf("%s has backups of several stores: name one of them", dir)
		default:
			path, m, damaged = e.Path, e.Manifest, nil
		}
	}
	switch {
	case damaged != nil:
		return "", nil, fmt.Errorf("%w: name another one", damaged)
	case m == nil:
		return "", nil, fmt.Errorf("%s holds no complete backup", dir)
	}
	return path, m, nil
}
