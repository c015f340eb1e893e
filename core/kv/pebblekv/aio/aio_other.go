//go:build !linux

package aio

// Sync does nothing: only Linux has such syncs.
func Sync(uintptr, bool) (done bool, err error) { return false, nil }

// Available returns false.
func Available() bool { return false }
