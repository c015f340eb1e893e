package exec

import "github.com/orrerydb/orrery/core/plan"

// Types of the planner that a Query uses.
type (
	// Near describes an order by the distances from a place.
	Near = plan.Near
	// Shown is the order of the rows of a query without OrderBy.
	Shown = plan.Shown
	// Want says which of the matching rows a reader needs.
	Want = plan.Want
)

// Values of Shown and Want.
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
