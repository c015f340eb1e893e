package pebblekv

import "github.com/cockroachdb/pebble/v2"

// cleaner deletes obsolete files, as Pebble's default does, and obsolete logs too. Pebble would keep up to memTables +
// 1 old logs and overwrite them later. After a load these can be larger than the data. Pebble doesn't keep logs if the
// cleaner says that it needs the contents of files, as ArchiveCleaner does.
type cleaner struct {
	pebble.DeleteCleaner
	needsContents
}

// needsContents is embedded one level deeper, so that Clean and String are DeleteCleaner's.
type needsContents struct{ pebble.ArchiveCleaner }

var _ pebble.Cleaner = cleaner{}
