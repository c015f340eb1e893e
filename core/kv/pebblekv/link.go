package pebblekv

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// Link makes a store in the directory to, which must not exist, with the content of the store in from, which must not
// be open. Tables are never changed, nor are logs after the store that wrote them: a store that is opened reads the
// logs that it finds, and removes them later. So both become hard links where the file system has them. All other files
// are copied. If it fails, there is no directory to.
func Link(from, to string) error {
	fs := vfs.Default
	if _, err := fs.Stat(to); !files.IsMissing(err) {
		return fmt.Errorf("%w: the directory exists: %s", kv.ErrContract, to)
	}
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	if err := files.MakeDir(fs, to); err != nil {
		return err
	}
	for _, name := range names {
		source, target := fs.PathJoin(from, name), fs.PathJoin(to, name)
		if end := filepath.Ext(name); end == ".sst" || end == ".blob" || end == logSuffix {
			err = vfs.LinkOrCopy(fs, source, target)
		} else {
			err = vfs.CopyAcrossFS(fs, source, fs, target)
		}
		if err != nil {
			return errors.Join(err, fs.RemoveAll(to))
		}
	}
	if err := files.SyncDir(fs, to); err != nil {
		return errors.Join(err, fs.RemoveAll(to))
	}
	return nil
}
