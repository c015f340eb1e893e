package tikvkv

import (
	"encoding/binary"
	"fmt"

	"github.com/orrerydb/orrery/core/kv"
)

// Several stores share one TiKV. Each has a keyspace, and all of its keys begin with the keyspace's prefix:
//
//	or/KEYSPACE/i                          the identity of the store, as JSON
//	or/KEYSPACE/d KEY                      a value, or a pointer to its parts
//	or/KEYSPACE/p KEY timestamp number     part of a large value: timestamp u64 and number u16, big endian
//
// The name of a keyspace has no slash, so no prefix is the beginning of another one. KEY is a key of the seam as it is:
// within d and p keys keep their order.
//
// A stored value ends with a tag byte, so it is never empty:
//
//	VALUE 00                               a value of up to maxInline bytes
//	timestamp u64, length u32, 01          a pointer: the value has length bytes, in parts of partSize bytes
//
// Example: a value of 600 KiB, written by the transaction that began at timestamp 7, is a pointer {7, 614400} under d
// KEY, and two parts under p KEY 7 0 and p KEY 7 1.
//
// The timestamp is that of the transaction that has written the value, so the parts of two versions have different
// keys. A writer doesn't know whether the version that it replaces has parts, and doesn't read it to find out. Parts
// that no pointer names are removed later, by Sweep.
const (
	spaceIdentity = 'i'
	spaceData     = 'd'
	spaceParts    = 'p'

	tagInline  = 0
	tagPointer = 1

	maxInline = 128 << 10 // a batch of a scan has at most maxScan of these
	partSize  = 512 << 10

	pointerSize = 8 + 4 + 1
	partSuffix  = 8 + 2
)

// limits follow from TiKV's: a request of one key must stay below the size of an entry of its log (8 MiB by default),
// which parts do. A transaction may have 100 MB. Value is above twice the largest item, because the log of all versions
// stores two.
var limits = kv.Limits{Key: 4 << 10, Value: 40 << 20, Batch: 96 << 20}

// layout is the prefix of a keyspace.
type layout struct{ prefix string }

func newLayout(keyspace string) layout { return layout{"or/" + keyspace + "/"} }

func (l layout) identity() []byte { return append([]byte(l.prefix), spaceIdentity) }

// all returns the bounds of the keyspace.
func (l layout) all() (lo, hi []byte) {
	lo = []byte(l.prefix)
	hi = []byte(l.prefix)
	hi[len(hi)-1]++
	return lo, hi
}

// data returns the stored form of a key.
func (l layout) data(key []byte) []byte {
	return l.appendData(make([]byte, 0, len(l.prefix)+1+len(key)), key)
}

func (l layout) appendData(dst, key []byte) []byte {
	dst = append(dst, l.prefix...)
	dst = append(dst, spaceData)
	return append(dst, key...)
}

// key returns the key of the seam in a stored key of data.
func (l layout) key(stored []byte) []byte { return stored[len(l.prefix)+1:] }

func (l layout) appendPart(dst, key []byte, ts uint64, number int) []byte {
	dst = append(dst, l.prefix...)
	dst = append(dst, spaceParts)
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint64(dst, ts)
	return binary.BigEndian.AppendUint16(dst, uint16(number))
}

// parts returns the bounds of the parts of all keys in [lo, hi). Parts of a key that begins hi may lie above them.
func (l layout) parts(lo, hi []byte) (plo, phi []byte) {
	plo = append(append([]byte(l.prefix), spaceParts), lo...)
	return plo, append(append([]byte(l.prefix), spaceParts), hi...)
}

// splitPart returns the key and the timestamp of a stored part.
func (l layout) splitPart(stored []byte) (key []byte, ts uint64, err error) {
	at := len(stored) - partSuffix
	if at <= len(l.prefix)+1 {
		return nil, 0, fmt.Errorf("%w: a part under the key %x", kv.ErrCorruption, stored)
	}
	return stored[len(l.prefix)+1 : at], binary.BigEndian.Uint64(stored[at:]), nil
}

// pointer names the parts of a large value.
type pointer struct {
	ts     uint64
	length int
}

func (p pointer) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, p.ts)
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.length))
	return append(dst, tagPointer)
}

// parts is the number of parts.
func (p pointer) parts() int { return (p.length + partSize - 1) / partSize }

// decode returns the value that is stored as v, or the pointer to it.
func decode(v []byte) (value []byte, p pointer, err error) {
	n := len(v) - 1
	switch {
	case n > 0 && v[n] == tagInline:
		return v[:n:n], p, nil
	case len(v) == pointerSize && v[n] == tagPointer:
		p = pointer{binary.BigEndian.Uint64(v), int(binary.BigEndian.Uint32(v[8:]))}
		if p.length > maxInline && p.length <= limits.Value {
			return nil, p, nil
		}
	}
	return nil, p, fmt.Errorf("%w: a value of %d bytes has no known form", kv.ErrCorruption, len(v))
}
