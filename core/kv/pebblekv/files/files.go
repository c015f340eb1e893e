// Package files reads and writes files durably, for a store and its backups.
package files

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Read returns the content of a file.
func Read(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// Replace writes a file atomically: it writes a temporary file, name+temp, and renames it. When it returns without an
// error, the file is durable.
func Replace(fs vfs.FS, name, temp string, content []byte) error {
	temp = name + temp
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = fs.Rename(temp, name)
	}
	if err != nil {
		_ = fs.Remove(temp)
		return err
	}
	return SyncDir(fs, fs.PathDir(name))
}

// MakeDir durably creates a directory and its missing parents. Only their owner can read what is in them: stores and
// backups have all data, and the credentials of users.
func MakeDir(fs vfs.FS, dir string) error {
	parent := fs.PathDir(dir)
	if _, err := fs.Stat(parent); parent != dir && IsMissing(err) {
		if err := MakeDir(fs, parent); err != nil {
			return err
		}
	}
	return errors.Join(fs.MkdirAll(dir, 0o700), SyncDir(fs, parent))
}

// IsMissing reports whether err says that a file or directory doesn't exist.
func IsMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
