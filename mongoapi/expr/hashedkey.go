package expr

import (
	"crypto/md5" //nolint:gosec // the server's hash of hashed indexes; nothing is kept secret with it
	"encoding/binary"
	"hash"
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// hashedKey returns the key of a value in a hashed index of MongoDB: the first 8 bytes of an MD5 of the value. Numbers
// are hashed as whole 64-bit integers, so 1, 1.0 and 1.5 have the same key. A missing value counts as null.
func hashedKey(v value.Value) int64 {
	h := md5.New() //nolint:gosec // see above
	h.Write([]byte{0, 0, 0, 0})
	if !v.IsDefined() {
		v = value.NullValue()
	}
	hashElement(h, nil, v)
	return int64(binary.LittleEndian.Uint64(h.Sum(nil)))
}

// canonicalTypes groups the types that sorts compare with each other.
var canonicalTypes = map[byte]int32{
	0xFF: -1, 0x06: 0, 0x0A: 5, 0x01: 10, 0x10: 10, 0x12: 10, 0x13: 10, 0x02: 15, 0x0E: 15, 0x03: 20, 0x04: 25,
	0x05: 30, 0x07: 35, 0x08: 40, 0x09: 45, 0x11: 47, 0x0B: 50, 0x0C: 55, 0x0D: 60, 0x0F: 65, 0x7F: 127,
}

// hashElement hashes the type, the name with its zero if there is one, and the value. An object ends with the type 0.
func hashElement(h hash.Hash, name []byte, v value.Value) {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(canonicalTypes[TypeCode(v)]))
	h.Write(b[:4])
	if name != nil {
		h.Write(name)
		h.Write([]byte{0})
	}
	switch {
	case v.IsNumber():
		binary.LittleEndian.PutUint64(b[:], uint64(hashedNumber(v)))
		h.Write(b[:])
	case v.Kind() == value.Object || v.Kind() == value.Array:
		for it := v.Iter(); it.Next(); {
			key := it.Key()
			if key == nil {
				key = []byte{}
			}
			hashElement(h, key, it.Value())
		}
		h.Write([]byte{0, 0, 0, 0})
	default:
		h.Write(value.AppendBSON(nil, v))
	}
}

// hashedNumber converts a number to an integer; what is too large becomes the nearest, NaN becomes 0.
func hashedNumber(v value.Value) int64 {
	if n, ok := num.ToInt64(v, true); ok {
		return n
	}
	switch f := num.ToFloat(v); {
	case math.IsNaN(f):
		return 0
	case f < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
