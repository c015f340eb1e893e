package plan

import (
	"github.com/orrerydb/orrery/core/plan/access"
)

// Op is the operation of a node.
type Op uint8

// Operations. Rows flow from the leaves to the root.
const (
	// Leaves read candidates.

	Nothing       Op = iota // no row
	Points                  // the items and logical partitions of Keys
	PartitionScan           // the items of one logical partition in stored order: by id
	Scan                    // the items in stored order
	IndexScan               // the entries of Leaf on a path; items are fetched unless Covered
	CompositeScan           // the same on a composite index or a tuple path
	SpatialScan             // the same on the cells of a place
	EndsScan                // the entries at the ends of each class of values
	TallyScan               // the same, with the number of items that have a value

	// Operations that make one stream of several leaves.

	Union     // items that at least one leaf names, by number
	Intersect // items that all leaves name, by number

	// Orders without a sort.

	Merge         // the streams of the slots, each in the wanted order
	IDOrder       // a logical partition in stored order
	KeyOrder      // logical partition by logical partition, by its key
	NameOrder     // the names of the entries, sorted; then items are fetched
	CreationOrder // creation order, in stretches of placements

	// Operations with more work.

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
	Op       Op
	Why      access.Reason
	Covered  bool // rows are made of entries
	ByNumber bool // entries are gathered, and rows come by item number: an item may have several entries
	Repeat   bool // rows of one value may be given as one
	Once     bool // one entry for each value is enough
	OneValue bool // of CreationOrder: the entries have one value, whose items are in creation order in each slot

	// Count is, of Points, the number of keys; of Limit, the number of rows; of Sort, TopK and Rings, the number of
	// rows that are held at a time, 0 = all; of CreationOrder with OneValue, the number of entries up to which they
	// are gathered and not merged; of Merge with a second node below it, the number of entries of other logical
	// partitions that are passed over before that one is read and sorted.
	Count int
	Leaf  *access.Pred // of scans of an index; of Rings the first ring
	Kids  []*Node

	*Figures // nil without Request.Explain
}

// Figures are what EXPLAIN shows of a node.
type Figures struct {
	// Rows and Cost are estimates: the rows that the node gives, and its cost including the nodes below it. The unit of
	// Cost is the time to walk one index entry. AtLeast says that the count of entries that they are based on ended at
	// its limit.
	Rows, Cost float64
	AtLeast    bool

	Given   int64 // rows that the node gave
	Entries int64 // index entries that the node read; below 0: it reads none
}

// Tree is a plan.
type Tree struct {
	Access access.Plan // what finds the candidates
	Root   *Node
	Lost   []Alternative // only with Request.Explain
	// Rest says that an index can't be used any more. The plan is a scan of the items that the index had not given.
	Rest bool

	// Of the Request, for what is chosen while the tree is run.
	filtered    bool
	limit, page int

	Ring float64 // of Rings: the radius of the first ring

	mem  [4]Node // enough for most plans
	kids [4]*Node
	used int
}

// Alternative is an access path that was considered and not chosen.
type Alternative struct {
	Access access.Plan
	Figures
}

// node adds a node above another one, which may be nil.
func (t *Tree) node(op Op, below *Node) *Node {
	var n *Node
	if t.used < len(t.mem) {
		n = &t.mem[t.used]
	} else {
		n = &Node{}
	}
	if n.Op = op; below != nil {
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

// Find returns the first node with an operation, searching from the root down, or nil.
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

// Leaves returns the number of index leaves that are scanned.
func (t *Tree) Leaves() (many int) {
	t.Root.eachLeaf(func(*access.Pred) { many++ })
	return many
}

// EachLeaf calls f with the leaf of each index scan, of the tree and of the alternatives.
func (t *Tree) EachLeaf(f func(*access.Pred)) {
	t.Root.eachLeaf(f)
	for i := range t.Lost {
		t.Lost[i].Node().eachLeaf(f)
	}
}

func (n *Node) eachLeaf(f func(*access.Pred)) {
	if n.Leaf != nil {
		f(n.Leaf)
	}
	for _, k := range n.Kids {
		k.eachLeaf(f)
	}
}

// lose records an access path that was not chosen, for EXPLAIN.
//
//go:noinline // called from many places, see decision 41
func (x *chooser) lose(p access.Plan) {
	if x.r.Explain && len(x.lost) < maxShown {
		x.lost = append(x.lost, Alternative{Access: p})
	}
}
