package exec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// position is the place after a row, where a query continues. The kind decides which fields are used.
//
// Example: a page of SELECT * FROM c ORDER BY c.n ends with the row n = 5, number 70. Its position is {kind: posSort,
// keys: [5], number: 70}. The next page begins with the first row after (5, 70).
type position struct {
	kind   byte
	number uint64 // the row's order number, with posScan its item number
	// former, in a token of an earlier version, is the row's item number: that version ordered rows with equal keys by
	// it. 0 = none
	former uint64
	// posIndex, posMixed; posCreation
	ofSlot bool   // unit.hi is unknown: the unit is the slot that began at unit.lo in the container's first map
	sig    uint32 // access.Plan.Signature
	unit   places // the placements that were walked together, see span; with posCreation the range
	value  []byte // encoded value of the index entry; empty: the unit's items come in the order of their numbers
	// posScan, posMixed
	key  []byte // item suffix
	cut  bool   // key is only the beginning: hash and number identify the whole
	hash uint64 // of the whole key
	// posMixed
	keyNumber uint64 // item number of key
	// posSort
	keys    []value.Value // sort keys; with cut the last ones may be missing
	partial bool          // the last of keys is only the beginning of a string
}

// Kinds of position. The kind decides the order of the query. A query with OrderBy resumes from posSort whatever its
// access path is now. The other kinds have one order each.
const (
	posScan     = 1 // item suffixes: scans and points
	posIndex    = 2 // units, and in each unit (value, number) of one leaf's entries, or numbers
	posSort     = 3 // (sort keys, number)
	posCreation = 5 // counters of item numbers, in a range of placements
	posMixed    = 4 // item suffixes of one unit, without the items that posIndex gave: the index can't be used any more
)

const (
	formatToken  = 3
	slotFormat   = 2   // posIndex and posMixed have no end of the unit: it was a slot of a map that nobody had changed
	formerFormat = 1   // as slotFormat, and has no former; number is the item's number
	maxPosKey    = 700 // with the other fields at most 768 bytes, which are 1 KB of base64
	maxSortKeys  = 640
)

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// encode returns the token of the current row.
func (r *Rows) encode() string { return tokenText(r.appendToken(make([]byte, 0, 256))) }

// tokenText returns a token as text: base64url without padding.
func tokenText(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// appendToken appends the token of the current row to b, which is empty. Layout: format u8, query hash u64, kind u8,
// number uvarint, former uvarint, the fields of the kind, checksum u32.
func (r *Rows) appendToken(b []byte) []byte {
	p := &r.row.pos
	b = append(b, formatToken)
	b = binary.BigEndian.AppendUint64(b, r.hash)
	b = append(b, p.kind)
	b = binary.AppendUvarint(b, p.number)
	b = binary.AppendUvarint(b, p.former)
	switch p.kind {
	case posScan:
		b = appendKey(b, p.key, maxPosKey)
	case posIndex:
		b = appendIndexPos(b, p, r.signature())
	case posCreation:
		b = appendPlace(appendPlace(b, p.unit.lo), p.unit.hi)
	case posMixed:
		b = appendIndexPos(b, p, p.sig)
		b = binary.AppendUvarint(b, p.keyNumber)
		b = appendKey(b, p.key, maxPosKey-len(p.unit.lo)-len(p.unit.hi)-len(p.value)-20)
	case posSort:
		b = r.appendSortKeys(b)
	}
	return binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
}

func (r *Rows) signature() uint32 { return r.stats.Plan.Signature() }

func appendKey(b, key []byte, most int) []byte {
	if len(key) <= most {
		return append(append(b, 0), key...)
	}
	b = binary.BigEndian.AppendUint64(append(b, 1), xxhash.Sum64(key))
	return append(b, key[:most]...)
}

func appendIndexPos(b []byte, p *position, sig uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, sig)
	b = appendPlace(appendPlace(b, p.unit.lo), p.value)
	return appendPlace(b, p.unit.hi)
}

// appendPlace appends bytes behind their length.
func appendPlace(b, place []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(place))), place...)
}

// appendSortKeys appends the exact encodings of the current row's sort keys. If they don't fit, they are cut: of a
// string the beginning is kept, other values and all keys after the cut are left out. A hash of all keys identifies the
// row.
func (r *Rows) appendSortKeys(b []byte) []byte {
	var all []byte
	ends := make([]int, 0, 4)
	vals := make([]value.Value, 0, 4)
	for i := range r.q.OrderBy {
		v := sortKey(&r.q.OrderBy[i], &r.row.item)
		all = keys.AppendExact(all, v)
		ends, vals = append(ends, len(all)), append(vals, v)
	}
	if len(all) <= maxSortKeys {
		return append(append(b, 0), all...)
	}
	n, end := 0, 0
	for n < len(ends) && ends[n] <= maxSortKeys {
		end = ends[n]
		n++
	}
	text := []byte(nil)
	if v := vals[n]; v.Kind() == value.String {
		text = v.Bytes()
		text = text[:min(len(text), (maxSortKeys-end)/2)] // zeros take two bytes
	}
	b = append(b, 1|flag(len(text) > 0)<<1)
	b = binary.BigEndian.AppendUint64(b, xxhash.Sum64(all))
	b = append(b, all[:end]...)
	if len(text) > 0 {
		b = keys.AppendExact(b, value.StringBytes(text))
	}
	return b
}

