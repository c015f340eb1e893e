package funcs

import (
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// The state of an aggregate can be stored and later joined with the state of later rows. Groups that don't fit into
// memory use this.
//
// Example: SUM over 1, 2, 3. Rows 1 and 2 give a state with sum 3, which is written to a file. Row 3 gives a state with
// sum 3. Joining the two gives sum 6.

// Join adds to s the state t of later rows. t was read with Read.
func (a *Aggregate) Join(s, t *State) { a.join(s, t) }

// Overflow returns the error for a state that is Full.
func (a *Aggregate) Overflow() error {
	return status.New(status.BadRequest, "A %s of the query is larger than %d bytes.", a.Name, MaxList)
}

// Own copies the values of a state that Read has filled, so that it no longer points into the read buffer. It returns
// the size of the copies in bytes.
func (s *State) Own() int {
	s.best, s.packed = s.best.Clone(), s.packed.Clone()
	return s.Held() + BytesOf(s.packed)
}

// Append appends the encoding of a state: bad (1 byte), count (varint), sum (8 bytes, big-endian), size (uvarint), best
// and list (typed values).
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

// Read reads a state that Append has written.
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

// joinBest returns the join of MIN or MAX; sign tells which one.
func joinBest(sign int) func(s, t *State) {
	return func(s, t *State) {
		s.bad = s.bad || t.bad
		s.extreme(t.best, sign)
	}
}

// joinLists returns the join of MAKELIST or MAKESET; add is the function that adds one value.
func joinLists(add func(s *State, v value.Value)) func(s, t *State) {
	return func(s, t *State) {
		s.unpack(add)
		for it := t.packed.Iter(); it.Next(); {
			add(s, it.Value())
		}
	}
}

// unpack turns the stored form of the list back into a list.
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

// Stored decodes stored bytes. Bad is set when they end too early.
type Stored struct {
	B   []byte
	Bad bool
}

func (r *Stored) fail() { r.Bad, r.B = true, nil }

// Byte reads a byte.
func (r *Stored) Byte() byte {
	if len(r.B) == 0 {
		r.fail()
		return 0
	}
	c := r.B[0]
	r.B = r.B[1:]
	return c
}

// Uint64 reads 8 bytes, big-endian.
func (r *Stored) Uint64() uint64 {
	if len(r.B) < 8 {
		r.fail()
		return 0
	}
	n := binary.BigEndian.Uint64(r.B)
	r.B = r.B[8:]
	return n
}

// Uvarint reads an unsigned varint.
func (r *Stored) Uvarint() uint64 {
	n, k := binary.Uvarint(r.B)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.B = r.B[k:]
	return n
}

// Varint reads a signed varint.
func (r *Stored) Varint() int64 {
	n, k := binary.Varint(r.B)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.B = r.B[k:]
	return n
}

// Value reads a value that value.AppendTyped has written.
func (r *Stored) Value() value.Value {
	v, rest, ok := value.ReadTyped(r.B)
	if !ok {
		r.fail()
		return value.Value{}
	}
	r.B = rest
	return v
}

// Values reads n values. Each value has at least one byte, so a greater n than the bytes left is refused.
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
