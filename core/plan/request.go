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
	// PK holds the values of its key. Without HasPK these are the first values of a hierarchical key that the query is
	// restricted to.
	PK []value.Value
	// ByID says that the partition key is the id. Then a logical partition has one item, and index entries of equal
	// value are in creation order.
	ByID bool
	// WholeSlots says that the query reads each of its slots completely.
	WholeSlots bool

	OrderBy  []access.Path // wanted order; none = what Shown says
	Desc     []bool        // which of them descend
	Computed bool          // a key of the order isn't the value at its path
	Near     *Near         // the order is that of distances
	// Own says that an item has at most one key, which is one of its values at the order's path or at Beside, and that
	// items without a key aren't wanted.
	Own    bool
	Beside access.Path
	Shown  Shown
	// Collation says what is known about the order of values.
	Collation access.Collation

	Limit    int  // rows wanted in all, 0 = all
	Page     int  // rows wanted now, 0 = unknown
	Filtered bool // the language has an exact filter
	// Explain says that the tree is shown: then it has figures and the alternatives. The choice is the same without it.
	Explain bool

	// Needs are the paths that the query looks at, nil = the whole item. Whole says that the query reads to the end and
	// takes no continuation. Repeat, with Whole, says that equal rows may be given as one.
	Needs  []access.Path
	Want   Want
	Whole  bool
	Repeat bool

	From Resume
}

// Shown is the order of the rows of a query without OrderBy.
type Shown uint8

// Orders of rows without OrderBy.
const (
	// AnyOrder is for readers that don't show the order: aggregates, sorts, groups. The rows come in any stable order.
	AnyOrder Shown = iota
	// CreationByPartition gives the physical partitions in turn, and the items of each in creation order up to
	// MaxCreation items. Larger ones are given in the order of storage.
	CreationByPartition
	// Creation gives creation order over all partitions, within the same bounds.
	Creation
	// Oldest and Newest give creation order and its reverse, at any size and cost.
	Oldest
	Newest
)

// exact reports whether the order is given at any size.
func (s Shown) exact() bool { return s >= Oldest }

// Want says which of the matching rows a reader needs. A source may always give more.
type Want uint8

// Values of Want.
const (
	WantAll    Want = iota
	WantValues      // one row for each combination of values at Needs
	WantEnds        // the least and greatest value of each kind at Needs[0]
	WantTally       // WantEnds, with Whole, and how many rows have a value there and how many have none: Times
)

// Near describes an order by distance: the distances of the shapes at Path from a place, as numbers. Items without a
// shape have no distance and may have any key. Within returns a region that every shape at most that distance away
// meets.
type Near struct {
	Path   access.Path
	Within func(dist float64) *geo.Region
	// First is a small distance in its unit. There is nothing beyond Last.
	First, Last float64
}

// Resume says where a continuation starts. It keeps the access path that the query began with.
type Resume struct {
	At Position
	// Signature, with AtEntry, is the signature of the access path (access.Plan.Signature).
	Signature uint32
	// Former says that the position is in an order that no index has any more.
	Former bool
	// Cut says that the position doesn't hold all sort keys whole. Texts says that all of them are strings. Dist is the
	// first sort key if that is a number, else below 0.
	Cut, Texts bool
	Dist       float64
}

// Position is the order that a position belongs to.
type Position uint8

// Orders of positions.
const (
	AtStart    Position = iota
	AtItem              // items as they are stored
	AtEntry             // entries of an index, or numbers
	AtKeys              // sort keys
	AtCreation          // creation order
	AtRest              // items, without those that an index gave before it became unusable
)
