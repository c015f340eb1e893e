//go:build unix

package pebblekv

import (
	"io"
	"os"
	"syscall"
)

// lockForReading takes a shared lock on a file that writers lock exclusively. It fails at once if there is a writer.
func lockForReading(f *os.File) error {
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart})
}
