package feed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
)

// Position is where a reader of a feed stands: every commit with an LSN at or below it was read. It says so for each
// part of the placements, because only LSNs of one physical partition are on one scale.
//
// In a physical partition it is one number, whose text is that number. Of a wider feed it is a list of (first
// placement, LSN), whose text is opaque, unless they all are the same. It never names slots, so it stays good when
// partitions are split or joined: who reads a range stands where the least position in it is.
type Position struct {
	steps []step  // by min, the first one's is empty; none = before everything
	turn  []byte  // the first placement of the partition that is to be read first
	rid   [8]byte // the container that it was read from; zero when it is a number
	wide  bool    // it is of more than a physical partition
	old   *slots  // of the format before
}

// step is the position from a placement on, up to the next step's.
type step struct {
	min []byte
	lsn int64
}

// slots is a position in the format before: per slot id, and of the others.
type slots struct {
	seen map[uint32]int64
	base int64
}

// Start is the position before everything.
func Start() Position { return Position{} }

// After returns the position after every commit up to lsn.
func After(lsn int64) Position { return Position{steps: []step{{nil, lsn}}} }

// least returns the least position in the placements [lo, hi); a nil hi is open.
func (p *Position) least(lo, hi []byte) int64 {
	if len(p.steps) == 0 {
		return 0
	}
	i, found := slices.BinarySearchFunc(p.steps, lo, func(s step, lo []byte) int { return bytes.Compare(s.min, lo) })
	if !found {
		i-- // the first step begins before everything
	}
	lsn := p.steps[i].lsn
	for i++; i < len(p.steps) && (hi == nil || bytes.Compare(p.steps[i].min, hi) < 0); i++ {
		lsn = min(lsn, p.steps[i].lsn)
	}
	return lsn
}

// greatest returns the greatest LSN of the position.
func (p *Position) greatest() (lsn int64) {
	for i := range p.steps {
		lsn = max(lsn, p.steps[i].lsn)
	}
	return lsn
}

// add appends a step. They come in order; a first one that doesn't begin before everything gets one before it.
func (p *Position) add(min []byte, lsn int64) {
	if len(p.steps) == 0 && len(min) > 0 {
		p.steps = append(p.steps, step{nil, 0})
	}
	if n := len(p.steps); n > 0 && p.steps[n-1].lsn == lsn {
		return
	}
	p.steps = append(p.steps, step{min, lsn})
}

// resolve turns a position of the format before into one of today. Slots are as they were when it was the format.
func (p *Position) resolve(slots *catalog.SlotMap) {
	if p.old == nil {
		return
	}
	for i := range slots.Slots {
		lsn := p.old.base
		if n, ok := p.old.seen[slots.Slots[i].ID]; ok {
			lsn = max(lsn, n)
		}
		p.add(slots.Slots[i].Min, max(lsn, 0))
	}
	p.old = nil
}

// Formats of an opaque position.
const (
	formatSlots  = 1 // read, not written: an LSN per slot
	formatPlaces = 2
)

// String returns the position as text: a number, or opaque with a checksum.
func (p Position) String() string {
	if !p.wide && p.old == nil && len(p.steps) <= 1 {
		return strconv.FormatInt(p.greatest(), 10)
	}
	b := append([]byte{formatPlaces}, p.rid[:]...)
	b = appendBytes(b, p.turn)
	b = binary.AppendUvarint(b, uint64(len(p.steps)))
	for i := range p.steps {
		b = appendBytes(b, p.steps[i].min)
		b = binary.AppendUvarint(b, uint64(p.steps[i].lsn))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	return base64.RawURLEncoding.EncodeToString(b)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func errPosition() error {
	return status.New(status.BadRequest, "The continuation of the change feed is invalid or belongs to another "+
		"container.")
}

// Parse reads what String wrote, today or in the format before.
func Parse(s string) (Position, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return After(int64(n)), nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 14 || binary.BigEndian.Uint32(b[len(b)-4:]) != uint32(xxhash.Sum64(b[:len(b)-4])) {
		return Position{}, errPosition()
	}
	p := Position{rid: [8]byte(b[1:9])}
	r := reader{b: b[9 : len(b)-4]}
	switch b[0] {
	case formatSlots:
		p.readSlots(&r)
	case formatPlaces:
		p.readPlaces(&r)
	default:
		r.bad = true
	}
	if r.bad || len(r.b) > 0 {
		return Position{}, errPosition()
	}
	return p, nil
}

func (p *Position) readPlaces(r *reader) {
	p.wide = true
	p.turn = r.bytes()
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		st := step{r.bytes(), int64(r.uvarint())}
		var before []byte
		if i > 0 {
			before = p.steps[i-1].min
		}
		if r.bad = r.bad || st.lsn < 0 || (i == 0) != (len(st.min) == 0) || i > 0 &&
			bytes.Compare(before, st.min) >= 0; !r.bad {
			p.steps = append(p.steps, st)
		}
	}
}

func (p *Position) readSlots(r *reader) {
	p.old = &slots{map[uint32]int64{}, r.varint()}
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		id := r.uvarint()
		p.old.seen[uint32(id)] = r.varint()
	}
}

// reader takes numbers and bytes from the front of a text; bad after one that isn't whole.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) took(n int) {
	if n <= 0 {
		r.bad, n = true, len(r.b)
	}
	r.b = r.b[n:]
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.took(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.took(n)
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}
