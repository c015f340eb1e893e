package pebblekv

import "github.com/cockroachdb/pebble/v2"

// cleaner deletes files that nothing needs any more, as Pebble's own does, and used logs with them. Pebble would keep
// five of those to write over them again: after a load that is more than the data. It doesn't when the cleaner says, as
// the one for archives, that it needs the contents of what it is given.
type cleaner struct {
	pebble.DeleteCleaner
	needsContents
}

// needsContents is one level further down, so that Clean and String are DeleteCleaner's.
type needsContents struct{ pebble.ArchiveCleaner }

var _ pebble.Cleaner = cleaner{}
