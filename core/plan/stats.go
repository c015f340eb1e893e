package plan

import (
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Stats is all that the planner knows of the data. A test fakes it.
//
// The methods are in the order of what an answer costs. Those whose names begin with Count read index entries: they are
// asked last, only where the answer can change the choice, and each has a bound.
type Stats interface {
	// What is in memory.

	Policy() *index.Policy
	IndexReady() bool // false: the index is being rebuilt
	KeyPaths() [][]string
	Items() int64 // in the container, about
	Slots() int   // parts of slots that the query reads
	// Size is about how many items these hold.
	Size() int64
	// Classes says which classes of values the index of these slots has ever held, a bit for each class byte c at c>>3.
	Classes() uint32
	// MayHoldForeign reports whether any slot may hold kinds that JSON lacks; KeysMayBeForeign whether partition keys
	// or ids may be of such kinds, whatever the policy indexes; MayHoldGraphForm whether any slot may hold vertex
	// properties (index.GraphForm).
	MayHoldForeign() bool
	KeysMayBeForeign() bool
	MayHoldGraphForm() bool
	// MayHoldInColumn reports whether a column of a composite index may have held in any slot what an id of
	// index.Column stands for.
	MayHoldInColumn(id uint64) bool
	// Coverable reports whether entries tell which items there are: not where items can expire.
	Coverable() bool

	// What one look-up tells.

	PartitionItems() int64 // of the logical partition that the query is restricted to
	SlotItems() int64      // of its slot
	// LargestStretch is about how many items the largest range holds whose items come in one creation order.
	LargestStretch() int64

	// What facts of the slots tell, see store.Fact. Where one is unknown the answer may be no the first time, and the
	// query is planned again when it is known.

	// MayHoldElements reports whether a path may have array elements in any slot.
	MayHoldElements(p access.Path) bool
	// InOrder reports whether the index entries at a path are in the order of the values, one an item, as far as they
	// are of one class.
	InOrder(p access.Path) bool
	// InOneClass reports whether they are of one class besides.
	InOneClass(p access.Path) bool
	// NamesEveryItem reports whether the index has exactly one entry of each item for the value at a path, or for its
	// absence; EveryItemHas whether these are InOneClass besides.
	NamesEveryItem(p access.Path) bool
	EveryItemHas(p access.Path) bool
	// TellsCount reports whether it is known how many items have a value at a path.
	TellsCount(p access.Path) bool
	// OnlyTexts reports whether every item has one entry at a path, which is an uncut text.
	OnlyTexts(p access.Path) bool
	// IDsInOneClass reports whether all ids of the logical partition are of one class.
	IDsInOneClass() bool

	// What must be counted.

	// CountShare estimates the share of the items (0..1) that have an entry in a leaf's intervals. It counts at most so
	// many entries in a slot; 1 may mean that there are more.
	CountShare(leaf *access.Pred, entries int) float64
	// CountPlaces counts the entries of a spatial leaf in all slots, up to a limit; CountInSlot those of any leaf in
	// the slot of the logical partition, of other partitions too.
	CountPlaces(leaf *access.Pred, limit int) int
	CountInSlot(leaf *access.Pred, limit int) int
	// CountKeyed counts the items that keys name, up to a limit.
	CountKeyed(ks []access.Key, limit int64) int64
	// CountNamed gathers what an access path by index names: at most so many entries; false: there are more. CountTexts
	// is the same for names that sort as their partition keys and ids do; false when some aren't texts, too. What they
	// gather is what the query reads first.
	CountNamed(a *access.Plan, entries int) bool
	CountTexts(a *access.Plan, entries int) bool

	// Within returns what is known of a part of what the query reads.
	Within(Scope) Stats
}

// Scope is a part of what a query reads.
type Scope struct {
	// Keys, the values of a partition key of one path: the slots that may hold them.
	Keys []value.Value
	// Key: one logical partition.
	Key *access.Key
	// IDs: of a logical partition the ids that a predicate leaves.
	IDs *access.Pred
}
