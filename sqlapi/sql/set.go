package sql

import (
	"reflect"

	"github.com/orrerydb/orrery/core/value"
	funcs "github.com/orrerydb/orrery/sqlapi/sql/func"
)

// What a set keeps for a value beside its bytes. An entry of a map is counted with the room that maps and slices keep
// free to grow.
var (
	valueSize = int(reflect.TypeFor[value.Value]().Size())
	setEntry  = valueSize + mapEntry
)

const (
	pointerSize = 8
	mapEntry    = 2 * (8 + 3*pointerSize)
)

// hashValue and sameValue are the language's equality extended to undefined.
func hashValue(v value.Value) uint64 {
	if !v.IsDefined() {
		return 1
	}
	return value.HashDistinct(funcs.DeepView(v))
}

func sameValue(a, b value.Value) bool {
	if !a.IsDefined() || !b.IsDefined() {
		return a.IsDefined() == b.IsDefined()
	}
	return funcs.Equal(a, b)
}

// distinctSet holds values by the language's equality.
type distinctSet struct {
	by   map[uint64][]value.Value
	size int
	told int
}

// grown is by how much the set has grown since the last call.
func (s *distinctSet) grown() int {
	n := s.size - s.told
	s.told = s.size
	return n
}

func newDistinctSet() *distinctSet { return &distinctSet{by: map[uint64][]value.Value{}} }

func (s *distinctSet) has(v value.Value) bool {
	for _, x := range s.by[hashValue(v)] {
		if sameValue(x, v) {
			return true
		}
	}
	return false
}

// add keeps a copy of v and reports whether it is new.
func (s *distinctSet) add(v value.Value) bool {
	h := hashValue(v)
	for _, x := range s.by[h] {
		if sameValue(x, v) {
			return false
		}
	}
	s.by[h] = append(s.by[h], funcs.DeepView(v).Clone())
	s.size += setEntry + bytesOf(v)
	return true
}

// bytesOf is what a value keeps.
func bytesOf(v value.Value) int { return len(v.Bytes()) }
