package store

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// formatEnvelope is the first byte of a stored item. docs/formats.md lists the formats. A number never gets another
// meaning.
const formatEnvelope = 1

// Flags of an envelope.
const (
	flagTTL     = 1 << 0 // four bytes of own ttl follow the fixed part
	flagNoIndex = 1 << 1 // indexing directive Exclude: the item has no index entries but id and _ts
)

// Envelope layout: format u8, flags u8, number u64, LSN u64, position u16, ticks u64, [ttl i32], checksum u32,
// document.
const (
	envFixed = 1 + 1 + 8 + 8 + 2 + 8
	envSum   = 4
)

// ticksPerSecond: envelopes keep 100 ns units since 1970, which is what Table's Timestamp shows; _ts is their second.
const ticksPerSecond = 10_000_000

// PartitionKey has one value for each path of the container's definition. Undefined stands for None.
type PartitionKey []value.Value

// Item is a stored item. Doc, PK and ID point into the memory that the item was read into, and are valid as long as
// that memory is. An item that a Rows gives is valid until the next row.
type Item struct {
	Doc    []byte // BSON, identity in field _id
	Number uint64 // document part of _rid, given at creation
	LSN    int64
	Pos    uint16 // position within its commit
	Ticks  int64  // time of the last write, 100 ns units since 1970 UTC; strictly increasing per item
	TTL    int32  // own ttl in seconds, 0 = none, -1 = never
	flags  byte

	ident []byte // tuple, id
	paths int    // components of the tuple
}

// TS returns the time of the last write in seconds since 1970: the service's _ts.
func (it *Item) TS() int64 { return it.Ticks / ticksPerSecond }

// ETag returns the entity tag, a GUID-like text without quotes that is different after every write.
func (it *Item) ETag() string {
	var b [36]byte
	return string(it.AppendETag(b[:0]))
}

// AppendETag appends ETag to dst.
func (it *Item) AppendETag(dst []byte) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], uint64(it.LSN)<<16|uint64(it.Pos))
	binary.BigEndian.PutUint64(raw[8:], uint64(it.Ticks))
	for i, cut := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		from := [...]int{0, 4, 6, 8, 10}[i]
		dst = hex.AppendEncode(dst, raw[from:cut])
	}
	return dst
}

// Identity returns the encoded partition key tuple and id (core/keys, AppendExact).
func (it *Item) Identity() []byte { return it.ident }

// PK returns the item's partition key. It decodes the key; the result is the caller's.
func (it *Item) PK() PartitionKey {
	pk := make(PartitionKey, 0, it.paths)
	rest := it.ident
	for range it.paths {
		v, r, err := keys.DecodeExact(rest)
		if err != nil {
			return pk
		}
		pk, rest = append(pk, v), r
	}
	return pk
}

// ID returns the item's id. It decodes the key.
func (it *Item) ID() value.Value {
	rest := it.ident
	for range it.paths {
		var err error
		if rest, err = keys.SkipExact(rest); err != nil {
			return value.Value{}
		}
	}
	v, _, _ := keys.DecodeExact(rest)
	return v
}

// Clone returns the item with memory of its own.
func (it *Item) Clone() *Item {
	c := *it
	buf := make([]byte, 0, len(it.Doc)+len(it.ident))
	buf = append(append(buf, it.Doc...), it.ident...)
	c.Doc, c.ident = buf[:len(it.Doc):len(it.Doc)], buf[len(it.Doc):]
	return &c
}

// CloneTo appends the item's bytes to mem and returns it, and the item with its memory there.
func (it *Item) CloneTo(mem []byte) (Item, []byte) {
	c, from := *it, len(mem)
	mem = append(append(mem, it.Doc...), it.ident...)
	mid := from + len(it.Doc)
	c.Doc, c.ident = mem[from:mid:mid], mem[mid:len(mem):len(mem)]
	return c, mem
}

// appendEnvelopeHead appends the stored form of an item up to its document. sum is the checksum of the document.
func appendEnvelopeHead(dst []byte, it *Item, sum uint64) []byte {
	at := len(dst)
	flags := it.flags &^ flagTTL
	if it.TTL != 0 {
		flags |= flagTTL
	}
	dst = append(dst, formatEnvelope, flags)
	dst = binary.BigEndian.AppendUint64(dst, it.Number)
	dst = binary.BigEndian.AppendUint64(dst, uint64(it.LSN))
	dst = binary.BigEndian.AppendUint16(dst, it.Pos)
	dst = binary.BigEndian.AppendUint64(dst, uint64(it.Ticks))
	if it.TTL != 0 {
		dst = binary.BigEndian.AppendUint32(dst, uint32(it.TTL))
	}
	return binary.BigEndian.AppendUint32(dst, checksum(dst[at:], sum))
}

// checksumDoc is the document's part of an envelope's checksum.
func checksumDoc(doc []byte) uint64 { return xxhash.Sum64(doc) }

func checksum(head []byte, doc uint64) uint32 {
	return uint32(xxhash.Sum64(head) ^ bits.RotateLeft64(doc, 1))
}

// decodeEnvelope reads the stored form into it; Doc points into b.
func decodeEnvelope(b []byte, it *Item) error {
	if len(b) < envFixed+envSum || b[0] != formatEnvelope {
		return status.New(status.Corruption, "stored item of unknown format")
	}
	it.flags = b[1]
	it.Number = binary.BigEndian.Uint64(b[2:])
	it.LSN = int64(binary.BigEndian.Uint64(b[10:]))
	it.Pos = binary.BigEndian.Uint16(b[18:])
	it.Ticks = int64(binary.BigEndian.Uint64(b[20:]))
	it.TTL = 0
	at := envFixed
	if it.flags&flagTTL != 0 {
		if len(b) < at+4+envSum {
			return status.New(status.Corruption, "stored item is cut")
		}
		it.TTL = int32(binary.BigEndian.Uint32(b[at:]))
		at += 4
	}
	it.Doc = b[at+envSum:]
	return nil
}

// verifyEnvelope checks the checksum of a stored item.
func verifyEnvelope(b []byte) error {
	at := envFixed
	if len(b) > 1 && b[1]&flagTTL != 0 {
		at += 4
	}
	if len(b) < at+envSum || binary.BigEndian.Uint32(b[at:]) != checksum(b[:at], checksumDoc(b[at+envSum:])) {
		return status.New(status.Corruption, "stored item fails its checksum")
	}
	return nil
}

// expiry returns the second at which the item expires under a container's default ttl; 0 = never. An item expires at
// _ts + (its own ttl or the default). Nothing expires while the container has no ttl.
func (it *Item) expiry(def *int32) int64 {
	if def == nil {
		return 0
	}
	ttl := it.TTL
	if ttl == 0 {
		ttl = *def
	}
	if ttl <= 0 {
		return 0
	}
	return it.TS() + int64(ttl)
}
