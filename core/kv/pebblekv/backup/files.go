package backup

import (
	"context"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Work is the environment of a backup or a restore.
type Work struct {
	FS       vfs.FS
	Pause    func(context.Context) error // between steps; nil: none
	Progress func(done, total int64)     // bytes of files; may be nil

	done, total int64
}

// Sizes of steps, in bytes.
const (
	readStep  = 256 << 10
	pauseStep = 1 << 20 // between pauses
	syncStep  = 1 << 20 // of a new file: the sync at its end is never long
)

func (w *Work) step(n int64) {
	w.done += n
	if w.Progress != nil {
		w.Progress(w.done, w.total)
	}
}

// copy reads a file and returns its length and checksum. If to isn't nil, it also writes the content to it.
func (w *Work) copy(ctx context.Context, from string, to io.Writer) (size int64, sum string, err error) {
	f, err := w.FS.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := xxhash.New()
	buf := make([]byte, readStep)
	since := int64(0)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			_, _ = h.Write(buf[:n])
			if to != nil {
				if _, err := to.Write(buf[:n]); err != nil {
					return size, "", err
				}
			}
			size, since = size+int64(n), since+int64(n)
			w.step(int64(n))
		}
		if errors.Is(err, io.EOF) {
			return size, hexSum(h.Sum64()), nil
		}
		if err != nil {
			return size, "", err
		}
		if since >= pauseStep {
			if err := w.pause(ctx); err != nil {
				return size, "", err
			}
			since = 0
		}
	}
}

func (w *Work) pause(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.Pause == nil {
		return nil
	}
	return w.Pause(ctx)
}

// write copies a file. When it returns, the new file is durable under its name; only the directory is not synced yet.
func (w *Work) write(ctx context.Context, from, to string) (size int64, sum string, err error) {
	f, err := w.FS.Create(to+unfinished, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, "", err
	}
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: syncStep})
	size, sum, err = w.copy(ctx, from, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = w.FS.Rename(to+unfinished, to)
	}
	if err != nil {
		_ = w.FS.Remove(to + unfinished)
	}
	return size, sum, err
}
