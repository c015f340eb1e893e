package keys

import (
	"encoding/binary"
	"fmt"
)

// Entries is the layout of a container's index entries: what follows the value in their keys.
//
//	ByID   order number                             name
//	false  the item's number u64                    tuple, id
//	true   the counter of the item's number, u40    id, which is also the tuple
//
// The order number is unique for each item and orders entries with equal values. The name is the item's identity.
type Entries struct {
	ByID bool // the partition key is the id
}

const counterBits = 40

// Order returns the order number that an item's number has in entries.
func (l Entries) Order(number uint64) uint64 {
	if l.ByID {
		return number & (1<<counterBits - 1)
	}
	return number
}

// AppendNumber appends an item's number in the form that entries have.
func (l Entries) AppendNumber(dst []byte, number uint64) []byte {
	if l.ByID {
		dst = append(dst, byte(number>>32))
		return binary.BigEndian.AppendUint32(dst, uint32(number))
	}
	return binary.BigEndian.AppendUint64(dst, number)
}

// AppendIdentity appends the identity (tuple, id) of a name.
func (l Entries) AppendIdentity(dst, name []byte) []byte {
	if l.ByID {
		dst = append(dst, name...)
	}
	return append(dst, name...)
}

// name returns the name of an identity.
func (l Entries) name(identity []byte) []byte {
	if l.ByID {
		return identity[len(identity)/2:]
	}
	return identity
}

// Append appends the key of an index entry. term is the path id (8 bytes) and the encoded value, from core/index.
// number is the item's number, identity its tuple and id.
func (l Entries) Append(dst []byte, s Slot, term []byte, number uint64, identity []byte) []byte {
	dst = append(AppendPrefix(dst, s, KindIndex), term...)
	return append(l.AppendNumber(dst, number), l.name(identity)...)
}

// IndexEntry is a parsed index key. Its slices point into the key.
type IndexEntry struct {
	Path   uint64
	Value  []byte // class and value as AppendIndex wrote them
	Number uint64 // the order number
	Name   []byte // AppendIdentity turns it into the identity
}

// Parse splits the index key of a single value. Keys of several columns need ParseColumns.
func (l Entries) Parse(key []byte) (IndexEntry, error) {
	if len(key) < PrefixLen+8 {
		return IndexEntry{}, errEntry(key)
	}
	rest, err := skipIndex(key[PrefixLen+8:])
	if err != nil {
		return IndexEntry{}, errEntry(key)
	}
	return l.parse(key, rest)
}

// ParseColumns splits the key of a composite index's entry. desc says which columns are descending. Value has the bytes
// of all columns.
func (l Entries) ParseColumns(key []byte, cut int, desc []bool) (IndexEntry, error) {
	if len(key) < PrefixLen+8 {
		return IndexEntry{}, errEntry(key)
	}
	rest := key[PrefixLen+8:]
	for _, d := range desc {
		var err error
		if rest, err = SkipColumn(rest, cut, d); err != nil {
			return IndexEntry{}, errEntry(key)
		}
	}
	return l.parse(key, rest)
}

// parse makes the entry of a key. rest are the bytes after its value.
func (l Entries) parse(key, rest []byte) (IndexEntry, error) {
	e := IndexEntry{Path: binary.BigEndian.Uint64(key[PrefixLen:]), Value: key[PrefixLen+8 : len(key)-len(rest)]}
	switch {
	case l.ByID && len(rest) >= 5:
		e.Number, e.Name = uint64(rest[0])<<32|uint64(binary.BigEndian.Uint32(rest[1:])), rest[5:]
	case !l.ByID && len(rest) >= 8:
		e.Number, e.Name = binary.BigEndian.Uint64(rest), rest[8:]
	default:
		return IndexEntry{}, errEntry(key)
	}
	return e, nil
}

func errEntry(key []byte) error { return fmt.Errorf("keys: malformed index key %x", key) }

// AppendIndexPath appends the prefix of all index entries of a path.
func AppendIndexPath(dst []byte, s Slot, path uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendPrefix(dst, s, KindIndex), path)
}

// IndexPath reads the path id of an index key. ok is false when the key is too short.
func IndexPath(key []byte) (id uint64, ok bool) {
	if len(key) < PrefixLen+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[PrefixLen:]), true
}
