//go:build !unix

package pebblekv

import "os"

// lockForReading does nothing: a file that a server has locked can't be opened here.
func lockForReading(*os.File) error { return nil }
