//go:build !windows

package cli

import "golang.org/x/sys/unix"

// diskRoom returns the free and all bytes of a directory's disk.
func diskRoom(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}
