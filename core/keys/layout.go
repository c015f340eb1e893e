package keys

import (
	"cmp"
	"encoding/binary"
)

// The spaces: the first byte of every key.
const (
	spaceMeta    = 0x10
	spaceJob     = 0x11
	spaceJournal = 0x12
	spaceData    = 0x20
)

// Kind is the byte after the slot. It says what a data key holds.
type Kind byte

// The kinds of data keys. The package comment has the table.
const (
	KindHead    Kind = 0x01
	KindLogical Kind = 0x02
	KindItem    Kind = 0x10
	KindFact    Kind = 0x03
	KindNumber  Kind = 0x21
	KindIndex   Kind = 0x31
	KindUnique  Kind = 0x40

	KindDeclared Kind = 0x41
	KindFeed     Kind = 0x50
	KindRemoved  Kind = 0x51
	KindLog      Kind = 0x58
	KindTTL      Kind = 0x60
)

// Kinds of entries in stores of format 1 and 2. They are no longer read.
const (
	KindFormerNumber Kind = 0x20
	KindFormerIndex  Kind = 0x30
)

// PrefixLen is the length in bytes of the common head of all data keys: space, generation, slot, kind.
const PrefixLen = 10

// MaxIdentity is the limit of the encoded tuple and id together, in bytes: TiKV's key limit less the other parts of a
// key.
const MaxIdentity = 3100

// Slot names a slot of a container generation.
type Slot struct{ Gen, ID uint32 }

// AppendPrefix appends the prefix that all keys of a kind in a slot share.
//
//go:noinline // called from many places, see decision 41
func AppendPrefix(dst []byte, s Slot, k Kind) []byte {
	dst = append(dst, spaceData)
	dst = binary.BigEndian.AppendUint32(dst, s.Gen)
	dst = binary.BigEndian.AppendUint32(dst, s.ID)
	return append(dst, byte(k))
}

// KindBounds returns the bounds of all keys of a kind in a slot.
//
//go:noinline // called from many places, see decision 41
func KindBounds(s Slot, k Kind) (lo, hi []byte) {
	return AppendPrefix(nil, s, k), AppendPrefix(nil, s, k+1)
}

// SlotBounds returns the bounds of everything in a slot.
func SlotBounds(s Slot) (lo, hi []byte) {
	lo = AppendPrefix(nil, s, 0)[:PrefixLen-1]
	return lo, After(lo)
}

// GenerationBounds returns the bounds of everything of a container generation.
func GenerationBounds(gen uint32) (lo, hi []byte) {
	lo = binary.BigEndian.AppendUint32([]byte{spaceData}, gen)
	return lo, After(lo)
}

// After returns the least key above every key that begins with prefix. Trailing 0xFF bytes carry over. For a prefix of
// only 0xFF bytes it returns a key above all of ours.
func After(prefix []byte) []byte { return AppendAfter(nil, prefix) }

// AppendAfter appends After(prefix) to dst. dst must not overlap prefix.
//
//go:noinline // called from many places, see decision 41
func AppendAfter(dst, prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xFF {
		n--
	}
	if n == 0 {
		return append(dst, 0xFF, 0xFF)
	}
	dst = append(dst, prefix[:n]...)
	dst[len(dst)-1]++
	return dst
}

// AppendNumber appends the number key of an item: the counter of its number, 40 bits. The number keys of a slot are in
// the order in which its items were created.
func AppendNumber(dst []byte, s Slot, counter uint64) []byte {
	dst = AppendPrefix(dst, s, KindNumber)
	return append(dst, byte(counter>>32), byte(counter>>24), byte(counter>>16), byte(counter>>8), byte(counter))
}

// NumberCounter reads the counter of a number key.
func NumberCounter(key []byte) (counter uint64, ok bool) {
	if len(key) != PrefixLen+5 {
		return 0, false
	}
	b := key[PrefixLen:]
	return uint64(b[0])<<32 | uint64(binary.BigEndian.Uint32(b[1:])), true
}

