package store

import (
	"encoding/binary"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/status"
)

const (
	formatHead    = 3
	formatLogical = 1
)

// Head is the state of a slot. Every commit into the slot rewrites it, under the precondition that the stored head is
// the one that was read. So LSN order is commit order in a slot, and the counts are exact.
//
// Example: two processes read a head with LSN 7. The first writes a head with LSN 8 and succeeds. The precondition of
// the second fails: it reads the head again and tries with LSN 9.
type Head struct {
	LSN   int64
	Ticks int64 // time of the last commit: commit times never fall within an epoch
	Items int64
	Bytes int64 // keys and values of the items

	Index uint32 // version of the indexing policy that the slot's index entries follow; 0 = see bare
	Next  uint32 // version that an index rebuild makes them follow; 0 = no rebuild
	Phase Phase  // phase of the rebuild
	Stale bool   // there may be entries of an unknown policy: see rebuilder.clean

	Moving bool // the slot is being copied to others: commits record what they remove (move)
	Moved  bool // other slots have replaced the slot: no commit follows

	// In a store that several processes share, else zero. Move names the copy that Moving is about: it is the id of the
	// first slot that the copy makes. It stays when a copy has ended early until its records of removed items are
	// removed. Held asks the writers of other processes to wait a moment: the copy is in its last round, or a rebuild
	// has lost too often against them.
	Move uint32
	Held bool

	// Block is the last LSN of the block that is reserved for the slot, in a store that several processes share.
	Block int64

	// Writer is the process that has written the head, in a store that several share; else 0. Two processes that
	// commit the same counts under the same LSN have different heads, so each can tell whether its commit was made.
	Writer uint64

	// Recorded is set in a store that several processes share if the journal has the slot's commits: the time of the
	// last of them, or 1 (core/journal, shared.go).
	Recorded uint64

	Lowest    uint64 // no item has a lower counter (Container.Order)
	FeedFloor int64  // no feed entry has a lower LSN
	LogFloor  int64  // the log has every commit from this LSN on; 0 = commits aren't logged: see log.go

	// flags describes what the index and the keys of items have ever held: value classes, paths with array elements,
	// paths with cut values, and features of columns of composite indexes (core/index, column ids). nil: nothing. It is
	// never changed, because heads share it.
	flags *indexFlags

	// Facts goes up whenever facts are added or dropped, except by a commit of items. It is 0 while there never were
	// any. So a process that keeps the slot's facts in memory can tell whether they are complete.
	Facts uint64

	Epochs []Epoch // where the clock was set back, oldest first
}

// Epoch is a run of commits in which the machine's clock was not set back. The first epoch of a slot isn't listed.
type Epoch struct {
	LSN   int64 // of its first commit
	Ticks int64 // of the last commit before it: greater than the times that follow
}

// bare reports whether the slot lacks index and number entries of its items, because it is being upgraded. Entries of
// items that are written meanwhile exist. Next is the version that the slot will have, and Phase is Adding.
func (h *Head) bare() bool { return h.Index == 0 }

// renew turns it into the head of a slot whose index and number entries can't be used: those of policy version to are
// to be made.
func (h *Head) renew(to uint32) {
	h.Index, h.Next, h.Phase, h.Stale = 0, to, Adding, true
	h.flags = nil
}

// old reports whether the head is from a store of format 1 or 2. Such a slot has no index and number entries that this
// version reads.
func old(b []byte) bool { return len(b) > 0 && (b[0] == 1 || b[0] == 2) }

// Phase is the phase of an index rebuild in a slot.
type Phase uint8

// Phases of an index rebuild in a slot. A is the policy before it and B the one after it.
const (
	Settled  Phase = iota // no rebuild
	Adding                // all entries of A, some of B; writers keep both
	Ready                 // all entries of A and B; writers keep both
	Removing              // all entries of B, some of A; writers keep B and delete both
)

// maxEpochs is the largest number of epochs in a head. Beyond it the two oldest are joined.
const maxEpochs = 16

// maxHead is about the largest length of a head.
const maxHead = 3 + 8*8 + 4*2 + 4 + 2 + 8*12 + 3 + 1 + 16*maxEpochs + 5 + 10 + 8

// Flags of a head.
const (
	headRebuild = 1 << 0 // next version u32 and phase u8 follow the policy's version
	headStale   = 1 << 1
	headMoving  = 1 << 2
	headMoved   = 1 << 3
	headWriter  = 1 << 4 // the writer u64 follows the phase
	headMove    = 1 << 5 // the move u32 and held u8 follow the writer
	headBlock   = 1 << 6 // the end of the block of LSNs follows the move
	headRecord  = 1 << 7 // the time u64 of the last recorded commit follows the block
)

// heldByRebuild is set in the stored phase if a rebuild asks writers to wait (Held).
const heldByRebuild = 1 << 7

