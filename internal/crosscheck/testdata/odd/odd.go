// Package odd compiles where there are signals, its test only on systems with 64 bits, and all of it on Linux.
package odd

import "syscall"

// Odd isn't there on Windows.
func Odd() error { return syscall.Kill(1, 0) }
