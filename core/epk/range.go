package epk

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// BoundaryText returns the published text of a placement, and "" for nil. With V1 the text has no value part.
func BoundaryText(k Kind, place []byte) string {
	if len(place) == 0 {
		return MinText
	}
	if k == V1 {
		var p [4]byte
		copy(p[:], place)
		return upperHex(appendNumberV1(nil, float64(binary.BigEndian.Uint32(p[:]))))
	}
	return upperHex(place)
}

// errText is returned for a boundary text that is not hexadecimal or too long.
var errText = errors.New("epk: malformed boundary text")

// ParseBoundary returns the placement of a boundary text: the first placement whose text isn't below it. It accepts
// lower-case digits. A short text counts as padded with zeros.
//
// Both ends of the space have no placement and give nil: "" (as a minimum: from the start) and "FF" (as a maximum: to
// the end). A V1 text with a value part gives its hash. A text above all keys gives bytes above all placements.
func ParseBoundary(k Kind, text string) ([]byte, error) {
	if text == MinText || strings.EqualFold(text, MaxText) {
		return nil, nil
	}
	if len(text)%2 != 0 {
		text += "0"
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) > 2048 {
		return nil, errText
	}
	if k == V1 {
		return parseV1(b), nil
	}
	for len(b)%16 != 0 {
		b = append(b, 0)
	}
	return b, nil
}

func parseV1(b []byte) []byte {
	if b[0] > typeNumber {
		return []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	}
	f := 0.0
	if b[0] == typeNumber {
		f = math.Ceil(parseNumberV1(b[1:]))
	}
	switch {
	case f > math.MaxUint32:
		return []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	case f > 0:
		return binary.BigEndian.AppendUint32(nil, uint32(f))
	}
	return make([]byte, 4) // also for a NaN, which sorts below all: its bits are those of a cut text
}

// Split returns the n-1 placements that divide the space into n equal parts as the service does: i*floor(last/n), where
// last is the greatest hash: 2^32-1 with V1, otherwise 2^126-1. The last part is larger by the remainder.
//
// Example: the boundaries of 4 parts with V2 are 0FFF..FF, 1FFF..FE and 2FFF..FD.
func Split(k Kind, n int) [][]byte { return Shares(k, nil, nil, n) }

// Shares returns up to n-1 placements that divide the placements [min, max) into n equal parts; a nil max is the end of
// the space. There are fewer if the range has fewer hashes. With MultiHash a range inside one hash of the first value
// has none.
func Shares(k Kind, min, max []byte, n int) (out [][]byte) {
	lo, hi := hashAt(k, min), lastHash(k)
	if max != nil {
		hi = hashAt(k, max)
	}
	share := new(big.Int).Sub(hi, lo)
	if share.Quo(share, big.NewInt(int64(n))); share.Sign() <= 0 {
		return nil
	}
	for i := 1; i < n; i++ {
		lo.Add(lo, share)
		out = append(out, lo.FillBytes(make([]byte, hashLen(k))))
	}
	return out
}

// Fraction returns the part of the space below a placement, from 0 to 1.
func Fraction(k Kind, place []byte) float64 {
	f, _ := new(big.Rat).SetFrac(hashAt(k, place), lastHash(k)).Float64()
	return f
}

// hashLen is the length of the hash of one value, or of all values where there is only one hash.
func hashLen(k Kind) int {
	if k == V1 {
		return 4
	}
	return 16
}

// hashAt returns the hash with which a placement begins. A shorter one counts as padded with zeros.
func hashAt(k Kind, place []byte) *big.Int {
	var b [16]byte
	n := hashLen(k)
	copy(b[:n], place)
	return new(big.Int).SetBytes(b[:n])
}

// lastHash returns the greatest hash.
func lastHash(k Kind) *big.Int {
	bits := uint(126)
	if k == V1 {
		bits = 32
	}
	x := new(big.Int).Lsh(big.NewInt(1), bits)
	return x.Sub(x, big.NewInt(1))
}

// CompareText compares two texts. The shorter one counts as padded with zeros, as SDKs do for hierarchical keys.
func CompareText(a, b string) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	switch {
	case strings.Trim(a[n:], "0") != "":
		return 1
	case strings.Trim(b[n:], "0") != "":
		return -1
	}
	return 0
}

// Range is a range of texts: Min is inside, Max is outside.
type Range struct{ Min, Max string }

// Full is the whole space.
var Full = Range{MinText, MaxText}

// KeyRange returns the range of all keys that begin with the values of pk. With MultiHash, pk may have fewer values
// than there are paths; the range then has every key below that prefix.
func KeyRange(k Kind, pk []value.Value) Range {
	plain := make([]value.Value, len(pk))
	for i, v := range pk { // -0 has the placement of 0
		plain[i] = value.Canonical(v)
	}
	t := Text(k, plain)
	return Range{t, t + MaxText}
}

// IsEmpty reports whether r contains nothing.
func (r Range) IsEmpty() bool { return CompareText(r.Min, r.Max) >= 0 }

// Contains reports whether the text is in r.
func (r Range) Contains(text string) bool {
	return CompareText(r.Min, text) <= 0 && CompareText(text, r.Max) < 0
}

// Covers reports whether all of o is in r.
func (r Range) Covers(o Range) bool {
	return o.IsEmpty() || CompareText(r.Min, o.Min) <= 0 && CompareText(o.Max, r.Max) <= 0
}

// Intersect returns the intersection of r and o. ok is false when it is empty.
func (r Range) Intersect(o Range) (both Range, ok bool) {
	both = r
	if CompareText(o.Min, r.Min) > 0 {
		both.Min = o.Min
	}
	if CompareText(o.Max, r.Max) < 0 {
		both.Max = o.Max
	}
	if both.IsEmpty() {
		return Range{}, false
	}
	return both, true
}

const hexUpper = "0123456789ABCDEF"

func upperHex(b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, hexUpper[c>>4], hexUpper[c&15])
	}
	return string(out)
}
