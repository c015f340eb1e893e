package graph

import (
	"context"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// KeyMode is how the graph's documents are partitioned.
type KeyMode uint8

const (
	// KeySystem is a plain graph: the hidden field _partitionKey has the id of the vertex, or of the edge's out-vertex.
	KeySystem KeyMode = iota
	// KeyProperty is a graph whose partition key is a property.
	KeyProperty
	// KeyID is a container partitioned by the id itself (a MongoDB collection that isn't sharded).
	KeyID
	// KeyOther is a container whose partition key isn't a single property. Its vertices can be read, changed and
	// dropped, but not added. A key is an array of the values at its paths.
	KeyOther
)

// Store stores a graph. Documents are BSON in the stored form (see element.go). All methods are safe for concurrent
// use.
type Store interface {
	// Key returns how documents are partitioned; name is the property with KeyProperty.
	Key() (mode KeyMode, name string)
	// Get reads one document; Bytes is nil if there is none. The bytes are never modified.
	Get(ctx context.Context, pk, id value.Value) (Doc, error)
	// Find looks documents up.
	Find(ctx context.Context, f Find) (Rows, error)
	// Create writes a new document. An id that exists is status.Conflict.
	Create(ctx context.Context, pk, id value.Value, doc []byte) (float64, error)
	// Update reads a document and writes the result of f, or removes the document if f returns drop. After a conflict f
	// is called again. found is false if the document doesn't exist; f isn't called then. If f returns nil without
	// drop, the document isn't changed.
	Update(ctx context.Context, pk, id value.Value,
		f func(old []byte) (doc []byte, drop bool, err error)) (found bool, charge float64, err error)
}

// Doc is a document, with the charge of reading it.
type Doc struct {
	Bytes  []byte // nil: not found
	Charge float64
}

// Find is a look-up.
type Find struct {
	PK   value.Value  // Undefined: all partitions
	Pred *access.Pred // selects a superset; nil: all
	// Match is the exact filter; nil: all. The document is valid only during the call.
	Match func(doc []byte) (bool, error)
	// Limit is the number of documents that are needed; more may be returned. 0: all.
	Limit int
	// First is the order of the documents. Those without the property aren't returned. nil: that of Shown, and all.
	// Rows.Walked tells whether an index gives it, or all are sorted.
	First *First
	// Shown says that the client gets the elements, so they are returned in the order of their creation.
	Shown bool
	// Explain says that the Rows will be asked how they were found (Explainer).
	Explain bool
}

// First is an order of elements by a property, or by their ids.
type First struct {
	Key    string // "": by ids
	Edges  bool   // of edges; else of vertices
	Desc   bool
	Values func(a, b value.Value) int // compares values as they are stored
	// Outer says that an element counts at the least of its values, or with Desc at the greatest; else at the first.
	Outer bool
}

// Of returns the key of an element, Undefined if it has none.
func (f *First) Of(d []byte) value.Value {
	switch {
	case f.Key == "":
		return idKey(d)
	case !f.Outer:
		return firstValue(d, f.Key)
	}
	field := value.ObjectOf(d).Get(StoredKey(f.Key))
	if !field.IsDefined() || IsEdge(d) {
		return field
	}
	var key value.Value
	EachValue(field, func(_ int, val, _, _ value.Value) bool {
		if !key.IsDefined() || f.Values(val, key) < 0 != f.Desc && f.Values(val, key) != 0 {
			key = val
		}
		return true
	})
	return key
}

// Totals is how many vertices and edges a graph has.
type Totals struct {
	Vertices, Edges int64
	Read            int // documents that were read to find it out
	Charge          float64
}

// Totaler is implemented by a Store that can count its elements without reading them. ok is false if it can't at the
// moment. The numbers are then to be found by Find.
type Totaler interface {
	Totals(ctx context.Context) (t Totals, ok bool, err error)
}

// Rows are the documents found. The result of Doc is valid until Next, that of Take always.
type Rows interface {
	Next() bool
	Doc() []byte
	Take() []byte
	// Made returns the position of the current document in the order of creation.
	Made() uint64
	// Walked reports whether a walk of an index gives the documents in the order of Find.First. All values of the
	// property are of one type then, and none is NaN.
	Walked() bool
	Err() error
	Close() (charge float64)
}

// Explainer is implemented by Rows that can tell how they were found, and what that has cost so far.
type Explainer interface {
	Explain() *plan.Explanation
}
