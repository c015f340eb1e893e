// Package wire is the forms of the NoSQL protocol: resource ids, session tokens, resource tokens, the binary form of
// JSON. It knows no request and no container.
package wire

import (
	"encoding/base64"
	"encoding/binary"
)

// Resource ids are base64 with '/' written as '-': a database has 4 bytes, a container its database's 4 and 4 more, a
// child of a container those 8 and 8 more whose last nibble-pair names the type.
var ridCoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-").Strict()

// Types of the children of a container: the high nibble of the last byte.
const (
	RIDItem      = 0x0
	RIDRange     = 0x5
	RIDFunction  = 0x6
	RIDTrigger   = 0x7
	RIDProcedure = 0x8
)

// Lengths of resource ids as texts.
const (
	DatabaseRIDLen  = 8  // text of 4 bytes
	containerRIDLen = 12 // text of 8 bytes
	ItemRIDLen      = 24 // text of 16 bytes
)

// AppendRID appends the text of a raw resource id.
func AppendRID(dst, raw []byte) []byte { return ridCoding.AppendEncode(dst, raw) }

// AppendChildRID appends the text of a child of a container: an item by its number, a range by its id.
func AppendChildRID(dst []byte, coll [8]byte, number uint64, kind byte) []byte {
	var raw [16]byte
	copy(raw[:], coll[:])
	binary.LittleEndian.PutUint64(raw[8:], number)
	raw[15] = raw[15]&0x0F | kind<<4
	return ridCoding.AppendEncode(dst, raw[:])
}

// ParseRID decodes a resource id of exactly n bytes.
func ParseRID(text string, n int) (raw []byte, ok bool) {
	if len(text) != ridCoding.EncodedLen(n) {
		return nil, false
	}
	raw, err := ridCoding.DecodeString(text)
	return raw, err == nil && len(raw) == n
}

// RawRID decodes a resource id of any length.
func RawRID(text string) (raw []byte, ok bool) {
	raw, err := ridCoding.DecodeString(text)
	return raw, err == nil
}

// ParseItemRID decodes an item's resource id.
func ParseItemRID(text string) (coll [8]byte, number uint64, ok bool) {
	raw, ok := ParseRID(text, 16)
	if !ok || raw[15]>>4 != RIDItem {
		return coll, 0, false
	}
	copy(coll[:], raw)
	return coll, binary.LittleEndian.Uint64(raw[8:]), true
}
