// Package changes has the parts of change streams that know neither the store nor the protocol: resume tokens, and the
// description of an update by its document before and after.
package changes

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/journal"
)

// Kind says what a token stands for. The values are stored by clients, and sort in the order of what they stand for.
type Kind uint8

// The kinds of tokens.
const (
	Event      Kind = 0x10 // after an event
	Invalidate Kind = 0x20 // after the event invalidate that follows an event
	HighWater  Kind = 0x40 // after everything up to a time
)

// Token is a resume token: a position in the journal. Its text is hex and sorts as positions do. It is opaque to
// clients.
//
// Example: the event of the entry (7, 2) has the token
// 82 0000000000000007 00000002 10 0000 and a checksum. The high-water mark of the time 7 comes after it: its number is
// FFFFFFFF.
type Token struct {
	Time     uint64
	N        uint32
	Kind     Kind
	Fragment uint16 // of an event that was split, from 1 on; 0: it wasn't
}

// firstByte is the first byte of every token.
const firstByte = 0x82

const tokenLen = 1 + 8 + 4 + 1 + 2 + 4

// HighWaterOf returns the token after everything up to a time.
func HighWaterOf(time uint64) Token {
	return Token{Time: time, N: journal.After(time).N, Kind: HighWater}
}

// String returns the text of a token.
func (t Token) String() string {
	b := make([]byte, 0, tokenLen)
	b = binary.BigEndian.AppendUint64(append(b, firstByte), t.Time)
	b = binary.BigEndian.AppendUint32(b, t.N)
	b = binary.BigEndian.AppendUint16(append(b, byte(t.Kind)), t.Fragment)
	b = binary.BigEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	return strings.ToUpper(hex.EncodeToString(b))
}

// ParseToken reads a token. hexadecimal is false if the text isn't hex at all; ok is false if it is no token of ours.
func ParseToken(s string) (t Token, hexadecimal, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) == 0 {
		return t, false, false
	}
	if len(b) != tokenLen || b[0] != firstByte || binary.BigEndian.Uint32(b[tokenLen-4:]) !=
		uint32(xxhash.Sum64(b[:tokenLen-4])) {
		return t, true, false
	}
	t = Token{binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint32(b[9:]), Kind(b[13]),
		binary.BigEndian.Uint16(b[14:])}
	at := journal.Position{Time: t.Time, N: t.N}
	switch t.Kind {
	case Event:
		ok = !at.Whole()
	case Invalidate:
		ok = !at.Whole() && t.Fragment == 0
	case HighWater:
		ok = at.Whole() && t.Fragment == 0
	}
	return t, true, ok && t.Time > 0
}

// Position returns the position from which a stream goes on. Of an event that was split, the rest still follows.
func (t Token) Position() journal.Position { return journal.Position{Time: t.Time, N: t.N} }
