package graph

import (
	"context"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// KeyMode says how the graph's documents are partitioned.
type KeyMode uint8

const (
	// KeySystem is a plain graph: the hidden field _partitionKey holds the vertex's id, or the edge's out-vertex's.
	KeySystem KeyMode = iota
	// KeyProperty is a graph whose partition key is a property.
	KeyProperty
	// KeyID is a container partitioned by the id itself (a MongoDB collection that isn't sharded).
	KeyID
	// KeyOther is a container whose key is no single property. Its vertices can be read, changed and dropped, but not
	// added here; a key is an array of the values of its paths.
	KeyOther
)

// Store is what a graph is kept in. Documents are BSON in the stored form (see element.go). All methods may be called
// by several requests at a time.
type Store interface {
	// Key returns how documents are partitioned; name is the property with KeyProperty.
	Key() (mode KeyMode, name string)
	// Get reads one document; it returns nil when there is none. The bytes are the caller's to read for ever.
	Get(ctx context.Context, pk, id value.Value) (Doc, error)
	// Find looks documents up.
	Find(ctx context.Context, f Find) (Rows, error)
	// Create writes a new document; a taken id is status.Conflict.
	Create(ctx context.Context, pk, id value.Value, doc []byte) (float64, error)
	// Update reads a document and writes what f makes of it, or removes it when f returns drop; f may be called again
	// on a race. found is false when there is no document (f isn't called then). f returning nil and no drop leaves it
	// as it is.
	Update(ctx context.Context, pk, id value.Value,
		f func(old []byte) (doc []byte, drop bool, err error)) (found bool, charge float64, err error)
}

// Doc is a document with the charge of reading it.
type Doc struct {
	Bytes  []byte // nil: not found
	Charge float64
}

// Find is a look-up.
type Find struct {
	PK   value.Value  // Undefined: all partitions
	Pred *access.Pred // a superset; nil: all
	// Match is the exact filter; nil: all. The document is valid during the call.
	Match func(doc []byte) (bool, error)
	// Limit is how many documents are taken at most; more may be given. 0: all.
	Limit int
	// Shown: the elements are given to the client, so they come in the order in which they were made.
	Shown bool
}

// Rows are the documents found. Doc is valid until Next.
type Rows interface {
	Next() bool
	Doc() []byte
	// Made is the place of the present document in the order in which documents were made.
	Made() uint64
	Err() error
	Close() (charge float64)
}

// Explainer is implemented by Rows that can tell how they were found, and what that has cost so far.
type Explainer interface {
	Explain() *plan.Explanation
}