// AppendFact appends the key of a slot's fact about a path (core/store).
func AppendFact(dst []byte, s Slot, path uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindFact), path)
}

// FactPath reads the path id of a fact's key.
func FactPath(key []byte) (id uint64, ok bool) {
	if len(key) != PrefixLen+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[PrefixLen:]), true
}

// AppendFeed appends a feed key.
func AppendFeed(dst []byte, s Slot, lsn uint64, pos uint16) []byte {
	dst = binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindFeed), lsn)
	return binary.BigEndian.AppendUint16(dst, pos)
}

// Feed reads the LSN and position of a feed key.
func Feed(key []byte) (lsn uint64, pos uint16, ok bool) {
	if len(key) != PrefixLen+10 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[PrefixLen:]), binary.BigEndian.Uint16(key[PrefixLen+8:]), true
}

// AppendRemoved appends the key which says that a commit has removed an item, while the slot is being copied.
func AppendRemoved(dst []byte, s Slot, lsn uint64, suffix []byte) []byte {
	dst = binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindRemoved), lsn)
	return append(dst, suffix...)
}

// AppendLog appends the key of an entry of the log of all versions. pos counts the entries of one LSN.
func AppendLog(dst []byte, s Slot, lsn uint64, pos uint32) []byte {
	dst = binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindLog), lsn)
	return binary.BigEndian.AppendUint32(dst, pos)
}

// Log reads the LSN and position of a key of the log.
func Log(key []byte) (lsn uint64, pos uint32, ok bool) {
	if len(key) != PrefixLen+12 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[PrefixLen:]), binary.BigEndian.Uint32(key[PrefixLen+8:]), true
}

// AppendTTL appends a ttl key. expiry is in seconds since 1970.
func AppendTTL(dst []byte, s Slot, expiry uint64, suffix []byte) []byte {
	dst = binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindTTL), expiry)
	return append(dst, suffix...)
}

// AppendUnique appends a unique key. values are the AppendExact encodings of the policy's paths.
func AppendUnique(dst []byte, s Slot, tuple []byte, policy uint16, values []byte) []byte {
	dst = append(AppendPrefix(dst, s, KindUnique), tuple...)
	dst = binary.BigEndian.AppendUint16(dst, policy)
	return append(dst, values...)
}

// declaredID is the id of a slot that no slot map has. Entries of declared indexes belong to no slot, because they are
// unique in the whole container. They stand in its place.
const declaredID = 1<<32 - 1

// declaredSlot returns the place of the entries of a container's declared indexes.
func declaredSlot(gen uint32) Slot { return Slot{gen, declaredID} }

// AppendDeclared appends the key of an entry of a declared unique index with a number. value says what is unique.
func AppendDeclared(dst []byte, gen, num uint32, value []byte) []byte {
	dst = binary.BigEndian.AppendUint32(AppendPrefix(dst, declaredSlot(gen), KindDeclared), num)
	return append(dst, value...)
}

// MetaKind is the kind of a catalog entry.
type MetaKind byte

// The kinds of catalog entries.
const (
	MetaAccount   MetaKind = 0x01 // one entry: format and id counters
	MetaDatabase  MetaKind = 0x02
	MetaContainer MetaKind = 0x03
	MetaCounter   MetaKind = 0x04 // of a generation: reserved LSNs and item numbers

	// Resources of a database other than containers. The name in their key is the number of the parent resource (u32; 0
	// = the database) and the id.
	MetaUser       MetaKind = 0x05
	MetaPermission MetaKind = 0x06 // of a user
	MetaClientKey  MetaKind = 0x07 // client encryption key

	MetaVersion         MetaKind = 0x08 // one entry: incremented by every change of the catalog
	MetaDropped         MetaKind = 0x09 // a generation (the parent) whose data is to be removed
	MetaDroppedDatabase MetaKind = 0x0A // a database (the parent) whose entries are to be removed
	MetaDroppedSlot     MetaKind = 0x0B // a slot (name, u32) of a generation (the parent) whose data is to be removed

	// Programs of a container, which is the parent resource in their key.
	MetaProcedure MetaKind = 0x0C
	MetaTrigger   MetaKind = 0x0D
	MetaFunction  MetaKind = 0x0E

	// Kinds of catalog.Resource, whose parent is 0.
	MetaLogin MetaKind = 0x18 // a user of an API that has users of its own
	MetaRole  MetaKind = 0x19 // of such users

	MetaMove MetaKind = 0x0F // one entry: the store is being moved to or from another engine, or was (core/move)
)

