package exec

import "github.com/orrerydb/orrery/core/plan"

// The planner's words that a Query uses.
type (
	// Near says that an order is that of the distances from a place.
	Near = plan.Near
	// Shown says in which order the rows of a query without OrderBy come.
	Shown = plan.Shown
	// Want says which rows of those that match a reader needs.
	Want = plan.Want
)

// Their values.
const (
	AnyOrder            = plan.AnyOrder
	CreationByPartition = plan.CreationByPartition
	Creation            = plan.Creation
	Oldest              = plan.Oldest
	Newest              = plan.Newest

	WantAll    = plan.WantAll
	WantValues = plan.WantValues
	WantEnds   = plan.WantEnds
	WantTally  = plan.WantTally
)
