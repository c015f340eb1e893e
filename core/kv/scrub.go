package kv

import "context"

// Scrubber is an Engine that can read its files again, to see that the disk has kept them.
type Scrubber interface {
	// ScrubFiles reads all files that don't change any more from begin to end. problem is told of each part that can't
	// be read, pause is called between steps with the bytes that were read since; its error ends the scrub.
	ScrubFiles(ctx context.Context, pause func(bytes int64) error, problem func(string)) error
}