func errToken() error {
	return status.New(status.BadRequest, "The continuation token is invalid or belongs to another query.")
}

// reader reads the fields of a token. bad is set when the bytes end early.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return make([]byte, 8)[:min(n, 8)]
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// place reads the end of a range of placements; nil = open.
func (r *reader) place() []byte {
	if p := r.take(r.uvarint()); len(p) > 0 {
		return p
	}
	return nil
}

func (r *reader) key(p *position) {
	switch r.take(1)[0] {
	case 0:
	case 1:
		p.cut, p.hash = true, binary.BigEndian.Uint64(r.take(8))
	default:
		r.bad = true
	}
	p.key = r.b
}

func (r *reader) sortKeys(p *position) {
	f := r.take(1)[0]
	if f > 3 || f == 2 {
		r.bad = true
		return
	}
	p.cut, p.partial = f&1 != 0, f&2 != 0
	if p.cut {
		p.hash = binary.BigEndian.Uint64(r.take(8))
	}
	for len(r.b) > 0 && !r.bad {
		v, rest, err := keys.DecodeExact(r.b)
		if r.bad = err != nil; !r.bad {
			p.keys, r.b = append(p.keys, v), rest
		}
	}
	r.bad = r.bad || p.partial && (len(p.keys) == 0 || p.keys[len(p.keys)-1].Kind() != value.String)
}

// decodeToken reads a token; nil for "". Anything that encode didn't write for this query is BadRequest.
func decodeToken(s string, hash uint64) (*position, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(b) < 15 || b[0] < formerFormat || b[0] > formatToken {
		return nil, errToken()
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != uint32(xxhash.Sum64(body)) || binary.BigEndian.Uint64(b[1:]) != hash {
		return nil, errToken()
	}
	p := &position{kind: body[9]}
	r := reader{b: body[10:]}
	if p.number = r.uvarint(); b[0] != formerFormat {
		p.former = r.uvarint()
	} else if p.kind != posScan {
		p.number, p.former = 0, p.number
	}
	switch p.kind {
	case posScan:
		p.keyNumber = p.number
		r.key(p)
	case posIndex, posMixed:
		p.sig = binary.BigEndian.Uint32(r.take(4))
		p.unit.lo = r.take(r.uvarint())
		p.value = r.take(r.uvarint())
		if p.ofSlot = b[0] < formatToken; !p.ofSlot {
			p.unit.hi = r.place()
		}
		if p.kind == posMixed {
			p.keyNumber = r.uvarint()
			r.key(p)
		} else if len(r.b) > 0 {
			r.bad = true
		}
	case posSort:
		r.sortKeys(p)
	case posCreation:
		p.unit = places{r.take(r.uvarint()), r.place()}
		r.bad = r.bad || len(r.b) > 0
	default:
		r.bad = true
	}
	if r.bad {
		return nil, errToken()
	}
	return p, nil
}

// passed reports whether the item with this suffix was given before a posScan or posMixed position, or is the row of
// the position itself.
func (p *position) passed(suffix []byte) bool {
	if p.cut && len(suffix) > len(p.key) && bytes.HasPrefix(suffix, p.key) {
		return xxhash.Sum64(suffix) == p.hash
	}
	return bytes.Compare(suffix, p.key) <= 0
}

// queryHash binds a token to a container, a query and its restriction to a partition key. Ranges are not part of it: a
// token is valid for every part of the range that it was made for.
func queryHash(c *store.Container, q *Query) uint64 {
	d := xxhash.New()
	var b [8]byte
	w := func(n uint64) {
		binary.BigEndian.PutUint64(b[:], n)
		_, _ = d.Write(b[:])
	}
	def := c.Def()
	rid := def.RID()
	_, _ = d.Write(rid[:])
	w(uint64(def.Gen))
	w(q.PlanHash)
	if q.PK != nil {
		if place, tuple, _, err := c.Place(q.PK); err == nil {
			_, _ = d.Write(place)
			_, _ = d.Write(tuple)
		}
	}
	for _, o := range q.OrderBy {
		_, _ = d.WriteString(o.Path.String())
		w(uint64(flag(o.Desc)))
	}
	if q.Shown == Newest {
		_, _ = d.WriteString("newest")
	}
	return d.Sum64()
}
