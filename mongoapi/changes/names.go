package changes

import (
	"fmt"

	"github.com/orrerydb/orrery/core/value"
)

// Views is the collection with the views of a database. Its changes are events of views.
const Views = "system.views"

// UUIDOf returns the UUID of a collection: constant during its life.
func UUIDOf(rid [8]byte) value.Value {
	var uuid [16]byte
	copy(uuid[:], rid[:])
	return value.UUIDOf(uuid[:])
}

// UUIDText returns the same id as messages show it.
func UUIDText(rid [8]byte) string {
	return fmt.Sprintf("%x-%x-%x-0000-000000000000", rid[:4], rid[4:6], rid[6:])
}
