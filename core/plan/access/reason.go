package access

// Reason says why a step of a plan was chosen. It is a number, because every query has some, and few queries show them.
type Reason uint8

// Reasons.
const (
	NoReason Reason = iota
	Never
	OnlyItem
	NamesIDs
	NamesKeys
	Unusable
	Rebuilding
	BeganWithScan
	Began
	NoCondition
	TooMany
	MostSelective
	EveryAlternative
	FewInAll
	RangeAndOrder
	RangesAndOrder
	EntryOfEvery
	EntryOfKey
	CompositeOrder
	CompositeOrderInside
	OrderInside
	RangeInside
	CompositeInside
	ItemsInside
	EqualityInside
	BestEqualityInside
	PlacesInside
	EntriesTell
	EntriesTellInOrder
	EntriesAndCount
	AlternativesTell
	EntriesNameAll
	ColumnsTell
	AskedFor
	FewPoints
	FewItems
	OneValue
	FewNamed
	StoredByID
	EachPartition
	KeysGiveOrder
	NamesSorted
	IfFewer
	IfFar
	GrowingRings
)

var reasons = [...]string{
	NoReason:             "",
	Never:                "the filter is never true",
	OnlyItem:             "the item of a logical partition",
	NamesIDs:             "the filter names ids in one logical partition",
	NamesKeys:            "the filter names partition keys",
	Unusable:             "the index that the query began with can't be used any more",
	Rebuilding:           "the index is being rebuilt",
	BeganWithScan:        "the continuation began with a scan",
	Began:                "the continuation began with it",
	NoCondition:          "no condition that the index can answer",
	TooMany:              "the conditions select too many items for look-ups one by one",
	MostSelective:        "most selective condition",
	EveryAlternative:     "every alternative is indexed",
	FewInAll:             "few items satisfy all of the conditions",
	RangeAndOrder:        "range and order are on one path",
	RangesAndOrder:       "ranges and order are on one path",
	EntryOfEvery:         "every item has an entry on the path of the order",
	EntryOfKey:           "the entries of the keys give the order, and few rows are wanted",
	CompositeOrder:       "a composite index gives the order",
	CompositeOrderInside: "a composite index gives the order inside one logical partition",
	OrderInside:          "the entries give the order, and few of other logical partitions lie between",
	RangeInside:          "few entries of the physical partition satisfy the condition",
	CompositeInside:      "a composite index inside one logical partition",
	ItemsInside:          "items of one logical partition",
	EqualityInside:       "an equality inside one logical partition",
	BestEqualityInside:   "the most selective equality inside one logical partition",
	PlacesInside:         "few places inside one logical partition",
	EntriesTell:          "the entries tell all that is wanted",
	EntriesTellInOrder:   "the entries tell all that is wanted, in its order",
	EntriesAndCount:      "the entries and the number of items tell all",
	AlternativesTell:     "the entries of all alternatives tell all that is wanted",
	EntriesNameAll:       "the entries name every item and tell all that is wanted",
	ColumnsTell:          "the columns tell all that is wanted",
	AskedFor:             "the order was asked for",
	FewPoints:            "few points",
	FewItems:             "few items",
	OneValue:             "items with one value stand in creation order in each slot",
	FewNamed:             "the index names few items",
	StoredByID:           "a logical partition is stored in the order of its ids",
	EachPartition:        "each logical partition in turn",
	KeysGiveOrder:        "the index of the partition key gives the order",
	NamesSorted:          "the names of few items are sorted before the items are read",
	IfFewer:              "instead, if a sample of the walk finds few rows",
	IfFar:                "instead, if too many entries of other logical partitions lie between",
	GrowingRings:         "the nearest places in growing rings",
}

// String is the reason as EXPLAIN shows it.
func (r Reason) String() string { return reasons[r] }
