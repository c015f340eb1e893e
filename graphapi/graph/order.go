package graph

import (
	"math"

	"github.com/orrerydb/orrery/core"
	query "github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// An index can give the first elements in the order of a property, without a look at the others. What it knows are the
// values at paths. It isn't known whether the document at a path is a vertex or an edge, and a vertex may have its
// values at two paths (VertexPaths). So an order has one path that is walked, and exceptions: elements whose place the
// walk doesn't tell. If there are any, the index doesn't give the order.
//
// Example: g.V().order().by('age').limit(3) walks the path /age/_value. Exceptions are vertices that other APIs wrote
// with a plain field age, and vertices whose age is NaN, a date or a list.

// ErrNoOrder is returned by Find with By, and by its Rows, when the index doesn't give the order.
var ErrNoOrder = query.ErrNoOrder

// By is the order of the elements by their ids, or by the first value of a property. It leaves out elements without
// one.
type By struct {
	Desc bool
	Rows int // about how many are wanted

	vertices bool
	name     string      // stored name of the property; "": the id
	path     access.Path // that is walked
	other    access.Path // of vertices with a property: the path of plain fields
}

// Measured is implemented by Rows that know what they are taken from.
type Measured interface {
	// Size is about how many elements the graph has.
	Size() int64
	// MayHoldElements reports whether a document may have an array at a path with other elements than the values of a
	// vertex's property.
	MayHoldElements(p access.Path) bool
}

// ByProperty returns the order by a property, ok = false for a key that no property can have.
func ByProperty(vertices bool, key string, desc bool, rows int) (b By, ok bool) {
	b = By{Desc: desc, Rows: rows, vertices: vertices, name: StoredKey(key)}
	if !vertices {
		paths := EdgePaths(key)
		if paths == nil {
			return b, false
		}
		b.path = paths[0]
		return b, true
	}
	paths := VertexPaths(key)
	if paths == nil {
		return b, false
	}
	b.path, b.other = paths[0], access.Path{Segs: paths[1].Segs} // elements at it are excluded by Plain
	return b, true
}

// ByIDs returns the order by ids.
func ByIDs(vertices, desc bool, rows int) By {
	return By{Desc: desc, Rows: rows, vertices: vertices, path: access.ID}
}

// Plain is the path at which other elements of arrays would be exceptions; ok is false if there is none.
func (b *By) Plain() (p access.Path, ok bool) { return b.other, b.other.Segs != nil }

// Key returns the sort key of an element's document, Undefined if it has none.
func (b *By) Key(d []byte) (key value.Value) {
	key, _ = b.key(d)
	return key
}

// key is Key. walked says that the key is at the path that is walked.
func (b *By) key(d []byte) (key value.Value, walked bool) {
	if b.name == "" {
		o := value.ObjectOf(d)
		return o.Get(fieldID), !o.Get(fieldIDValue).IsDefined()
	}
	field := value.ObjectOf(d).Get(b.name)
	if !b.vertices || !field.IsDefined() {
		return field, true
	}
	EachValue(field, func(_ int, v, id, _ value.Value) bool {
		key, walked = v, id.IsDefined()
		return false
	})
	return key, walked
}

// Bounds of conditions.
var (
	noArray  = &access.Bound{Value: value.ArrayOf([]byte{5, 0, 0, 0, 0}), Inclusive: true} // all arrays are above it
	noObject = &access.Bound{Value: value.ObjectOf([]byte{5, 0, 0, 0, 0}), Inclusive: true}
	noText   = &access.Bound{Value: value.StringOf(""), Inclusive: true}
	noID     = &access.Bound{Value: value.StringOf("")}
)

// inOrder returns the condition on values whose order in an index is that of traversals: null, booleans, numbers,
// strings. Ids are strings.
func (b *By) inOrder(p access.Path) *access.Pred {
	if b.name == "" {
		return access.Range(p, noText, nil)
	}
	return access.Scalar(p)
}

// others returns the condition on all other values, from a bound on.
func (b *By) others(p access.Path, from *access.Bound) *access.Pred {
	below := access.In(p, value.MinKeyValue(), value.DoubleOf(math.NaN()))
	if b.name == "" {
		below = &access.Pred{Op: access.OpRange, Path: p, Any: true, Hi: noID}
	}
	return access.Or(below, &access.Pred{Op: access.OpRange, Path: p, Any: true, Lo: from})
}

// Exceptions returns the look-up for exceptions. It is to be given up after a few documents, because other elements may
// have such values.
func (b *By) Exceptions() Find {
	f := Find{Pred: b.others(b.path, noArray), Match: func(d []byte) (bool, error) {
		return IsEdge(d) != b.vertices && b.isException(d), nil
	}}
	switch {
	case b.name == "":
		f.Pred = access.Or(f.Pred, access.Exists(access.NewPath(fieldIDValue)))
	case b.vertices:
		f.Pred = access.Or(f.Pred, b.inOrder(b.other), b.others(b.other, noObject))
	}
	return f
}

func (b *By) isException(d []byte) bool {
	key, walked := b.key(d)
	switch key.Kind() {
	case value.Undefined:
		return false
	case value.Null, value.Bool:
		return !walked || b.name == ""
	case value.Int32, value.Int64, value.Double, value.Decimal:
		f := key.Float()
		return !walked || f != f || b.name == ""
	case value.String, value.Symbol:
		return !walked
	}
	return true
}

// Walk returns the look-up of the elements in the order. pred and match are the filter, as in Find.
func (b *By) Walk(pred *access.Pred, match func(d []byte) (bool, error)) Find {
	return Find{Pred: access.And(pred, b.inOrder(b.path)), Match: match, By: b}
}

// of puts the order into a query.
func (b *By) of(q *query.Query) {
	q.ByEntry, q.Page, q.Compare, q.Collation = true, b.Rows, value.CompareCosmos, access.JSONOrder
	q.OrderBy = []query.Order{{Path: b.path, Desc: b.Desc, Key: func(it *core.Item) value.Value {
		key, walked := b.key(it.Doc)
		if !walked {
			return value.Undef()
		}
		return key
	}}}
}
