package doc

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
)

// Validate checks untrusted BSON before it is used as a Doc. b must be exactly one document with all lengths in bounds,
// known types, names and strings in UTF-8, booleans 0 or 1, and at most maxDepth nested documents and arrays (0 =
// DefaultMaxDepth). Duplicate names are allowed, as in BSON; the first one counts. Errors are *status.Error,
// BadRequest.
func Validate(b []byte, maxDepth int) error {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	if msg := bson.Validate(b, maxDepth); msg != "" {
		return status.New(status.BadRequest, "invalid BSON: %s", msg)
	}
	return nil
}
