package keys_test

import (
	"bytes"
	"testing"

	"github.com/orrerydb/orrery/core/keys"
)

// The keys of leases and of processes can be told apart, and each is within its bounds only.
func TestKeysOfJobs(t *testing.T) {
	id := [keys.ProcessLen]byte{1, 2, 255}
	lease, life := keys.AppendLease(nil, 2, 7), keys.AppendProcess(nil, id)
	if kind, gen, ok := keys.ParseLease(lease); kind != 2 || gen != 7 || !ok {
		t.Errorf("%d, %d, %v", kind, gen, ok)
	}
	if got, ok := keys.ParseProcess(life); got != id || !ok {
		t.Errorf("%x, %v", got, ok)
	}
	for _, bad := range [][]byte{nil, lease, life, lease[:6], life[:5], append(bytes.Clone(lease), 0),
		append(bytes.Clone(life), 0), keys.AppendMeta(nil, keys.MetaDropped, 7, "")} {
		if _, _, ok := keys.ParseLease(bad); ok != bytes.Equal(bad, lease) {
			t.Errorf("%x is a lease: %v", bad, ok)
		}
		if _, ok := keys.ParseProcess(bad); ok != bytes.Equal(bad, life) {
			t.Errorf("%x is a process: %v", bad, ok)
		}
	}
	in := func(key []byte, bounds func() (lo, hi []byte)) bool {
		lo, hi := bounds()
		return bytes.Compare(lo, key) <= 0 && bytes.Compare(key, hi) < 0
	}
	last := keys.AppendProcess(nil, [keys.ProcessLen]byte(bytes.Repeat([]byte{255}, keys.ProcessLen)))
	for _, key := range [][]byte{lease, life, last, keys.AppendLease(nil, 255, 1<<32-1)} {
		_, _, isLease := keys.ParseLease(key)
		if in(key, keys.LeaseBounds) != isLease || in(key, keys.ProcessBounds) == isLease {
			t.Errorf("%x is in the wrong bounds", key)
		}
	}
}

// The key of a record says its kind and name, and whether it is the record or what earlier versions wrote beside it,
// which follows directly. The parts of a record are behind all records, in the order of their numbers.
func TestKeysOfRecords(t *testing.T) {
	for _, name := range [][]byte{{}, {0}, {255}, []byte("abc"), bytes.Repeat([]byte{255}, keys.MaxRecordName)} {
		record := keys.AppendRecord(nil, 3, name)
		part := append(bytes.Clone(record), 1)
		parts := [][]byte{keys.AppendRecordPart(nil, 3, name, 0), keys.AppendRecordPart(nil, 3, name, 300)}
		_, end := keys.RecordBounds()
		if bytes.Compare(parts[0], end) < 0 || bytes.Compare(parts[0], parts[1]) >= 0 || !keys.IsJob(parts[1]) {
			t.Errorf("%x: parts %x", record, parts)
		}
		if _, _, _, ok := keys.ParseRecord(parts[0]); ok {
			t.Errorf("%x is a record", parts[0])
		}
		for _, key := range [][]byte{record, part} {
			kind, got, isPart, ok := keys.ParseRecord(key)
			if kind != 3 || !bytes.Equal(got, name) || isPart != bytes.Equal(key, part) || !ok {
				t.Errorf("%x: %d, %x, part %v, %v", key, kind, got, isPart, ok)
			}
			for _, b := range [][]byte{key[:len(key)-1], append(bytes.Clone(part), 1)} {
				if _, _, _, ok := keys.ParseRecord(b); ok && !bytes.Equal(b, record) {
					t.Errorf("%x is a record", b)
				}
			}
			all, end := keys.RecordBounds()
			lo, hi := keys.RecordKindBounds(3, len(name), name[:len(name)/2])
			for _, b := range [][2][]byte{{all, end}, {lo, hi}} {
				if bytes.Compare(b[0], key) > 0 || bytes.Compare(key, b[1]) >= 0 {
					t.Errorf("%x is not within its bounds", key)
				}
			}
		}
		other := keys.AppendRecord(nil, 3, append(bytes.Clone(name[:len(name)/2]), 7))
		if bytes.Compare(record, other) < 0 && bytes.Compare(other, part) < 0 {
			t.Errorf("%x is between %x and its part", other, record)
		}
	}
}