// AppendMeta appends a catalog key.
//
//go:noinline // called from many places, see decision 41
func AppendMeta(dst []byte, k MetaKind, parent uint32, name string) []byte {
	dst = append(dst, spaceMeta, byte(k))
	dst = binary.BigEndian.AppendUint32(dst, parent)
	return append(dst, name...)
}

// MetaBounds returns the bounds of all catalog entries of a kind.
func MetaBounds(k MetaKind) (lo, hi []byte) {
	return []byte{spaceMeta, byte(k)}, []byte{spaceMeta, byte(k) + 1}
}

// MetaParentBounds returns the bounds of the catalog entries of a kind that belong to a parent.
func MetaParentBounds(k MetaKind, parent uint32) (lo, hi []byte) {
	lo = AppendMeta(nil, k, parent, "")
	return lo, After(lo)
}

// ParseMeta splits a catalog key. ok is false when it is too short.
func ParseMeta(key []byte) (k MetaKind, parent uint32, name []byte, ok bool) {
	if len(key) < 6 || key[0] != spaceMeta {
		return 0, 0, nil, false
	}
	return MetaKind(key[1]), binary.BigEndian.Uint32(key[2:]), key[6:], true
}

// GotSingly reports whether keys of this kind are read by point look-ups, and repeatedly: items, facts, and the heads
// of slots and of logical partitions.
func GotSingly(key []byte) bool {
	if len(key) < PrefixLen || key[0] != spaceData {
		return false
	}
	switch Kind(key[PrefixLen-1]) {
	case KindItem, KindHead, KindLogical, KindFact:
		return true
	}
	return false
}

// DataBounds returns the bounds of all data keys.
func DataBounds() (lo, hi []byte) { return []byte{spaceData}, []byte{spaceData + 1} }

// Generation reads the container generation of a data key.
func Generation(key []byte) (gen uint32, ok bool) {
	if len(key) < PrefixLen || key[0] != spaceData {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[1:]), true
}

// ParseSlot reads the slot and the kind of a data key.
func ParseSlot(key []byte) (s Slot, k Kind, ok bool) {
	if len(key) < PrefixLen || key[0] != spaceData {
		return s, 0, false
	}
	return Slot{binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:])}, Kind(key[PrefixLen-1]), true
}

// CompareSlots orders slots as their keys sort.
func CompareSlots(a, b Slot) int { return cmp.Or(cmp.Compare(a.Gen, b.Gen), cmp.Compare(a.ID, b.ID)) }

// Bounds returns the bounds of all keys of a store.
func Bounds() (lo, hi []byte) { return []byte{0x01}, []byte{0xFF, 0xFF} }

// IsJob reports whether a key belongs to the space of jobs: it says what a process is doing.
func IsJob(key []byte) bool { return len(key) > 0 && key[0] == spaceJob }

// IsMeta reports whether a key belongs to a catalog entry.
func IsMeta(key []byte) bool { return len(key) > 0 && key[0] == spaceMeta }

// OnlyScanned reports whether keys of this kind are read only by scans: index, feed, log, ttl and journal entries. The
// answer for a key must never change: stored filters depend on it.
func OnlyScanned(key []byte) bool {
	if isJournalEntry(key) {
		return true
	}
	if len(key) < PrefixLen || key[0] != spaceData {
		return false
	}
	switch Kind(key[PrefixLen-1]) {
	case KindIndex, KindFormerIndex, KindFeed, KindLog, KindTTL:
		return true
	}
	return false
}
