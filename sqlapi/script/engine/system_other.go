//go:build !linux

package engine

// limitKernel does nothing: here only the watch of the worker itself limits its memory.
func limitKernel(uint64) error { return nil }

// closeInherited does nothing: here processes are started without the files of their parents, or nothing lists them.
func closeInherited() {}
