// Package epk computes effective partition keys (EPKs): the hash that decides where an item is stored, as the service
// and its SDKs compute it.
//
// An EPK has two forms. The text (Text, BoundaryText) is what SDKs compute and what partitions publish: upper-case hex,
// with "" as the minimum and "FF" as the maximum of the space. The placement (Place, Split, ParseBoundary) is the same
// position as sortable bytes, with which our keys begin. Both forms have the same order.
//
// Example, for the partition key value "redmond":
//
//	V2  hash the bytes 08 "redmond" FF with MurmurHash3 x64-128, clear the top two bits
//	    text 22E342F38A486A088463DFF7838A5963, placement: the same 16 bytes
//	V1  hash the bytes 08 "redmond" 00 with MurmurHash3 x86-32; the placement is that number, 4 bytes
//	    text 05C1EFE313830C 087366656E706F6500: the number as a sortable double, then the value itself
package epk

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/twmb/murmur3"

	"github.com/orrerydb/orrery/core/value"
)

// Kind is the hash function of a partition key definition. The numbers are stored and never change.
type Kind uint8

const (
	// V1 is kind Hash with version 1 or without a version: MurmurHash3 x86-32 over the value, strings cut at 100
	// characters. A placement is the hash, 4 bytes.
	V1 Kind = 1
	// V2 is kind Hash, version 2: MurmurHash3 x64-128 over all values together. A placement is 16 bytes; its top two
	// bits are 0.
	V2 Kind = 2
	// MultiHash is kind MultiHash (hierarchical keys): the V2 hash of each value, concatenated. A placement is 16 bytes
	// for each given value, so the placement of a prefix of the values is a prefix of the placement.
	MultiHash Kind = 3
)

// MinText and MaxText are the ends of the published space.
const (
	MinText = ""
	MaxText = "FF"
)

// serviceNaN is the NaN of .NET. Its sign bit is set.
var serviceNaN = math.Float64frombits(0xFFF8000000000000)

// The type bytes that the service hashes before a value.
const (
	typeUndefined = 0x00
	typeNull      = 0x01
	typeFalse     = 0x02
	typeTrue      = 0x03
	typeNumber    = 0x05
	typeString    = 0x08
)

// Place appends the placement of the partition key pk. pk has one value for each path; with MultiHash it may have
// fewer. Undefined is the value of a path that the item lacks. All kinds of numbers hash as a double. Kinds that the
// service can't hash (arrays, objects, ObjectId, dates and others) hash as the string of their identity text
// (value.IdentityJSON).
//
// Values that value.EqualBSON calls equal have equal placements, because they are the same identity. So -0 has the
// placement of 0. Among the values that the service can hash, -0 is the only one with another placement there, see
// Text.
func Place(dst []byte, k Kind, pk []value.Value) []byte {
	return place(dst, k, pk, false)
}

// place is Place. With sdk, -0 and 0 hash differently, as in SDKs.
func place(dst []byte, k Kind, pk []value.Value, sdk bool) []byte {
	var buf [128]byte
	switch k {
	case MultiHash:
		for _, v := range pk {
			dst = appendHash128(dst, appendV2(buf[:0], v, sdk))
		}
		return dst
	case V1:
		return binary.BigEndian.AppendUint32(dst, hash32(pk, buf[:0], sdk))
	}
	b := buf[:0]
	for _, v := range pk {
		b = appendV2(b, v, sdk)
	}
	return appendHash128(dst, b)
}

// Text returns the effective partition key of pk as SDKs compute it. With V1 the hash is followed by the encoded
// values. Their form is the service's, which writes a last group of zero bits; the JavaScript SDK leaves that group
// out. The hash is that of Place except for -0: SDKs and the service distinguish it from 0, our identities don't.
func Text(k Kind, pk []value.Value) string {
	if k != V1 {
		return BoundaryText(k, place(nil, k, pk, true))
	}
	b := appendNumberV1(nil, float64(hash32(pk, nil, true)))
	for _, v := range pk {
		b = appendTextV1(b, v)
	}
	return upperHex(b)
}

func appendHash128(dst, b []byte) []byte {
	h1, h2 := murmur3.SeedSum128(0, 0, b)
	dst = binary.BigEndian.AppendUint64(dst, h2&(1<<62-1))
	return binary.BigEndian.AppendUint64(dst, h1)
}

