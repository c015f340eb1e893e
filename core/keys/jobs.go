package keys

import (
	"bytes"
	"encoding/binary"
)

// The kinds of keys in the space of jobs: see core/lease, and core/store for records.
const (
	jobLease   = 0x01
	jobProcess = 0x02
	jobRecord  = 0x03
	jobPart    = 0x04
)

// ProcessLen is the length of the id of a process in bytes.
const ProcessLen = 16

// AppendLease appends the key of a lease of a kind. gen is the container generation that it is about, 0 = the store.
func AppendLease(dst []byte, kind byte, gen uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceJob, jobLease, kind), gen)
}

// ParseLease splits the key of a lease.
func ParseLease(key []byte) (kind byte, gen uint32, ok bool) {
	if len(key) != 7 || key[0] != spaceJob || key[1] != jobLease {
		return 0, 0, false
	}
	return key[2], binary.BigEndian.Uint32(key[3:]), true
}

// LeaseBounds returns the bounds of the keys of all leases.
func LeaseBounds() (lo, hi []byte) { return []byte{spaceJob, jobLease}, []byte{spaceJob, jobLease + 1} }

// AppendProcess appends the key of a process that holds leases.
func AppendProcess(dst []byte, id [ProcessLen]byte) []byte {
	return append(append(dst, spaceJob, jobProcess), id[:]...)
}

// ParseProcess reads the id of a process from its key.
func ParseProcess(key []byte) (id [ProcessLen]byte, ok bool) {
	if len(key) != 2+ProcessLen || key[0] != spaceJob || key[1] != jobProcess {
		return id, false
	}
	return [ProcessLen]byte(key[2:]), true
}

// ProcessBounds returns the bounds of the keys of all processes that hold leases.
func ProcessBounds() (lo, hi []byte) {
	return []byte{spaceJob, jobProcess}, []byte{spaceJob, jobProcess + 1}
}

// MaxRecordName is the longest name of a record in bytes.
const MaxRecordName = 255

// AppendRecord appends the key of a record of an API.
func AppendRecord(dst []byte, kind byte, name []byte) []byte {
	return appendRecord(dst, jobRecord, kind, name)
}

// AppendRecordPart appends the key of a part of a record. The parts of all records are behind all records, so whoever
// looks through the records doesn't read them.
func AppendRecordPart(dst []byte, kind byte, name []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendRecord(dst, jobPart, kind, name), number)
}

func appendRecord(dst []byte, job, kind byte, name []byte) []byte {
	return append(append(dst, spaceJob, job, kind, byte(len(name))), name...)
}

// ParseRecord splits the key of a record. name points into the key. former says that it is the key of the only part of
// a record that an earlier version wrote: that of the record, and a byte.
func ParseRecord(key []byte) (kind byte, name []byte, former, ok bool) {
	if len(key) < 4 || key[0] != spaceJob || key[1] != jobRecord {
		return 0, nil, false, false
	}
	end := 4 + int(key[3])
	if former = len(key) == end+1 && key[end] == 0x01; !former && len(key) != end {
		return 0, nil, false, false
	}
	return key[2], key[4:end], former, true
}

// RecordBounds returns the bounds of the keys of all records, without their parts.
func RecordBounds() (lo, hi []byte) {
	return []byte{spaceJob, jobRecord}, []byte{spaceJob, jobRecord + 1}
}

// RecordKindBounds returns the bounds of the keys of the records of a kind whose names have n bytes and begin with a
// prefix.
func RecordKindBounds(kind byte, n int, prefix []byte) (lo, hi []byte) {
	lo = append([]byte{spaceJob, jobRecord, kind, byte(n)}, prefix...)
	hi = append(append([]byte(nil), lo...), bytes.Repeat([]byte{0xff}, n-len(prefix)+2)...)
	return lo, hi
}
