package kv

import "context"

// Scrubber is an Engine that can read its files again, to detect damage on the disk.
type Scrubber interface {
	// ScrubFiles reads all files that are no longer changed. problem is called for each part that can't be read. pause
	// is called between steps with the number of bytes read since the last call; its error ends the scrub.
	ScrubFiles(ctx context.Context, pause func(bytes int64) error, problem func(string)) error
}
