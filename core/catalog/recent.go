package catalog

import (
	"hash/maphash"
	"sync/atomic"
)

// recent caches look-ups of containers by name. A hit costs one hash and one comparison, where the tables cost a
// comparison for each level of a B-tree. Its content is valid for one state of the catalog: after a change all of it is
// out of date. A place isn't replaced before that, so two names with the same place don't evict each other in turn.
//
// It is safe for concurrent use.
type recent struct {
	seed   maphash.Seed
	places [1 << recentBits]atomic.Pointer[recentName]
}

const recentBits = 14

// recentName is a container under its name.
type recentName struct {
	serial uint64 // of the state
	db, id string
	k      *Container
}

// at returns the place for a name.
func (r *recent) at(db, id string) *atomic.Pointer[recentName] {
	h := maphash.String(r.seed, id) + maphash.String(r.seed, db)<<1
	return &r.places[h>>(64-recentBits)]
}
