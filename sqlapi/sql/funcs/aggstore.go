package funcs

import (
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// The states of aggregates can be stored, and joined with those of later rows, for groups that don't fit into memory.

// Join adds to s the state t of later rows, which was read.
func (a *Aggregate) Join(s, t *State) { a.join(s, t) }

// Overflow is the error of a list that is Full.
func (a *Aggregate) Overflow() error {
	return status.New(status.BadRequest, "A %s of the query is larger than %d bytes.", a.Name, MaxList)
}

// Own gives a state that was read memory of its own, and returns how much that is.
func (s *State) Own() int {
	s.best, s.packed = s.best.Clone(), s.packed.Clone()
	return s.Held() + BytesOf(s.packed)
}

// Append appends the encoding of a state: flags, count, sum, size, best, list.
func (s *State) Append(dst []byte) []byte {
	dst = append(dst, boolByte(s.bad))
	dst = binary.AppendVarint(dst, s.count)
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.sum))
	dst = binary.AppendUvarint(dst, uint64(s.size))
	dst = value.AppendTyped(dst, s.best)
	if s.list.Len() > 0 {
		s.packed = s.list.Array()
	}
	return value.AppendTyped(dst, s.packed)
}

// Read reads what Append has written.
func (s *State) Read(r *Stored) {
	s.bad = r.Byte() != 0
	s.count = r.Varint()
	s.sum = math.Float64frombits(r.Uint64())
	s.size = int(r.Uvarint())
	s.best = r.Value()
	s.packed = r.Value()
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// joinCounts, joinSums, joinBest and joinLists add the state of later rows to a state.
func joinCounts(s, t *State) { s.count += t.count }

func joinSums(s, t *State) {
	s.bad = s.bad || t.bad
	s.count, s.sum = s.count+t.count, s.sum+t.sum
}

// joinBest is for MIN and MAX, of which sign tells which.
func joinBest(sign int) func(s, t *State) {
	return func(s, t *State) {
		s.bad = s.bad || t.bad
		s.extreme(t.best, sign)
	}
}

// joinLists is for MAKELIST and MAKESET: add is theirs.
func joinLists(add func(s *State, v value.Value)) func(s, t *State) {
	return func(s, t *State) {
		s.unpack(add)
		for it := t.packed.Iter(); it.Next(); {
			add(s, it.Value())
		}
	}
}

// unpack makes a list again of one that was read.
func (s *State) unpack(add func(s *State, v value.Value)) {
	list := s.packed
	if !list.IsDefined() {
		return
	}
	s.packed, s.size = value.Value{}, 0
	for it := list.Iter(); it.Next(); {
		add(s, it.Value())
	}
}

// Stored takes stored bytes apart; Bad is set when they end early.
type Stored struct {
	B   []byte
	Bad bool
}

func (r *Stored) fail() { r.Bad, r.B = true, nil }

// Byte takes a byte.
func (r *Stored) Byte() byte {
	if len(r.B) == 0 {
		r.fail()
		return 0
	}
	c := r.B[0]
	r.B = r.B[1:]
	return c
}

// Uint64 takes 8 bytes, the high one first.
func (r *Stored) Uint64() uint64 {
	if len(r.B) < 8 {
		r.fail()
		return 0
	}
	n := binary.BigEndian.Uint64(r.B)
	r.B = r.B[8:]
	return n
}

// Uvarint takes an unsigned number.
func (r *Stored) Uvarint() uint64 {
	n, k := binary.Uvarint(r.B)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.B = r.B[k:]
	return n
}

// Varint takes a signed number.
func (r *Stored) Varint() int64 {
	n, k := binary.Varint(r.B)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.B = r.B[k:]
	return n
}

// Value takes a value that value.AppendTyped has written.
func (r *Stored) Value() value.Value {
	v, rest, ok := value.ReadTyped(r.B)
	if !ok {
		r.fail()
		return value.Value{}
	}
	r.B = rest
	return v
}

// Values takes n values, of which each has a byte at least.
func (r *Stored) Values(n uint64) []value.Value {
	if n > uint64(len(r.B)) {
		r.fail()
		return nil
	}
	vs := make([]value.Value, n)
	for i := range vs {
		vs[i] = r.Value()
	}
	return vs
}
