//go:build unix

package spill

import "syscall"

// errQuota is what a file system answers whose user has used up what is theirs.
var errQuota error = syscall.EDQUOT
