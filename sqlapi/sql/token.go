package sql

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
)

// A continuation is a header in base64url, a dot, and the core's own token. Header: format u8, uvarints inItem, skip,
// left+1, given, number of seen, then seen in 8 bytes each, then the first 4 bytes of a checksum over the header, the
// query's hash and the core's token. Where a state is kept for the next page, or groups were given, two numbers of 8
// bytes follow seen: which state, and the hash of the last group's keys.
const formatState = 2

// keptBytes is what follows seen, when something does.
const keptBytes = 16

func encodeState(st state, hash uint64) string {
	b := make([]byte, 0, 32)
	b = append(b, formatState)
	b = binary.AppendUvarint(b, uint64(st.inItem))
	b = binary.AppendUvarint(b, uint64(st.skip))
	b = binary.AppendUvarint(b, uint64(st.left+1))
	b = binary.AppendUvarint(b, uint64(st.drop))
	b = binary.AppendUvarint(b, uint64(len(st.seen)))
	for _, h := range st.seen {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	if st.kept != 0 || st.last != 0 {
		b = binary.BigEndian.AppendUint64(b, st.kept)
		b = binary.BigEndian.AppendUint64(b, st.last)
	}
	b = binary.BigEndian.AppendUint32(b, stateSum(b, hash, st.core))
	return base64.RawURLEncoding.EncodeToString(b) + "." + st.core
}

// encodeShort is encodeState with at most limit bytes, 0 for no limit. What makes tokens long is the hashes of the rows
// that a DISTINCT has given: without them the next page begins anew and drops as many rows. Without hashes a token is
// below 1 KB.
func encodeShort(st state, hash uint64, limit int) string {
	t := encodeState(st, hash)
	if limit > 0 && len(t) > limit && len(st.seen) > 0 {
		t = encodeState(state{drop: st.drop, kept: st.kept}, hash)
	}
	return t
}

func stateSum(header []byte, hash uint64, core string) uint32 {
	d := xxhash.NewWithSeed(hash)
	_, _ = d.Write(header)
	_, _ = d.WriteString(core)
	return uint32(d.Sum64())
}

// decodeState reads a continuation. begin is the state of a first page; a query that begins anew on each page keeps it
// and takes only how many rows to drop; one that knows what it has seen goes on.
func decodeState(token string, hash uint64, begin state, restarts bool) (state, error) {
	if token == "" {
		return begin, nil
	}
	refuse := status.New(status.BadRequest, "Invalid continuation token.")
	head, core, ok := strings.Cut(token, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	if !ok || err != nil || len(b) < 9 || b[0] != formatState {
		return state{}, refuse
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if stateSum(body, hash, core) != sum {
		return state{}, refuse
	}
	var n [5]uint64
	rest := body[1:]
	for i := range n {
		v, w := binary.Uvarint(rest)
		if w <= 0 {
			return state{}, refuse
		}
		n[i], rest = v, rest[w:]
	}
	if n[4] > maxSeen || uint64(len(rest)) != 8*n[4] && uint64(len(rest)) != 8*n[4]+keptBytes {
		return state{}, refuse
	}
	var kept, last uint64
	if tail := rest[8*n[4]:]; len(tail) > 0 {
		kept, last, rest = binary.BigEndian.Uint64(tail), binary.BigEndian.Uint64(tail[8:]), rest[:8*n[4]]
	}
	if restarts && n[4] == 0 {
		begin.drop, begin.kept, begin.last = int64(n[3]), kept, last
		return begin, nil
	}
	st := state{core: core, inItem: int64(n[0]), skip: int64(n[1]), left: int64(n[2]) - 1, drop: int64(n[3]),
		kept: kept}
	for ; len(rest) > 0; rest = rest[8:] {
		st.seen = append(st.seen, binary.BigEndian.Uint64(rest))
	}
	return st, nil
}
