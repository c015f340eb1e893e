//go:build unix

package spill

import "syscall"

// errQuota is the error of a file system when the user's quota is used up.
var errQuota error = syscall.EDQUOT
