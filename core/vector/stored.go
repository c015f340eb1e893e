package vector

import (
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// SubtypeVector is the subtype of a binary vector. Its bytes are the kind of the numbers, the number of bits at the end
// that don't count, and the numbers.
const SubtypeVector = 9

// The kinds of numbers in a binary vector.
const (
	dtypeInt8    = 0x03
	dtypePacked  = 0x10 // bits, the highest one of a byte first
	dtypeFloat32 = 0x27
)

// chunk is how many numbers are read at a time: a buffer that stays in the fastest cache.
const chunk = 64

// stored reads the numbers of a stored vector.
type stored struct {
	kind  Kind
	array bool
	b     []byte // what is left: elements of an array, or numbers
	i     int    // the place of the next number
	dims  int    // of a binary vector
}

func storedOf(v value.Value) (s stored, ok bool) {
	b := v.Bytes()
	switch v.Kind() {
	case value.Array:
		if len(b) < 5 {
			return s, false
		}
		return stored{array: true, b: b[4 : len(b)-1]}, true
	case value.Binary:
		if v.Subtype() != SubtypeVector || len(b) < 2 {
			return s, false
		}
		padding := int(b[1])
		s.b = b[2:]
		switch b[0] {
		case dtypeFloat32:
			s.dims = len(s.b) / 4
			return s, padding == 0 && len(s.b)%4 == 0
		case dtypeInt8:
			s.kind, s.dims = Bytes, len(s.b)
			return s, padding == 0
		case dtypePacked:
			s.kind, s.dims = Bits, 8*len(s.b)-padding
			return s, padding < 8 && s.dims >= 0
		}
	}
	return s, false
}

// next reads the next numbers into dst and returns how many there are, 0 at the end. ok is false at an element that is
// no number.
func (s *stored) next(dst []float64) (n int, ok bool) {
	if s.array {
		return s.elements(dst)
	}
	dst = dst[:min(len(dst), s.dims-s.i)]
	switch s.kind {
	case Floats:
		b := s.b[4*s.i:]
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			b = b[4:]
		}
	case Bytes:
		for i, c := range s.b[s.i : s.i+len(dst)] {
			dst[i] = float64(int8(c))
		}
	case Bits:
		for i := range dst {
			at := s.i + i
			dst[i] = float64(s.b[at/8] >> (7 - at%8) & 1)
		}
	}
	s.i += len(dst)
	return len(dst), true
}

// names has, for names of 1 to 4 digits, the bits at the front of a double's element that are always the same, and
// their values. Example: the element 7 begins with the bytes 01, 37, 00. The first and the last byte are always these,
// and the digit's upper half is 3.
var names = [...]struct{ mask, want uint64 }{
	1: {0xFF_F0_FF, 0x00_30_01},
	2: {0xFF_F0F0_FF, 0x00_3030_01},
	3: {0xFF_F0F0F0_FF, 0x00_303030_01},
	4: {0xFF_F0F0F0F0_FF, 0x00_30303030_01},
}

// elements is next for an array. The names in an array are the places of its elements, as a rule. So the length of a
// name is known, and of most elements only the first bytes have to be looked at.
func (s *stored) elements(dst []float64) (n int, ok bool) {
	b := s.b
	for n < len(dst) && len(b) > 0 {
		digits, last := 4, len(dst)
		switch at := s.i + n; {
		case at < 10:
			digits, last = 1, min(last, 10-s.i)
		case at < 100:
			digits, last = 2, min(last, 100-s.i)
		case at < 1000:
			digits, last = 3, min(last, 1000-s.i)
		}
		size, usual := digits+10, names[digits]
		more := dst[n:min(last, n+len(b)/size)]
		for i := range more {
			e := b[i*size : i*size+size]
			if binary.LittleEndian.Uint64(e)&usual.mask != usual.want {
				more = more[:i]
				break
			}
			more[i] = math.Float64frombits(binary.LittleEndian.Uint64(e[len(e)-8:]))
		}
		n, b = n+len(more), b[len(more)*size:]
		if n == last || len(b) == 0 {
			continue
		}
		f, rest, ok := number(b)
		if !ok {
			return 0, false
		}
		dst[n], b = f, rest
		n++
	}
	s.b, s.i = b, s.i+n
	return n, true
}

// number reads the first of an array's stored elements. ok is false when it is no number.
func number(b []byte) (f float64, rest []byte, ok bool) {
	if f, rest, ok = bson.CutDouble(b); ok {
		return f, rest, true
	}
	_, v, rest, ok := value.ReadElement(b)
	return v.Float(), rest, ok && v.IsNumber()
}

// KindOf returns the representation of a stored vector. What is no vector is told by Compare.
func KindOf(v value.Value) Kind {
	if b := v.Bytes(); v.Kind() == value.Binary && v.Subtype() == SubtypeVector && len(b) > 0 {
		switch b[0] {
		case dtypeInt8:
			return Bytes
		case dtypePacked:
			return Bits
		}
	}
	return Floats
}
