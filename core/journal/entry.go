package journal

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Op is what an entry is about.
type Op uint8

// The kinds of entries. The values are stored.
const (
	Create  Op = 1
	Replace Op = 2
	Update  Op = 3 // a replace by a writer that has changed fields of the item
	Delete  Op = 4
	Mark    Op = 5 // no change: the journal began to record something
	Change  Op = 6 // of the catalog: Note says which
)

// Entry is one change. Its documents point into the memory that it was read from, and mustn't be changed.
type Entry struct {
	Time uint64 // by Clock; entries of one commit have times in a row, or with Together one time
	N    uint32 // number among the entries of that time

	Op       Op
	Together bool // all entries of this time are the changes of one commit that is shown as one
	Expired  bool // a Delete of an item whose time to live had ended
	Images   bool // the container keeps previous versions in the journal
	Millis   int64
	DB       string // names at the time of the change
	Coll     string
	RID      [8]byte // of the container; of a database the first four bytes

	Key      []byte // BSON: the values of the partition key, and the id, as fields
	Note     []byte // BSON: what the writer has added, or what the catalog did; may be nil
	Current  []byte // BSON: the item after the change; nil if there is none
	Previous []byte // BSON: the item before the change; nil if there is none or the journal doesn't keep it

	total uint64 // bytes of the journal up to and including this entry, since it exists
}

// Position returns the position after the entry.
func (e *Entry) Position() Position { return Position{e.Time, e.N} }

// to returns the new name in the note of a rename; "" for other changes.
func (e *Entry) to() string {
	if e.Op != Change {
		return ""
	}
	return value.ObjectOf(e.Note).Get("to").Str()
}

// Size returns the number of bytes of the entry's documents.
func (e *Entry) Size() int { return len(e.Key) + len(e.Note) + len(e.Current) + len(e.Previous) }

// formatEntry is the first byte of an entry. docs/formats.md describes the format.
const formatEntry = 1

const (
	flagExpired  = 1 << 0
	flagImages   = 1 << 1
	flagTogether = 1 << 2
)

// fixed is the length of the fields in front of the names: format, op, flags, total, millis, rid.
const fixed = 3 + 8 + 8 + 8

// append appends the stored form, without the total, which is written when the entry gets its time.
func (e *Entry) append(dst []byte) []byte {
	from := len(dst)
	flags := byte(0)
	if e.Expired {
		flags |= flagExpired
	}
	if e.Images {
		flags |= flagImages
	}
	if e.Together {
		flags |= flagTogether
	}
	dst = append(dst, formatEntry, byte(e.Op), flags)
	dst = binary.BigEndian.AppendUint64(dst, e.total)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Millis))
	dst = append(dst, e.RID[:]...)
	dst = appendPart(dst, []byte(e.DB))
	dst = appendPart(dst, []byte(e.Coll))
	for _, b := range [...][]byte{e.Key, e.Note, e.Current, e.Previous} {
		dst = appendPart(dst, b)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(xxhash.Sum64(dst[from:])))
}

func appendPart(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// storedSize is about the number of bytes that an entry takes with its key.
func (e *Entry) storedSize() uint64 { return uint64(64 + len(e.DB) + len(e.Coll) + e.Size()) }

func errEntry() error { return status.New(status.Corruption, "malformed entry of the journal") }

// head reads the op and the names of an entry, and returns the rest. Nothing is verified.
func (e *Entry) head(b []byte) (rest []byte, err error) {
	if len(b) < fixed+4 || b[0] != formatEntry {
		return nil, errEntry()
	}
	e.Op, e.Expired, e.Images = Op(b[1]), b[2]&flagExpired != 0, b[2]&flagImages != 0
	e.Together = b[2]&flagTogether != 0
	e.total, e.Millis = binary.BigEndian.Uint64(b[3:]), int64(binary.BigEndian.Uint64(b[11:]))
	e.RID = [8]byte(b[19:])
	rest = b[fixed:]
	var db, coll []byte
	if db, rest, err = part(rest); err == nil {
		coll, rest, err = part(rest)
	}
	e.DB, e.Coll = string(db), string(coll)
	return rest, err
}

// body reads the rest of an entry, after head, and verifies all of it.
func (e *Entry) body(all, rest []byte) (err error) {
	end := len(all) - 4
	if binary.BigEndian.Uint32(all[end:]) != uint32(xxhash.Sum64(all[:end])) {
		return status.New(status.Corruption, "an entry of the journal has a wrong checksum")
	}
	rest = rest[:len(rest)-4]
	for _, b := range [...]*[]byte{&e.Key, &e.Note, &e.Current, &e.Previous} {
		if *b, rest, err = part(rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return errEntry()
	}
	return nil
}

// part reads bytes with their length from the front of b; nil for an empty part.
func part(b []byte) (p, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errEntry()
	}
	b = b[size:]
	if n == 0 {
		return nil, b, nil
	}
	return b[:n:n], b[n:], nil
}
