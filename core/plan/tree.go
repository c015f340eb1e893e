package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

// Op says what a node does.
type Op uint8

// The nodes. Rows flow from the leaves to the root.
const (
	// Leaves: they read candidates.

	Nothing       Op = iota // no row
	Points                  // the items and logical partitions of Keys
	PartitionScan           // the items of one logical partition, as they are stored: by id
	Scan                    // the items, as they are stored
	IndexScan               // the entries of Leaf on a path; items are fetched unless Covered
	CompositeScan           // the same on a composite index or a tuple path
	SpatialScan             // the same on the cells of a place
	EndsScan                // the entries at the ends of each class of values
	TallyScan               // the same, with the number of items that have a value

	// What makes one stream of several leaves.

	Union     // items that any leaf names, by number
	Intersect // items that all leaves name, by number

	// Orders that need no sort.

	Merge         // the streams of the slots, each in the wanted order
	IDOrder       // a logical partition as it is stored
	KeyOrder      // logical partition by logical partition, by its key
	NameOrder     // the names of the entries, sorted; then items are fetched
	CreationOrder // creation order, in stretches of placements

	// What needs more.

	Missing // an empty row for each item without an entry
	Sort    // all rows
	TopK    // the first Window rows of all
	Rings   // a TopK whose candidates are places in growing rings
	Filter  // the language's exact filter
	Limit   // the first rows
)

var opNames = [...]string{"Nothing", "Points", "PartitionScan", "Scan", "IndexScan", "CompositeScan", "SpatialScan",
	"EndsScan", "TallyScan", "Union", "Intersect", "Merge", "IDOrder", "KeyOrder", "NameOrder", "CreationOrder",
	"Missing", "Sort", "TopK", "Rings", "Filter", "Limit"}

// String is the node's name as EXPLAIN shows it.
func (o Op) String() string { return opNames[o] }

// Node is a step of a query.
type Node struct {
	Op   Op
	Kids []*Node
	Leaf *access.Pred // of scans of an index; of Rings the first ring
	Keys []access.Key // of Points
	Why  string

	// Rows and Cost are estimates: how many rows the node gives, and what it costs with what is below it, in the time
	// of an index entry. Below 0: unknown, since nothing was counted.
	Rows, Cost float64

	Covered  bool // rows are made of entries
	ByNumber bool // entries are gathered, and rows come by item number: an item may have several entries
	Repeat   bool // rows of one value may be given as one
	Once     bool // of entries with one value one is enough
	OneValue bool // of CreationOrder: the entries have one value, whose items stand in creation order in each slot
	Gather   bool // of CreationOrder: entries are gathered first, and merged where there are many
	Window   int  // of Sort, TopK and Rings: rows held at a time, 0 = all
	Count    int  // of Limit
	Dist     float64

	Given   int64 // rows that it gave
	Entries int64 // index entries that it read
}

// Tree is a plan.
type Tree struct {
	Access access.Plan // what finds the candidates
	Root   *Node
	Lost   []Alternative
	// Rest: an index can't be used any more, and this is a scan of what it had not given.
	Rest bool

	mem  [4]Node // mostly these are all
	kids [4]*Node
	used int
}

// Alternative is an access path that lost. Its cost is below 0 where it was not counted.
type Alternative struct {
	Access     access.Plan
	Rows, Cost float64
}

// node adds a node above another one, which may be nil.
func (t *Tree) node(op Op, below *Node) *Node {
	var n *Node
	if t.used < len(t.mem) {
		n = &t.mem[t.used]
	} else {
		n = &Node{}
	}
	n.Op, n.Rows, n.Cost = op, unknown, unknown
	if below != nil {
		n.Rows, n.Cost = below.Rows, below.Cost
		if t.used < len(t.kids) {
			t.kids[t.used] = below
			n.Kids = t.kids[t.used : t.used+1 : t.used+1]
		} else {
			n.Kids = []*Node{below}
		}
	}
	t.used++
	return n
}

// Find returns the first node with an operation, from the root down; nil when there is none.
func (t *Tree) Find(op Op) *Node { return t.Root.find(op) }

func (n *Node) find(op Op) *Node {
	if n.Op == op {
		return n
	}
	for _, k := range n.Kids {
		if f := k.find(op); f != nil {
			return f
		}
	}
	return nil
}

// Leaves is how many leaves of a filter are scanned.
func (t *Tree) Leaves() int { return t.Root.leaves() }

func (n *Node) leaves() (many int) {
	for _, k := range n.Kids {
		many += k.leaves()
	}
	if n.Leaf != nil {
		many++
	}
	return many
}

// lose keeps an access path that was not chosen.
func (x *chooser) lose(p access.Plan) {
	rows, cost := x.estimate(&p)
	x.lost = append(x.lost, Alternative{p, rows, cost})
}