func hash32(pk []value.Value, b []byte, sdk bool) uint32 {
	for _, v := range pk {
		switch t, text, f := classify(v, true); t {
		case typeString:
			b = append(append(append(b, typeString), text...), 0)
		case typeNumber:
			b = binary.LittleEndian.AppendUint64(append(b, typeNumber), math.Float64bits(hashed(f, sdk)))
		default:
			b = append(b, t)
		}
	}
	return murmur3.SeedSum32(0, b)
}

// appendV2 appends the bytes of one value that V2 hashes.
func appendV2(b []byte, v value.Value, sdk bool) []byte {
	switch t, text, f := classify(v, false); t {
	case typeString:
		return append(append(append(b, typeString), text...), 0xFF)
	case typeNumber:
		return binary.LittleEndian.AppendUint64(append(b, typeNumber), math.Float64bits(hashed(f, sdk)))
	default:
		return append(b, t)
	}
}

// hashed returns the double that is hashed for a number.
func hashed(f float64, sdk bool) float64 {
	switch {
	case f != f:
		return serviceNaN // all NaNs hash the same
	case f == 0 && !sdk:
		return 0
	}
	return f
}

// classify returns the service's type byte of v and its text or number. With cut, strings are cut at 100 characters, as
// V1 does.
func classify(v value.Value, cut bool) (t byte, text []byte, f float64) {
	switch v.Kind() {
	case value.Undefined:
		return typeUndefined, nil, 0
	case value.Null:
		return typeNull, nil, 0
	case value.Bool:
		if v.Bool() {
			return typeTrue, nil, 0
		}
		return typeFalse, nil, 0
	case value.Int32, value.Int64, value.Double, value.Decimal:
		f, _ := value.Number(v)
		return typeNumber, nil, f
	case value.String, value.Symbol:
		text = v.Bytes()
	default:
		text = value.AppendText(nil, v, value.IdentityJSON)
	}
	if cut {
		text = cutV1(text)
	}
	return typeString, text, 0
}

// cutV1 returns the first 100 characters of text. Characters are UTF-16 code units, as in .NET and JavaScript. If the
// cut splits a surrogate pair, the remaining half becomes U+FFFD, because .NET and JavaScript write it so in UTF-8.
func cutV1(text []byte) []byte {
	const limit = 100
	if len(text) <= limit {
		return text
	}
	units := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		w := 1
		if r > 0xFFFF {
			w = 2
		}
		switch {
		case units+w <= limit:
			units, i = units+w, i+n
		case units < limit:
			return utf8.AppendRune(append([]byte(nil), text[:i]...), utf8.RuneError)
		default:
			return text[:i]
		}
	}
	return text
}

// appendTextV1 appends the value part of a V1 key: sortable bytes without a zero byte inside strings. A string of more
// than 100 bytes is cut after byte 101 and has no end mark.
func appendTextV1(b []byte, v value.Value) []byte {
	const limit = 100
	t, text, f := classify(v, true)
	switch t {
	case typeNumber:
		return appendNumberV1(b, hashed(f, true))
	case typeString:
		b = append(b, typeString)
		long := len(text) > limit
		if long {
			text = text[:limit+1]
		}
		for _, c := range text {
			if c != 0xFF {
				c++
			}
			b = append(b, c)
		}
		if !long {
			b = append(b, 0)
		}
		return b
	}
	return append(b, t)
}

// appendNumberV1 appends a double in a sortable form of variable length. The first byte has the first 8 bits. Each
// group that follows has 7 bits and a low bit, which is 1 if another group follows. There is at least one group.
func appendNumberV1(b []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if bits>>63 == 0 {
		bits ^= 1 << 63
	} else {
		bits = -bits
	}
	b = append(b, typeNumber, byte(bits>>56))
	for bits <<= 8; ; {
		group := byte(bits >> 56 & 0xFE)
		if bits <<= 7; bits == 0 {
			return append(b, group)
		}
		b = append(b, group|1)
	}
}

// parseNumberV1 reads a number that appendNumberV1 wrote at the front of b. Bytes that were cut off count as zero bits.
func parseNumberV1(b []byte) float64 {
	var bits uint64
	if len(b) > 0 {
		bits = uint64(b[0]) << 56
		b = b[1:]
	}
	for shift := 49; len(b) > 0; shift -= 7 {
		group := uint64(b[0] >> 1)
		if shift >= 0 {
			bits |= group << shift
		} else {
			bits |= group >> -shift
		}
		if b[0]&1 == 0 || shift < 0 {
			break
		}
		b = b[1:]
	}
	if bits>>63 != 0 {
		return math.Float64frombits(bits ^ 1<<63)
	}
	return math.Float64frombits(-bits)
}
