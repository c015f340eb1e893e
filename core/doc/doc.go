// Package doc is the document codec: stored bytes (BSON), path look-up without decode, JSON in and out, edits.
//
// Everything is append-only over byte slices: functions that write take dst, append to it and return it, and give it back as it
// was when they fail. Bytes that come from outside enter through FromJSON, FromExtJSON or Validate, and nothing behind these
// checks again; the readers stop at malformed bytes but never panic on them.
package doc

import (
	"bytes"
	"encoding/binary"
	"math"

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
	// NoSQL is the view of NoSQL, Gremlin and Table. The stored `_id` is `id`; a stored own `id`, which only Mongo can write, is
	// hidden; a user's field `_id` is stored as "\x01_id" (and "\x01_id" as "\x01\x01_id", so that nothing collides). The system
	// fields _rid, _self, _etag, _ts, _attachments and _lsn are not part of a document: they are dropped on the way in
	// and hidden on the way out.
	NoSQL
)

// escape leads the stored name of a user's field that would be taken for the identity.
const escape = 0x01

// Stored returns the stored form of a shown top-level name; ok is false for a name that isn't stored (a system field).
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

// Shown returns the shown form of a stored top-level name; ok is false for a hidden one.
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

// isEscapable reports whether name is "_id" after any number of escapes.
func isEscapable(name string) bool {
	for len(name) > 3 && name[0] == escape {
		name = name[1:]
	}
	return name == "_id"
}

// AppendElement appends one BSON element; Undefined appends nothing. name must not contain a NUL.
func AppendElement(dst []byte, name string, v value.Value) []byte {
	if !v.IsDefined() {
		return dst
	}
	dst = append(append(append(dst, TypeOf(v)), name...), 0)
	return AppendValue(dst, v)
}

// TypeOf returns the BSON type byte of v; Undefined has null's.
func TypeOf(v value.Value) byte {
	if v.Kind() == value.Date && v.Ticks() != 0 {
		return 0x05
	}
	return bsonTypes[v.Kind()]
}

var bsonTypes = [...]byte{
	value.Undefined: 0x0A, value.Null: 0x0A, value.Bool: 0x08, value.Int32: 0x10, value.Int64: 0x12, value.Double: 0x01,
	value.Decimal: 0x13, value.String: 0x02, value.Symbol: 0x0E, value.Array: 0x04, value.Object: 0x03, value.Binary: 0x05,
	value.UUID: 0x05, value.ObjectID: 0x07, value.Date: 0x09, value.Timestamp: 0x11, value.Regex: 0x0B, value.DBPointer: 0x0C,
	value.Code: 0x0D, value.CodeScope: 0x0F, value.MinKey: 0xFF, value.MaxKey: 0x7F,
}

// AppendValue appends the BSON bytes of v without type and name.
func AppendValue(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case value.Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.Int()))
	case value.Int64:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Int()))
	case value.Double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case value.String, value.Symbol, value.Code:
		b := v.Bytes()
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)+1))
		return append(append(dst, b...), 0)
	case value.Binary, value.UUID:
		b := v.Bytes()
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
		return append(append(dst, v.Subtype()), b...)
	case value.Date:
		if v.Ticks() != 0 {
			dst = append(dst, 10, 0, 0, 0, value.SubtypeTicks)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v.DateMS()))
			return binary.LittleEndian.AppendUint16(dst, v.Ticks())
		}
		return binary.LittleEndian.AppendUint64(dst, uint64(v.DateMS()))
	case value.Timestamp:
		return binary.LittleEndian.AppendUint64(dst, v.Raw64())
	case value.Array, value.Object:
		if len(v.Bytes()) < 5 {
			return append(dst, 5, 0, 0, 0, 0)
		}
	}
	return append(dst, v.Bytes()...) // what is stored as it is; nothing for null, MinKey, MaxKey
}

// Equal reports whether two documents are the same bytes.
func Equal(a, b Doc) bool { return bytes.Equal(a, b) }
