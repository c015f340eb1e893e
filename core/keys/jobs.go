package keys

import "encoding/binary"

// The kinds of keys in the space of jobs: see core/lease.
const (
	jobLease   = 0x01
	jobProcess = 0x02
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

// JobBounds returns the bounds of all keys of the space of jobs.
func JobBounds() (lo, hi []byte) { return []byte{spaceJob}, []byte{spaceJob + 1} }