// append appends the stored form, which docs/formats.md describes. Fields that most heads don't have take no bytes if
// absent.
func (h *Head) append(dst []byte) []byte {
	flags := byte(0)
	if h.Next != 0 {
		flags |= headRebuild
	}
	if h.Stale {
		flags |= headStale
	}
	if h.Moving {
		flags |= headMoving
	}
	if h.Moved {
		flags |= headMoved
	}
	if h.Writer != 0 {
		flags |= headWriter
	}
	if h.Move != 0 {
		flags |= headMove
	}
	if h.Block != 0 {
		flags |= headBlock
	}
	if h.Recorded != 0 {
		flags |= headRecord
	}
	dst = append(dst, formatHead, flags)
	for _, n := range [...]int64{h.LSN, h.Ticks, h.Items, h.Bytes} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	dst = binary.BigEndian.AppendUint32(dst, h.Index)
	if h.Next != 0 {
		phase := byte(h.Phase)
		if h.Held && h.Move == 0 {
			phase |= heldByRebuild
		}
		dst = append(binary.BigEndian.AppendUint32(dst, h.Next), phase)
	}
	if h.Writer != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.Writer)
	}
	if h.Move != 0 {
		held := byte(0)
		if h.Held {
			held = 1
		}
		dst = append(binary.BigEndian.AppendUint32(dst, h.Move), held)
	}
	if h.Block != 0 {
		dst = binary.AppendUvarint(dst, uint64(h.Block))
	}
	if h.Recorded != 0 {
		dst = binary.BigEndian.AppendUint64(dst, h.Recorded)
	}
	for _, n := range [...]uint64{h.Lowest, uint64(h.FeedFloor), uint64(h.LogFloor)} {
		dst = binary.AppendUvarint(dst, n)
	}
	f := h.stored()
	dst = binary.BigEndian.AppendUint32(dst, f.classes)
	at, mask := len(dst), uint16(0)
	dst = append(dst, 0, 0)
	for i, b := range [...]*index.Bloom{&f.elements, &f.lossy, &f.columns} {
		for j, w := range b {
			if w != 0 {
				mask |= 1 << (len(b)*i + j)
				dst = binary.BigEndian.AppendUint64(dst, w)
			}
		}
	}
	binary.BigEndian.PutUint16(dst[at:], mask)
	dst = binary.AppendUvarint(dst, h.Facts)
	dst = append(dst, byte(len(h.Epochs)))
	for _, e := range h.Epochs {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LSN))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Ticks))
	}
	return dst
}

// reader reads numbers from the front of bytes. bad says that there were too few.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if len(r.b) < n {
		r.b, r.bad = nil, true
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() byte    { return r.bytes(1)[0] }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.bytes(8)) }

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

// decode reads the stored form. From a head of format 1 or 2 it ignores fields about entries that this version doesn't
// read.
func (h *Head) decode(b []byte) error {
	var f indexFlags
	err := h.parse(b, &f)
	if err == nil && f != noFlags {
		held := f // the only allocation
		h.flags = &held
	}
	return err
}

// parse does what decode does, but stores the flags separately: with f nil it allocates none.
func (h *Head) parse(b []byte, f *indexFlags) error {
	*h = Head{}
	r := reader{b: b}
	switch format := r.u8(); {
	case format == formatHead:
		h.read(&r, f)
	case old(b):
		h.LSN, h.Ticks, h.Items, h.Bytes = int64(r.u64()), int64(r.u64()), int64(r.u64()), int64(r.u64())
		r.b = nil
	default:
		r.bad = true
	}
	if r.bad || len(r.b) > 0 || h.Phase > Removing {
		return status.New(status.Corruption, "slot head of unknown format")
	}
	return nil
}

func (h *Head) read(r *reader, f *indexFlags) {
	flags := r.u8()
	h.Stale, h.Moving, h.Moved = flags&headStale != 0, flags&headMoving != 0, flags&headMoved != 0
	h.LSN, h.Ticks, h.Items, h.Bytes = int64(r.u64()), int64(r.u64()), int64(r.u64()), int64(r.u64())
	h.Index = r.u32()
	if flags&headRebuild != 0 {
		h.Next = r.u32()
		phase := r.u8()
		h.Phase, h.Held = Phase(phase&^heldByRebuild), phase&heldByRebuild != 0
	}
	if flags&headWriter != 0 {
		h.Writer = r.u64()
	}
	if flags&headMove != 0 {
		h.Move, h.Held = r.u32(), r.u8() != 0
	}
	if flags&headBlock != 0 {
		h.Block = int64(r.uvarint())
	}
	if flags&headRecord != 0 {
		h.Recorded = r.u64()
	}
	h.Lowest, h.FeedFloor, h.LogFloor = r.uvarint(), int64(r.uvarint()), int64(r.uvarint())
	f.classes = r.u32()
	mask := binary.BigEndian.Uint16(r.bytes(2))
	for i, bl := range [...]*index.Bloom{&f.elements, &f.lossy, &f.columns} {
		for j := range bl {
			if mask&(1<<(len(bl)*i+j)) != 0 {
				bl[j] = r.u64()
			}
		}
	}
	h.Facts = r.uvarint()
	for n := r.u8(); n > 0 && !r.bad; n-- {
		h.Epochs = append(h.Epochs, Epoch{int64(r.u64()), int64(r.u64())})
	}
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
