package feed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
)

// Position is a reader's position in a feed: every commit with an LSN at or below it was read. It has an LSN for each
// part of the placements, because only LSNs of one physical partition are comparable.
//
// In one physical partition it is one number, and its text is that number. For a wider feed, and with a shared engine,
// it is a list of (first placement, LSN), whose text is opaque unless all LSNs are equal. It never names slots, so it
// stays valid when partitions are split or joined: a reader of a range continues at the least LSN in the range.
//
// An opaque text of up to maxDigits consists of digits, as the service's positions do: Python's client takes any other
// text for one of its own, or for "from now". The number is greater than any LSN.
//
// Example: partitions begin at placements 00 and 80 and were read up to LSN 7 and 9. The steps are (00, 7) and (80, 9).
// After a split at 40 the partition 40 to 80 continues at 7.
type Position struct {
	steps []step  // by min, the first one's is empty; none = before everything
	turn  []byte  // the first placement of the partition that is to be read first
	rid   [8]byte // the container that the position comes from; zero when the position is a number
	wide  bool    // it covers more than one physical partition
	old   *slots  // of the previous format
}

// step is the position from a placement up to the next step's placement.
type step struct {
	min []byte
	lsn int64
}

// slots is a position of the previous format: an LSN for each slot id, and one for all others.
type slots struct {
	seen map[uint32]int64
	base int64
}

// Start is the position before everything.
func Start() Position { return Position{} }

// After returns the position after every commit up to lsn.
func After(lsn int64) Position { return Position{steps: []step{{nil, lsn}}} }

// least returns the least LSN in the placements [lo, hi); a nil hi is open.
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

// add appends a step. Steps are added in order. If the first one doesn't begin at the least placement, add puts one
// before it that does.
func (p *Position) add(min []byte, lsn int64) {
	if len(p.steps) == 0 && len(min) > 0 {
		p.steps = append(p.steps, step{nil, 0})
	}
	if n := len(p.steps); n > 0 && p.steps[n-1].lsn == lsn {
		return
	}
	p.steps = append(p.steps, step{min, lsn})
}

// resolve converts a position of the previous format. Slots are the same as when that format was used.
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

// Formats of an opaque position: its first byte.
const (
	formatSlots  = 1 // read, not written: an LSN per slot
	formatPlaces = 2
)

// maxDigits limits texts of digits, which are nearly twice as long as base64: Node's clients take 16 KiB of headers.
const maxDigits = 4096

// String returns the position as text: an LSN, or opaque with a checksum.
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
	if len(b)*8 <= maxDigits*3 { // a digit has more than three bits
		return new(big.Int).SetBytes(b).String()
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func errPosition() error {
	return status.New(status.BadRequest, "The continuation of the change feed is invalid or belongs to another "+
		"container.")
}

// Parse reads the output of String, in this format or the previous one.
func Parse(s string) (Position, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return After(int64(n)), nil
	}
	b, err := opaqueBytes(s)
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

// opaqueBytes returns the bytes of an opaque text. In base64 it begins with a letter, because both formats do.
func opaqueBytes(s string) ([]byte, error) {
	if s == "" || s[0] < '0' || s[0] > '9' || len(s) > maxDigits {
		return base64.RawURLEncoding.DecodeString(s)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, errPosition()
	}
	return n.Bytes(), nil
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

// reader reads numbers and bytes from the beginning of a text. bad is set when one is incomplete.
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
