//go:build !unix

package spill

import "syscall"

// errQuota is the system's error of a full disk: ERROR_DISK_FULL, which syscall.ENOSPC doesn't match on Windows.
var errQuota error = syscall.Errno(112)
