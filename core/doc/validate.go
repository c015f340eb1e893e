package doc

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
)

// Validate checks untrusted BSON before it is used as a Doc: one document that fills b exactly, every length in bounds,
// all types known, names and strings UTF-8, booleans 0 or 1, at most maxDepth nested documents and arrays (0 =
// DefaultMaxDepth). Errors are *status.Error, BadRequest. It doesn't look for names that are there twice: BSON allows
// them, and the first counts.
func Validate(b []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	if msg := bson.Validate(b, maxDepth); msg != "" {
		return status.New(status.BadRequest, "invalid BSON: %s", msg)
	}
	return nil
}
