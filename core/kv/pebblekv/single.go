package pebblekv

import (
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/orrerydb/orrery/core/kv/pebblekv/aio"
)

// single is for a process with one of Go's processors, as on a machine with one CPU. Two things would stop all requests
// there: a sync, which holds the processor while it does nothing, and a flush or a merge, which the runtime interrupts
// only every 10 ms. So the kernel makes the syncs, and tables are written in short turns.
//
// A second processor would need neither. But then the two share a CPU by turns of the kernel, and each request that is
// interrupted waits for 3 or 4 ms: one of a hundred reads.
type single struct {
	aside bool // the kernel makes syncs
	turns bool // tables are written in turns
}

func (s *single) init(fs vfs.FS) {
	s.turns = runtime.GOMAXPROCS(0) == 1
	s.aside = s.turns && fs == vfs.Default && SyncsAside() // another file system may have syncs of its own
}

// SyncsAside reports whether a store needs no second one of Go's processors while it syncs.
func SyncsAside() bool { return aio.Available() }

// sync syncs a file, or only its data.
func (d *disk) sync(f vfs.File, data bool) error {
	if fd := f.Fd(); d.single.aside && fd != vfs.InvalidFd {
		if done, err := aio.Sync(fd, data); done {
			return err
		}
	}
	if data {
		return f.SyncData()
	}
	return f.Sync()
}

// giveWay lets requests go first. Pebble calls it by way of each write to a table, some 64 KiB apart.
func (d *disk) giveWay() {
	if d.single.turns {
		runtime.Gosched()
	}
}
