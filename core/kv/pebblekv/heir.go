package pebblekv

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ended is a log that nothing will be written to any more.
type ended struct {
	name string // without directory and suffix
	size int64
	sum  uint64
}

// heir is what a log is called until the one before it is on disk.
type heir struct {
	log   string
	after ended
}

const heirPrefix = "heir-"

// String is the file's name; Pebble doesn't know such files.
func (h heir) String() string {
	return fmt.Sprintf("%s%s-%s-%d-%016x", heirPrefix, h.log, h.after.name, h.after.size, h.after.sum)
}

// parseHeir is String's inverse; what String doesn't make is not an heir.
func parseHeir(name string) (h heir, ok bool) {
	rest, ok := strings.CutPrefix(name, heirPrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 4 {
		return heir{}, false
	}
	size, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return heir{}, false
	}
	sum, err := strconv.ParseUint(parts[3], 16, 64)
	h = heir{log: parts[0], after: ended{parts[1], size, sum}}
	return h, err == nil && h.String() == name
}

func logName(fs vfs.FS, path string) string { return strings.TrimSuffix(fs.PathBase(path), logSuffix) }

// adoptLogs gives the heirs in dir their names, each when the log before it is whole: always when only the process ended. After a
// crash of the machine one may be torn; then what came behind it is given up, which is what relaxed means, and Pebble finds
// a torn log at the end, as after any crash.
func adoptLogs(fs vfs.FS, dir string, log *slog.Logger) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	var heirs []heir
	for _, name := range names {
		if h, ok := parseHeir(name); ok {
			heirs = append(heirs, h)
		}
	}
	if len(heirs) == 0 {
		return nil
	}
	slices.SortFunc(heirs, func(a, b heir) int { // of six digits or more
		return cmp.Or(cmp.Compare(len(a.log), len(b.log)), strings.Compare(a.log, b.log))
	})
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, h := range heirs {
		from, to := fs.PathJoin(dir, h.String()), fs.PathJoin(dir, h.log+logSuffix)
		before := fs.PathJoin(dir, h.after.name+logSuffix)
		whole, err := intact(fs, before, h.after)
		if err != nil {
			return err
		}
		if whole {
			if err = syncFile(fs, before); err == nil {
				err = fs.Rename(from, to)
			}
		} else {
			log.Warn("Writes behind a torn log are given up", "torn", before, "log", h.log)
			err = fs.Remove(from)
		}
		if err == nil {
			err = d.Sync()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// intact reports whether the file is as e says.
func intact(fs vfs.FS, path string, e ended) (bool, error) {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := xxhash.New()
	n, err := io.Copy(sum, io.LimitReader(f, e.size))
	return err == nil && n == e.size && sum.Sum64() == e.sum, err
}

func syncFile(fs vfs.FS, path string) error {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.SyncData(), f.Close())
}
