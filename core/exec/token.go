package exec

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// position is where a query goes on. By source: scan and points use key; index uses slot, value and number; sort uses value
// and number.
type position struct {
	set     bool
	matched bool // the candidate passed Match already (sort)
	skip    bool // no candidate, the position alone moved
	kind    byte
	slotMin []byte // least placement of the slot
	value   []byte // encoded value, cut at maxPosValue
	number  uint64
	key     []byte // item suffix, cut at maxPosKey
	cut     bool   // key was cut: number finds the whole
	sig     uint32 // access.Plan.Signature
}

// Kinds of position; a token of one kind doesn't fit a query that runs another way.
const (
	posScan  = 1
	posIndex = 2
	posSort  = 3
)

const (
	formatToken = 1
	maxPosValue = 300
	maxPosKey   = 400
)

// Token layout: format u8, query hash u64, kind u8, then by kind, then checksum u32; base64url without padding.
func encodeToken(hash uint64, p *position) string {
	b := make([]byte, 0, 128)
	b = append(b, formatToken)
	b = binary.BigEndian.AppendUint64(b, hash)
	b = append(b, p.kind)
	b = binary.BigEndian.AppendUint32(b, p.sig)
	b = binary.AppendUvarint(b, p.number)
	switch p.kind {
	case posScan:
		b = append(b, flag(p.cut))
		b = append(b, p.key...)
	case posIndex:
		b = binary.AppendUvarint(b, uint64(len(p.slotMin)))
		b = append(b, p.slotMin...)
		b = append(b, p.value...)
	case posSort:
		b = append(b, p.value...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	return base64.RawURLEncoding.EncodeToString(b)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func errToken() error {
	return status.New(status.BadRequest, "The continuation token is invalid or belongs to another query.")
}

func decodeToken(s string, hash uint64) (*position, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(b) < 19 || b[0] != formatToken {
		return nil, errToken()
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != uint32(xxhash.Sum64(body)) || binary.BigEndian.Uint64(b[1:]) != hash {
		return nil, errToken()
	}
	p := &position{set: true, kind: body[9], sig: binary.BigEndian.Uint32(body[10:])}
	rest := body[14:]
	uvarint := func() uint64 {
		n, k := binary.Uvarint(rest)
		if k <= 0 {
			err = errToken()
			return 0
		}
		rest = rest[k:]
		return n
	}
	p.number = uvarint()
	switch p.kind {
	case posScan:
		if err != nil || len(rest) < 1 {
			return nil, errToken()
		}
		p.cut, p.key = rest[0] == 1, rest[1:]
	case posIndex:
		n := uvarint()
		if err != nil || n > uint64(len(rest)) {
			return nil, errToken()
		}
		p.slotMin, p.value = rest[:n], rest[n:]
	case posSort:
		p.value = rest
	default:
		return nil, errToken()
	}
	if err != nil {
		return nil, errToken()
	}
	return p, nil
}

// queryHash ties a token to a container, a query and its restriction.
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
		if _, place, tuple, _, err := c.Locate(q.PK); err == nil {
			_, _ = d.Write(place)
			_, _ = d.Write(tuple)
		}
	}
	for _, o := range q.OrderBy {
		_, _ = d.WriteString(o.Path.String())
		w(uint64(flag(o.Desc)))
	}
	return d.Sum64()
}
