package catalog

import (
	"hash/maphash"
	"sync/atomic"
)

// recent finds containers that were found before by one hash and one comparison, as a map would, while the tables take
// a comparison for each level of a B-tree's nodes. What is in it is true for one state of the catalog: with a change
// all of it is out of date. A place is taken until then, so two names that share one don't push each other out.
//
// Safe for concurrent use.
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

// at returns the place of a name.
func (r *recent) at(db, id string) *atomic.Pointer[recentName] {
	h := maphash.String(r.seed, id) + maphash.String(r.seed, db)<<1
	return &r.places[h>>(64-recentBits)]
}
