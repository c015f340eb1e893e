package kv

import "time"

// Format is the version of the core's keys and values in a store. A change that older servers can't read gets the next
// number. Stores of every earlier format can be read. They can be written to once they are upgraded.
const Format = 3

// Identity says which store an engine has open.
type Identity struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`      // a UUID; a copy of a store has the same one
	Created time.Time `json:"created"` // UTC, in seconds; for a store older than identities: when it got one
}

// Identified is an Engine whose store has an identity.
type Identified interface {
	Identity() Identity
}
