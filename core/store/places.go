package store

import (
	"bytes"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// Places returns the placements [lo, hi) of the keys in a range; a nil hi is open. exact is false if they include keys
// that only the text of the key excludes: texts of V1 keys are longer than the hash.
func (c *Container) Places(r epk.Range) (lo, hi []byte, exact bool, err error) {
	kind, size := c.Def().PartitionKey.EPKKind(), c.placeLen()
	if lo, err = epk.ParseBoundary(kind, r.Min); err == nil {
		hi, err = epk.ParseBoundary(kind, r.Max)
	}
	if err != nil {
		return nil, nil, false, status.New(status.BadRequest, "The range of effective partition keys %q to %q is "+
			"malformed.", r.Min, r.Max)
	}
	exact = true
	if kind == epk.V1 {
		exact = !longer(lo, r.Min)
		if longer(hi, r.Max) {
			exact, hi = false, keys.After(hi)
		}
	}
	return least(lo, size), least(hi, size), exact, nil
}

// longer reports whether a V1 boundary text is longer than the hash that it was parsed to.
func longer(place []byte, text string) bool {
	return len(place) == 4 && epk.CompareText(epk.BoundaryText(epk.V1, place), text) < 0
}

// least returns the least placement of size bytes that is not below a boundary.
func least(boundary []byte, size int) []byte {
	if len(boundary) <= size {
		return boundary
	}
	if len(bytes.Trim(boundary[size:], "\x00")) > 0 {
		return keys.After(boundary[:size])
	}
	return boundary[:size]
}
