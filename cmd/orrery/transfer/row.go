// Package transfer moves data between files and running servers, and between servers. A Reader yields the rows of an
// input, a Target takes rows in batches, a Source yields the rows of a container, a Writer makes a file of them. Import
// joins a Reader and a Target, Export a Source and a Writer.
//
// The formats of files are in the package formats, the clients of the APIs in the package door.
package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Kind says what a row is.
type Kind uint8

// The kinds of rows.
const (
	Item   Kind = iota // an item, a document, or an entity
	Vertex             // a vertex in its stored form
	Edge               // an edge in its stored form, whose ends may lack their labels and partition keys
)

// Row is one row of data. It has Doc, Text, or both with the same content. Whoever passes a row on may use its bytes
// again when the call has returned.
type Row struct {
	Kind  Kind
	Place string // what the input calls the row's place, "database/container" or "container"; "" = it has no name
	Doc   []byte // BSON as MongoDB shows it: the identity is _id
	Text  []byte // JSON as its API shows it: the identity is id, an entity has PartitionKey and RowKey
	Line  int64  // in its file, from 1: a line of text, or the number of the row

	Out, In [][]byte // the edges of a vertex, as Doc, for writers that want them beside it
}

// bytes returns what identifies the row's content.
func (r *Row) bytes() []byte {
	if r.Text != nil {
		return r.Text
	}
	return r.Doc
}

// Bad is the error of a row that can't be read or that a server refuses. The rows behind it can be read.
type Bad struct {
	Line   int64
	Place  string
	Reason string
	Text   []byte // the row, as far as it is known; cut at badText bytes where it is kept
}

// Error implements error.
func (b *Bad) Error() string { return fmt.Sprintf("line %d: %s", b.Line, b.Reason) }

// Reader yields the rows of an input.
type Reader interface {
	// Next sets r to the next row. Its bytes are valid until the next call. The error is io.EOF at the end, a *Bad for
	// a row that must be left out, and anything else for an input that can't be read further.
	Next(r *Row) error
	Close() error
}

// Writer makes a file of rows.
type Writer interface {
	Add(r *Row) error
	// Close completes the file.
	Close() error
}

// MaxRow is the size of the largest row in bytes: more than any API takes as one item. A longer row is bad.
const MaxRow = 20 << 20

// DerivedID returns 16 bytes that name a row without an id. They follow from the row and its number in the input, so a
// row that is sent again keeps its id.
func DerivedID(n int64, row []byte) (out [16]byte) {
	h := sha256.New()
	var head [8]byte
	binary.LittleEndian.PutUint64(head[:], uint64(n))
	h.Write(head[:])
	h.Write(row)
	copy(out[:], h.Sum(nil))
	out[6], out[8] = out[6]&0x0f|0x80, out[8]&0x3f|0x80 // a UUID of version 8: made by its application's rule
	return out
}

// Definition is what an input says about a place, beside its rows.
type Definition struct {
	Place   string
	Options []byte   // BSON: the options of MongoDB's create; nil = none
	Indexes [][]byte // BSON: specifications of MongoDB's createIndexes, without that of _id
	Search  [][]byte // BSON: specifications of MongoDB's createSearchIndexes
}

// Defined is a Reader that knows definitions.
type Defined interface {
	Definitions() []Definition
}

// Defines is a Writer that keeps a definition. It is told before the first row.
type Defines interface {
	Define(Definition) error
}
