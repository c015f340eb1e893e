package funcs

import (
	"reflect"

	"github.com/orrerydb/orrery/core/value"
)

// What a set keeps for a value beside its bytes. An entry of a map is counted with the room that maps and slices keep
// free to grow.
var (
	ValueSize = int(reflect.TypeFor[value.Value]().Size())
	setEntry  = ValueSize + MapEntry
)

// What a pointer and an entry of a map take, in bytes.
const (
	PointerSize = 8
	MapEntry    = 2 * (8 + 3*PointerSize)
)

// Hash is the hash of a value by Same.
func Hash(v value.Value) uint64 {
	if !v.IsDefined() {
		return 1
	}
	return value.HashDistinct(DeepView(v))
}

// Same is the language's equality extended to undefined, which equals itself.
func Same(a, b value.Value) bool {
	if !a.IsDefined() || !b.IsDefined() {
		return a.IsDefined() == b.IsDefined()
	}
	return Equal(a, b)
}

// Set holds values by the language's equality.
type Set struct {
	by   map[uint64][]value.Value
	size int
	told int
}

// Grown is by how much the set has grown since the last call.
func (s *Set) Grown() int {
	n := s.size - s.told
	s.told = s.size
	return n
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{by: map[uint64][]value.Value{}} }

// Has reports whether the set has a value that equals v.
func (s *Set) Has(v value.Value) bool {
	for _, x := range s.by[Hash(v)] {
		if Same(x, v) {
			return true
		}
	}
	return false
}

// Add keeps a copy of v and reports whether it is new.
func (s *Set) Add(v value.Value) bool {
	h := Hash(v)
	for _, x := range s.by[h] {
		if Same(x, v) {
			return false
		}
	}
	s.by[h] = append(s.by[h], DeepView(v).Clone())
	s.size += setEntry + BytesOf(v)
	return true
}

// BytesOf is what a value keeps.
func BytesOf(v value.Value) int { return len(v.Bytes()) }
