package funcs

import (
	"reflect"

	"github.com/orrerydb/orrery/core/value"
)

// ValueSize is the size of a value in bytes, without the bytes that it points to.
var ValueSize = int(reflect.TypeFor[value.Value]().Size())

// Sizes in bytes of a pointer, and of a map entry that has a number and a pointer. That of a map entry includes the
// free space that maps keep for growth.
const (
	PointerSize = 8
	MapEntry    = 2 * (8 + PointerSize)
)

// Hash returns a hash of a value. Values that are the Same have equal hashes.
func Hash(v value.Value) uint64 {
	if !v.IsDefined() {
		return 1
	}
	return value.HashDistinct(DeepView(v))
}

// Same reports whether two values are equal in the language. In addition, undefined equals undefined.
func Same(a, b value.Value) bool {
	if !a.IsDefined() || !b.IsDefined() {
		return a.IsDefined() == b.IsDefined()
	}
	return Equal(a, b)
}

// Set is a set of values. Equality is Same.
type Set struct {
	by map[uint64][]value.Value
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{by: map[uint64][]value.Value{}} }

// Has reports whether the set contains a value that equals v.
func (s *Set) Has(v value.Value) bool {
	for _, x := range s.by[Hash(v)] {
		if Same(x, v) {
			return true
		}
	}
	return false
}

// Add adds a copy of v unless the set contains an equal value. It reports whether v was added.
func (s *Set) Add(v value.Value) bool {
	h := Hash(v)
	for _, x := range s.by[h] {
		if Same(x, v) {
			return false
		}
	}
	s.by[h] = append(s.by[h], DeepView(v).Clone())
	return true
}

// BytesOf returns the number of bytes that a value points to.
func BytesOf(v value.Value) int { return len(v.Bytes()) }
