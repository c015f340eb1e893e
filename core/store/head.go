package store

import (
	"encoding/binary"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/status"
)

const (
	formatHead    = 1
	formatHeadTwo = 2 // while an index rebuild is under way: Next and Phase follow the tracked paths
	formatLogical = 1
)

// Head is the state of a slot. Every commit into the slot rewrites it under the precondition that it is what was read, so
// LSN order is commit order in a slot and the counts are exact.
type Head struct {
	LSN      int64
	Ticks    int64 // time of the last commit: commit times never fall within a slot
	Items    int64
	Bytes    int64  // keys and values of the items
	Index    uint32 // version of the indexing policy that the slot's index entries follow
	Next     uint32 // version that an index rebuild makes them follow; 0 = none is under way
	Phase    Phase  // how far it has come
	LogFloor int64
	Classes  uint32      // value classes that the index and the keys of items have ever held
	Elements index.Bloom // paths that have ever had array elements
	Lossy    index.Bloom // paths that have ever had cut values
	Tracked  []Tracked   // paths that a query has sorted by
}

// Phase is how far an index rebuild has come in a slot.
type Phase uint8

// The phases of a slot in an index rebuild. A is the policy before it and B the one after it.
const (
	Settled  Phase = iota // no rebuild
	Adding                // all entries of A, some of B; writers keep both
	Ready                 // all entries of A and B; writers keep both
	Removing              // all entries of B, some of A; writers keep B and delete both
)

// Tracked counts the items that have an index entry for the value at a path (elements of arrays don't count). When it equals
// the slot's items, the path's index entries name every item and their order is the order of all items.
type Tracked struct {
	Path  uint64
	Count int64
}

// maxTracked bounds the paths that a slot counts.
const maxTracked = 8

// headLen is the length of a head without its tracked paths, 16 bytes each.
const headLen = 1 + 8*4 + 4 + 8 + 4 + 32 + 32 + 1

// maxHead is how long a head may get.
const maxHead = headLen + 16*maxTracked + 5

func (h *Head) append(dst []byte) []byte {
	format := byte(formatHead)
	if h.Next != 0 {
		format = formatHeadTwo
	}
	dst = append(dst, format)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.LSN))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Ticks))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Items))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Bytes))
	dst = binary.BigEndian.AppendUint32(dst, h.Index)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.LogFloor))
	dst = binary.BigEndian.AppendUint32(dst, h.Classes)
	for _, b := range [...]*index.Bloom{&h.Elements, &h.Lossy} {
		for _, w := range b {
			dst = binary.BigEndian.AppendUint64(dst, w)
		}
	}
	dst = append(dst, byte(len(h.Tracked)))
	for _, t := range h.Tracked {
		dst = binary.BigEndian.AppendUint64(dst, t.Path)
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.Count))
	}
	if format == formatHeadTwo {
		dst = append(binary.BigEndian.AppendUint32(dst, h.Next), byte(h.Phase))
	}
	return dst
}

func (h *Head) decode(b []byte) error {
	if len(b) < headLen || b[0] != formatHead && b[0] != formatHeadTwo {
		return status.New(status.Corruption, "slot head of unknown format")
	}
	end := headLen + 16*int(b[headLen-1])
	h.Next, h.Phase = 0, Settled
	if b[0] == formatHeadTwo && len(b) == end+5 {
		h.Next, h.Phase = binary.BigEndian.Uint32(b[end:]), Phase(b[end+4])
		b = b[:end]
	}
	if len(b) != end || h.Phase > Removing {
		return status.New(status.Corruption, "slot head of unknown format")
	}
	u64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	h.LSN, h.Ticks, h.Items, h.Bytes = u64(1), u64(9), u64(17), u64(25)
	h.Index, h.LogFloor = binary.BigEndian.Uint32(b[33:]), u64(37)
	h.Classes = binary.BigEndian.Uint32(b[45:])
	for i, bl := range [...]*index.Bloom{&h.Elements, &h.Lossy} {
		for j := range bl {
			bl[j] = uint64(u64(49 + 32*i + 8*j))
		}
	}
	h.Tracked = nil
	for at := headLen; at < len(b); at += 16 {
		h.Tracked = append(h.Tracked, Tracked{uint64(u64(at)), u64(at + 8)})
	}
	return nil
}

// LogicalHead is the state of a logical partition.
type LogicalHead struct {
	LSN   int64 // of its last commit
	Items int64
	Bytes int64
}

const logicalLen = 1 + 8*3

func (h *LogicalHead) append(dst []byte) []byte {
	dst = append(dst, formatLogical)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.LSN))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.Items))
	return binary.BigEndian.AppendUint64(dst, uint64(h.Bytes))
}

func (h *LogicalHead) decode(b []byte) error {
	if len(b) != logicalLen || b[0] != formatLogical {
		return status.New(status.Corruption, "logical head of unknown format")
	}
	h.LSN = int64(binary.BigEndian.Uint64(b[1:]))
	h.Items = int64(binary.BigEndian.Uint64(b[9:]))
	h.Bytes = int64(binary.BigEndian.Uint64(b[17:]))
	return nil
}
