// Package doc is the document codec: stored bytes (BSON), path look-up without decoding, JSON in and out, edits.
//
// All functions that write append to a byte slice dst and return it. When they fail they return dst unchanged.
// Untrusted bytes enter through FromJSON, FromExtJSON or Validate; later code doesn't check them again. Readers stop at
// malformed bytes and never panic on them.
package doc

import (
	"bytes"

	"github.com/orrerydb/orrery/core/value"
)

// Doc is a validated BSON document, the stored form of an item. The identity field inside it is "_id".
type Doc = []byte

// DefaultMaxDepth is the service's limit for nested arrays and objects; the document itself is level 1.
const DefaultMaxDepth = 128

// Empty returns a document without fields.
func Empty() Doc { return Doc{5, 0, 0, 0, 0} }

// Value returns d as a value.
func Value(d Doc) value.Value { return value.ObjectOf(d) }

// Names says how the top-level field names of a document are shown outside.
type Names uint8

const (
	// Stored shows the names as they are stored and hides nothing (MongoDB's view).
	Stored Names = iota
	// NoSQL is the view of NoSQL, Gremlin and Table. The stored `_id` is shown as `id`. A stored field `id`, which only
	// Mongo can write, is hidden. A user's field `_id` is stored as "\x01_id", and "\x01_id" as "\x01\x01_id", so names
	// never collide. The system fields _rid, _self, _etag, _ts, _attachments and _lsn are not part of a document: they
	// are dropped on input and hidden on output.
	NoSQL
)

// escape is the first byte in the stored name of a user's field that would otherwise be read as the identity.
const escape = 0x01

// Stored returns the stored form of a shown top-level name. ok is false for a name that isn't stored (a system field).
func (n Names) Stored(name string) (stored string, ok bool) {
	if n == Stored {
		return name, true
	}
	switch {
	case name == "id":
		return "_id", true
	case isSystem(name):
		return "", false
	case isEscapable(name):
		return string(rune(escape)) + name, true
	}
	return name, true
}

// Shown returns the shown form of a stored top-level name. ok is false for a hidden name.
func (n Names) Shown(stored []byte) (name []byte, ok bool) {
	if n == Stored || len(stored) == 0 {
		return stored, true
	}
	switch stored[0] {
	case '_':
		if string(stored) == "_id" {
			return stored[1:], true
		}
		if isSystem(string(stored)) {
			return nil, false
		}
	case 'i':
		if string(stored) == "id" {
			return nil, false
		}
	case escape:
		if isEscapable(string(stored)) {
			return stored[1:], true
		}
	}
	return stored, true
}

func isSystem(name string) bool {
	switch name {
	case "_rid", "_self", "_etag", "_ts", "_attachments", "_lsn":
		return true
	}
	return false
}

// isEscapable reports whether name is "_id" after zero or more escape bytes.
func isEscapable(name string) bool {
	for len(name) > 3 && name[0] == escape {
		name = name[1:]
	}
	return name == "_id"
}

// AppendElement appends one BSON element; Undefined appends nothing. name must not contain a NUL.
func AppendElement(dst []byte, name string, v value.Value) []byte {
	return value.AppendElement(dst, name, v)
}

// AppendValue appends the BSON bytes of v without type and name.
func AppendValue(dst []byte, v value.Value) []byte { return value.AppendBSON(dst, v) }

// Equal reports whether two documents have the same bytes.
func Equal(a, b Doc) bool { return bytes.Equal(a, b) }
