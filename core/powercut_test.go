package core_test

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cuttingFS copies the file system in memory below it before some of the operations that change something. The copy is
// what a power failure at that moment leaves.
type cuttingFS struct {
	*vfs.MemFS
	one int // one in so many operations has a cut before it

	mu   sync.Mutex
	r    *rand.Rand
	left []*vfs.MemFS
}

func (fs *cuttingFS) cut(surely bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if surely || fs.r.IntN(fs.one) == 0 {
		fs.left = append(fs.left, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: fs.r.IntN(101), RNG: fs.r}))
	}
}

// taken returns the copies since the previous call.
func (fs *cuttingFS) taken() []*vfs.MemFS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	l := fs.left
	fs.left = nil
	return l
}

func (fs *cuttingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	fs.cut(false)
	return fs.file(fs.MemFS.Create(name, c))
}

func (fs *cuttingFS) Remove(name string) error {
	fs.cut(false)
	return fs.MemFS.Remove(name)
}

func (fs *cuttingFS) Rename(from, to string) error {
	fs.cut(false)
	return fs.MemFS.Rename(from, to)
}

func (fs *cuttingFS) OpenDir(name string) (vfs.File, error) { return fs.file(fs.MemFS.OpenDir(name)) }

func (fs *cuttingFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return cuttingFile{f, fs}, nil
}

type cuttingFile struct {
	vfs.File
	fs *cuttingFS
}

func (f cuttingFile) Sync() error {
	f.fs.cut(false)
	return f.File.Sync()
}

func (f cuttingFile) SyncData() error {
	f.fs.cut(false)
	return f.File.SyncData()
}
