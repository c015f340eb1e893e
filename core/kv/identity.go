package kv

import (
	"context"
	"time"
)

// Format is the version of the core's keys and values in a store. A change that older servers can't read gets the next
// number. Stores of every earlier format can be read. They can be written to once they are upgraded.
const Format = 3

// Identity says which store an engine has open.
type Identity struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`      // a UUID; a copy of a store has the same one
	Created time.Time `json:"created"` // UTC, in seconds; for a store older than identities: when it got one
}

// Upgradable is an Engine that can open a store of an older format whose processes must have ended first, because
// several may share it. Such a store keeps its format until Upgrade.
type Upgradable interface {
	Identified
	// Upgrade gives the store's identity the present format, for good. It fails if another process has changed the
	// identity since the store was opened.
	Upgrade(ctx context.Context) error
}

// Identified is an Engine whose store has an identity.
type Identified interface {
	Identity() Identity
}
