//go:build !unix

package pebblekv

import "os"

// lockForReading does nothing: on this system a file that a server has locked can't be opened.
func lockForReading(*os.File) error { return nil }
