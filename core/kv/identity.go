package kv

import "time"

// Format is the number of the format that the core's keys and values have in a store. A change of it that older servers
// can't read is a new number. Stores of all formats before it can be read, and written to once they are upgraded.
const Format = 3

// Identity says which store an engine has open.
type Identity struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`      // a UUID; a copy of a store has it, too
	Created time.Time `json:"created"` // UTC, in seconds; of a store that is older than its identity, when it got that
}

// Identified is an Engine whose store has an identity.
type Identified interface {
	Identity() Identity
}
