package store

import (
	"encoding/binary"

	"github.com/orrerydb/orrery/core/status"
)

// AppendCarried appends a complete item in a form for temporary files. Only ReadCarried of the same process reads it.
// Unlike an envelope it includes the identity. It also accepts items that were made of an index entry.
func AppendCarried(dst []byte, it *Item) []byte {
	dst = append(dst, it.flags, byte(it.paths))
	dst = binary.AppendUvarint(dst, it.Number)
	dst = binary.AppendVarint(dst, it.LSN)
	dst = binary.AppendUvarint(dst, uint64(it.Pos))
	dst = binary.AppendVarint(dst, it.Ticks)
	dst = binary.AppendVarint(dst, int64(it.TTL))
	dst = append(binary.AppendUvarint(dst, uint64(len(it.ident))), it.ident...)
	return append(dst, it.Doc...)
}

// ReadCarried reads the output of AppendCarried. The item points into b. Other input is Corruption.
func ReadCarried(b []byte) (*Item, error) {
	r := carried{b: b}
	it := &Item{flags: r.byte(), paths: int(r.byte())}
	it.Number = r.uvarint()
	it.LSN = r.varint()
	it.Pos = uint16(r.uvarint())
	it.Ticks = r.varint()
	it.TTL = int32(r.varint())
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		return nil, status.New(status.Corruption, "An item in a temporary file is damaged.")
	}
	it.ident, it.Doc = r.b[:n:n], r.b[n:]
	return it, nil
}

// carried reads fields from bytes. bad is set when the bytes end early.
type carried struct {
	b   []byte
	bad bool
}

func (r *carried) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *carried) uvarint() uint64 {
	n, k := binary.Uvarint(r.b)
	return took(r, n, k)
}

func (r *carried) varint() int64 {
	n, k := binary.Varint(r.b)
	return took(r, n, k)
}

func took[N uint64 | int64](r *carried, n N, k int) N {
	if k <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[k:]
	return n
}
