package sql

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
)

// A continuation is the text `header.token`: a header in base64url without padding, a dot, and the core's own token. It
// is the encoded form of a state. The header has these fields, numbers of fixed size in big-endian order:
//
//	format      1 byte, formatState
//	inItem      uvarint
//	skip        uvarint
//	left + 1    uvarint, so that -1 (no limit) is 0
//	drop        uvarint
//	len(seen)   uvarint
//	seen        8 bytes each
//	kept, last  8 bytes each; absent when both are 0 and there are no stats
//	best        1 byte; absent without kept
//	stats       all further bytes
//	checksum    4 bytes: low half of the xxhash of all fields above and the core's token, seeded with the query's hash
//
// Example: the state inItem 1, left -1, all other fields 0 is encoded as 02 01 00 00 00 00 and the checksum. A changed
// byte, or the same continuation with another query, has another checksum and is refused.
const formatState = 2

// keptBytes is the size of kept and last in bytes.
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
	if st.kept != 0 || st.last != 0 || st.stats != "" || st.best {
		b = binary.BigEndian.AppendUint64(b, st.kept)
		b = binary.BigEndian.AppendUint64(b, st.last)
		if st.stats != "" || st.best {
			b = append(b, map[bool]byte{true: 1}[st.best])
			b = append(b, st.stats...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, stateSum(b, hash, st.core))
	return base64.RawURLEncoding.EncodeToString(b) + "." + st.core
}

// encodeShort is encodeState with a limit in bytes; 0: no limit. If the continuation is too long it leaves out the
// hashes of the rows that a DISTINCT has returned, or the statistics of ORDER BY RANK. The next page then runs from the
// start and drops as many rows, or determines the statistics. A continuation without both is shorter than 1 KB.
func encodeShort(st state, hash uint64, limit int) string {
	t := encodeState(st, hash)
	if limit > 0 && len(t) > limit && len(st.seen) > 0 {
		t = encodeState(state{drop: st.drop, kept: st.kept}, hash)
	} else if limit > 0 && len(t) > limit && st.stats != "" {
		st.stats = ""
		t = encodeState(st, hash)
	}
	return t
}

func stateSum(header []byte, hash uint64, core string) uint32 {
	d := xxhash.NewWithSeed(hash)
	_, _ = d.Write(header)
	_, _ = d.WriteString(core)
	return uint32(d.Sum64())
}

// decodeState decodes a continuation. begin is the state of a first page. If each page of the query runs from the start
// (restarts) and there are no hashes, the result is begin with the number of rows to drop. Otherwise the result is the
// encoded position.
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
	if n[4] > maxSeen || uint64(len(rest)) != 8*n[4] && uint64(len(rest)) < 8*n[4]+keptBytes {
		return state{}, refuse
	}
	var kept, last uint64
	stats, best := "", false
	if tail := rest[8*n[4]:]; len(tail) > 0 {
		kept, last, rest = binary.BigEndian.Uint64(tail), binary.BigEndian.Uint64(tail[8:]), rest[:8*n[4]]
		if tail = tail[keptBytes:]; len(tail) > 0 {
			best, stats = tail[0] == 1, string(tail[1:])
		}
	}
	if restarts && n[4] == 0 {
		begin.drop, begin.kept, begin.last = int64(n[3]), kept, last
		return begin, nil
	}
	st := state{core: core, inItem: int64(n[0]), skip: int64(n[1]), left: int64(n[2]) - 1, drop: int64(n[3]),
		kept: kept, stats: stats, best: best}
	for ; len(rest) > 0; rest = rest[8:] {
		st.seen = append(st.seen, binary.BigEndian.Uint64(rest))
	}
	return st, nil
}
