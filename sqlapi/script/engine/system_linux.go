package engine

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// runtimeRoom is the memory that the process may have beyond a program's: the stacks of its threads, and what the
// collector hasn't returned.
const runtimeRoom = 64 << 20

// limitKernel has the kernel refuse memory above limit and what the process has now. Unlike a limit of the address
// space, this one counts only memory that can be written, not what the runtime has reserved.
func limitKernel(limit uint64) error {
	limit += writable() + runtimeRoom
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
}

// closeInherited closes the files that the server itself has inherited and passed on. Those of this process's runtime
// are no files, or control groups.
func closeInherited() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc nothing tells which there are
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		if err != nil || fd <= 2 {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/") {
			continue
		}
		_ = unix.Close(fd)
	}
}

// writable returns the bytes that count against RLIMIT_DATA, 0 where the kernel doesn't tell.
func writable() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	const dataPages = 5
	fields := bytes.Fields(b)
	if err != nil || len(fields) <= dataPages {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[dataPages]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
