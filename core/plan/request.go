package plan

import (
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Request is what a query wants.
type Request struct {
	Pred  *access.Pred
	HasPK bool // the query is restricted to one logical partition
	// PK are the values of its key; without HasPK the first ones of a hierarchical key that the query is restricted to.
	PK []value.Value
	// ByID: the partition key is the id. Then a logical partition has one item, and equal values of an index stand in
	// creation order.
	ByID bool
	// WholeSlots: it reads all of each slot that it reads of.
	WholeSlots bool

	OrderBy  []access.Path // wanted order; none = what Shown says
	Desc     []bool        // which of them descend
	Computed bool          // a key of the order isn't the value at its path
	Near     *Near         // the order is that of distances
	Shown    Shown
	// Collation says what is known of the order of values.
	Collation access.Collation

	Limit    int  // rows wanted in all, 0 = all
	Page     int  // rows wanted now, 0 = unknown
	Filtered bool // the language has an exact filter

	// Needs are the paths that the query looks at, nil = the whole item. Whole: it reads to the end and takes no
	// continuation; with Repeat equal rows may be one.
	Needs  []access.Path
	Want   Want
	Whole  bool
	Repeat bool

	From Resume
}

// Shown says in which order the rows of a query without OrderBy come.
type Shown uint8

// The orders of rows that nobody ordered.
const (
	// AnyOrder is for readers who show no order: aggregates, sorts, groups. The rows come in any stable order.
	AnyOrder Shown = iota
	// CreationByPartition gives the physical partitions one after the other, and the items of each in creation order
	// where that is affordable (see MaxCreation); else in the order of storage.
	CreationByPartition
	// Creation is creation order over all partitions where that is affordable.
	Creation
	// Oldest and Newest are creation order and its reverse, at any size and cost.
	Oldest
	Newest
)

// exact reports whether the order is given at any size.
func (s Shown) exact() bool { return s >= Oldest }

// Want says which rows of those that match a reader needs. A source may always give more.
type Want uint8

// What readers want.
const (
	WantAll    Want = iota
	WantValues      // of the rows whose values at Needs are equal, one
	WantEnds        // of the values at Needs[0], the least and greatest of each kind
	WantTally       // as WantEnds, with Whole, and how many rows have a value there and how many have none: Times tells
)

// Near says that an order is that of the distances of the shapes at Path from a place, as numbers. Items without a
// shape have no distance and any key. Within gives the region that everything at most so far away meets.
type Near struct {
	Path   access.Path
	Within func(dist float64) *geo.Region
	// First is a small distance in its unit, beyond Last there is nothing.
	First, Last float64
}

// Resume says where a continuation goes on. It keeps the choice that it began with.
type Resume struct {
	At Position
	// Signature is that of the access path (access.Plan.Signature), of AtEntry.
	Signature uint32
	// Former: the position is in an order that no index has any more.
	Former bool
	// Cut: the sort keys are not all there. Texts: all of them are strings. Dist: the first one, where it is a number,
	// else below 0.
	Cut, Texts bool
	Dist       float64
}

// Position says in which order a position is.
type Position uint8

// The orders of positions.
const (
	AtStart    Position = iota
	AtItem              // items as they are stored
	AtEntry             // entries of an index, or numbers
	AtKeys              // sort keys
	AtCreation          // creation order
	AtRest              // items, without what an index had given before it could not be used any more
)
