package plan

import (
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Stats is all that the planner knows about the data. Tests replace it by fixed answers.
//
// The methods are sorted by the cost of an answer. Methods whose names begin with Count read index entries. They are
// called last, only where the answer can change the choice, and each has a bound.
type Stats interface {
	// Answers from memory.

	Policy() *index.Policy
	IndexReady() bool // false: the index is being rebuilt
	KeyPaths() [][]string
	Items() int64 // in the container, about
	Slots() int   // parts of slots that the query reads
	// Size is the approximate number of items in these.
	Size() int64
	// Classes says which classes of values the index of these slots has ever held, a bit for each class byte c at c>>3.
	Classes() uint32
	// MayHoldForeign reports whether any slot may hold kinds that JSON lacks. KeysMayBeForeign reports whether
	// partition keys or ids may be of such kinds, whatever the policy indexes. MayHoldGraphForm reports whether any
	// slot may hold vertex properties (index.GraphForm).
	MayHoldForeign() bool
	KeysMayBeForeign() bool
	MayHoldGraphForm() bool
	// MayHoldInColumn reports whether any slot may hold the feature that an id of index.Column stands for, in a column
	// of a composite index.
	MayHoldInColumn(id uint64) bool
	// Coverable reports whether entries show which items exist. They don't where items can expire.
	Coverable() bool

	// Answers that take one look-up.

	PartitionItems() int64 // of the logical partition that the query is restricted to
	SlotItems() int64      // of its slot
	// LargestStretch is the approximate number of items in the largest range whose items come in one creation order.
	LargestStretch() int64

	// Answers from facts of the slots, see store.Fact. If a fact is unknown, the answer may be no the first time. The
	// query is planned again when the fact is known.

	// MayHoldElements reports whether a path may have array elements in any slot.
	MayHoldElements(p access.Path) bool
	// InOrder reports whether the index entries at a path are in the order of the values, one entry for each item. It
	// holds inside each class of values.
	InOrder(p access.Path) bool
	// InOneClass reports whether InOrder holds and all entries are of one class.
	InOneClass(p access.Path) bool
	// OwnInOrder reports whether a walk of the entries at a path passes the keys of all items in their order, where
	// items may have several values there, and the key may also be at a path beside: see Request.Own.
	OwnInOrder(p, beside access.Path) bool
	// NamesEveryItem reports whether the index has exactly one entry of each item for the value at a path, or for its
	// absence. EveryItemHas reports whether InOneClass holds too.
	NamesEveryItem(p access.Path) bool
	EveryItemHas(p access.Path) bool
	// TellsCount reports whether it is known how many items have a value at a path.
	TellsCount(p access.Path) bool
	// OnlyTexts reports whether every item has one entry at a path, and all are strings that were not cut.
	OnlyTexts(p access.Path) bool
	// IDsInOneClass reports whether all ids of the logical partition are of one class.
	IDsInOneClass() bool

	// Answers that take a count of index entries.

	// CountShare estimates the share of the items (0..1) that have an entry in a leaf's intervals. It counts at most
	// entries entries in a slot; 1 may mean that there are more.
	CountShare(leaf *access.Pred, entries int) float64
	// CountPlaces counts the entries of a spatial leaf in all slots, up to a limit. CountInSlot counts the entries of
	// any leaf in the slot of the logical partition, including those of other partitions.
	CountPlaces(leaf *access.Pred, limit int) int
	CountInSlot(leaf *access.Pred, limit int) int
	// CountKeyed counts the items that keys name, up to a limit.
	CountKeyed(ks []access.Key, limit int64) int64
	// CountNamed gathers what an access path by index names. It gathers at most entries entries and returns false when
	// there are more. CountTexts does the same for names that sort as their partition keys and ids do; it also returns
	// false when some of these aren't strings. The query reads what they have gathered first.
	CountNamed(a *access.Plan, entries int) bool
	CountTexts(a *access.Plan, entries int) bool

	// CountRows estimates the number of items that have an entry in a leaf's intervals, for EXPLAIN. It counts at most
	// entries entries in each of some slots. more says that the count ended there.
	CountRows(leaf *access.Pred, entries int) (rows float64, more bool)

	// Within returns the Stats of a part of what the query reads.
	Within(Scope) Stats
}

// Scope is a part of what a query reads.
type Scope struct {
	// Keys are values of a partition key with one path. The part is the slots that may hold them.
	Keys []value.Value
	// Key names one logical partition.
	Key *access.Key
	// IDs restricts a logical partition to the ids that a predicate allows.
	IDs *access.Pred
}
