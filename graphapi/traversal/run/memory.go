package run

import (
	"math/big"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// maxHeld is the largest number of traversers and values, of any size, that one request may keep.
const maxHeld = 2_000_000

// memory counts what one request keeps: traversers in queues and barriers, groups, side effects, the values seen by
// dedup(). Their number is limited. Their bytes are counted in an account of the budget, which is opened when the first
// value is kept.
type memory struct {
	budget *budget.Budget
	acct   *budget.Account
	n      int
}

// grow counts n values with the given total of bytes. It fails with an *Error if the request keeps too many values, and
// with a *status.Error if the request, or all requests together, keep too many bytes.
func (m *memory) grow(n int, bytes int64) error {
	if m.n+n > maxHeld {
		return tooMuch()
	}
	if m.acct == nil {
		m.acct = m.budget.Open("traversal")
	}
	if err := m.acct.Grow(bytes); err != nil {
		return err
	}
	m.n += n
	return nil
}

func tooMuch() error {
	return errf(Memory, "The traversal exceeds the memory that one request may use")
}

func (m *memory) shrink(n int, bytes int64) {
	m.n -= n
	m.acct.Shrink(bytes)
}

func (m *memory) close() { m.acct.Close() }

// hold counts a value that is kept until the end of the request.
func (x *exec) hold(v any) error { return x.mem.grow(1, sizeOf(v)) }

// room reports whether a value of that many bytes may be built. The value isn't counted: it is kept for a moment, or
// counted by the step that keeps it.
func (x *exec) room(bytes int64) error {
	err := x.mem.grow(0, bytes)
	if err == nil {
		x.mem.shrink(0, bytes)
	}
	return err
}

// holder counts what one step keeps, so that it can be released.
type holder struct {
	x     *exec
	n     int
	bytes int64
}

// hold counts n values with the given total of bytes.
func (h *holder) hold(x *exec, n int, bytes int64) error {
	if err := x.mem.grow(n, bytes); err != nil {
		return err
	}
	h.x = x
	h.n += n
	h.bytes += bytes
	return nil
}

// keep counts a traverser. drop uncounts it.
func (h *holder) keep(x *exec, t *trav) error {
	cost := t.size()
	if err := h.hold(x, 1, cost); err != nil {
		return err
	}
	t.cost = cost
	return nil
}

func (h *holder) drop(t *trav) {
	cost := min(t.cost, h.bytes)
	t.cost = 0
	if cost > 0 && h.n > 0 {
		h.n--
		h.bytes -= cost
		h.x.mem.shrink(1, cost)
	}
}

// release releases everything.
func (h *holder) release() {
	if h.n > 0 || h.bytes > 0 {
		h.x.mem.shrink(h.n, h.bytes)
		h.n, h.bytes = 0, 0
	}
}

// Sizes of the parts of values in bytes in the runtime's layout, including the waste of allocation. They are
// approximate.
const (
	travSize    = 96
	valueSize   = 32 // an interface and its value
	elementSize = 320
	entrySize   = 96 // of a map, including its index
	nodeSize    = 64 // of a path
	rankedSize  = 48 // a value to sort, without its keys
	pairSize    = 80 // a list of two values, without them
)

// size returns approximately how many bytes a traverser keeps in memory. Of its path only the nodes count: the values
// in it were counted where they are kept, or are few.
func (t *trav) size() int64 {
	n := travSize + sizeOf(t.v)
	if t.path != nil {
		n += int64(t.path.n) * nodeSize
	}
	if t.sack != nil {
		n += sizeOf(t.sack)
	}
	return n
}

// sizeOf returns the approximate size of a value in bytes.
func sizeOf(v any) int64 {
	switch c := v.(type) {
	case string:
		return valueSize + int64(len(c))
	case *gvalue.Vertex:
		if n := graph.VertexOf(c); n != nil {
			return elementSize + int64(len(n.Doc))
		}
		return elementSize
	case *gvalue.Edge:
		if n := graph.EdgeOf(c); n != nil {
			return elementSize + int64(len(n.Doc))
		}
		return elementSize
	case *gvalue.VertexProperty:
		return elementSize + sizeOf(c.Value)
	case []any:
		return sizeOfList(c)
	case *gvalue.Set:
		return sizeOfList(c.Items()) + entrySize*int64(c.Len())
	case *gvalue.Path:
		return sizeOfList(c.Objects) + valueSize*int64(len(c.Labels))
	case *gvalue.Map:
		n := int64(valueSize)
		for _, e := range c.Entries() {
			n += entrySize + sizeOf(e.Key) + sizeOf(e.Value)
		}
		return n
	case *gvalue.BulkSet:
		n := int64(valueSize)
		for _, i := range c.Items() {
			n += entrySize + sizeOf(i.Value)
		}
		return n
	case *mapEntry:
		return valueSize + sizeOf(c.k) + sizeOf(c.v)
	case *big.Int:
		return valueSize + int64(c.BitLen()/8)
	case *gvalue.BigDecimal:
		return valueSize + int64(c.Unscaled.BitLen()/8)
	}
	return valueSize
}

// sizeOfKeys returns the approximate size in bytes of sort keys. Elements are those of the sorted traversers, which are
// counted already.
func sizeOfKeys(keys []any) (n int64) {
	for _, k := range keys {
		switch k.(type) {
		case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty:
			n += valueSize
		default:
			n += sizeOf(k)
		}
	}
	return n
}

func sizeOfList(l []any) int64 {
	n := int64(valueSize)
	for _, v := range l {
		n += valueSize/2 + sizeOf(v)
	}
	return n
}
