package lease

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// formatRecord is the format of both records, formatAbout that of a sign of life with a text about its process.
// docs/formats.md describes them.
const (
	formatRecord = 1
	formatAbout  = 2
)

// sign is a process's sign of life.
type sign struct {
	number   uint64
	duration time.Duration // in milliseconds
	about    string        // what the process has announced; empty: nothing
}

// signLen is the length of a sign of life without the text about its process.
const signLen = 13

func (s sign) append(dst []byte) []byte {
	format := byte(formatRecord)
	if s.about != "" {
		format = formatAbout
	}
	dst = binary.BigEndian.AppendUint64(append(dst, format), s.number)
	return append(binary.BigEndian.AppendUint32(dst, uint32(s.duration/time.Millisecond)), s.about...)
}

func parseSign(b []byte) (sign, error) {
	known := len(b) == signLen && b[0] == formatRecord || len(b) > signLen && b[0] == formatAbout
	if !known {
		return sign{}, status.New(status.Corruption, "sign of life of unknown format")
	}
	return sign{binary.BigEndian.Uint64(b[1:]),
		time.Duration(binary.BigEndian.Uint32(b[9:])) * time.Millisecond, string(b[signLen:])}, nil
}

// holder is the record of a lease. The serial number tells apart the leases that a process has held.
type holder struct {
	process process
	serial  uint64
}

func (h holder) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(append(append(dst, formatRecord), h.process[:]...), h.serial)
}

func parseHolder(b []byte) (holder, error) {
	if len(b) != 1+keys.ProcessLen+8 || b[0] != formatRecord {
		return holder{}, status.New(status.Corruption, "lease of unknown format")
	}
	return holder{process(b[1:]), binary.BigEndian.Uint64(b[1+keys.ProcessLen:])}, nil
}

// record is a stored lease.
type record struct {
	name Name
	of   holder
}

// all reads all records.
func (m *Leases) all(ctx context.Context) (lives map[process][]byte, leases []record, err error) {
	snap, err := m.eng.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer snap.Close()
	lives = map[process][]byte{}
	lo, hi := keys.ProcessBounds()
	err = each(snap, lo, hi, func(key, val []byte) error {
		if id, ok := keys.ParseProcess(key); ok {
			lives[id] = bytes.Clone(val)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	lo, hi = keys.LeaseBounds()
	err = each(snap, lo, hi, func(key, val []byte) error {
		kind, gen, ok := keys.ParseLease(key)
		of, err := parseHolder(val)
		if ok && err == nil {
			leases = append(leases, record{Name{Kind(kind), gen}, of})
		}
		return err
	})
	return lives, leases, err
}

// each calls f for the keys of a range.
func each(snap kv.Snapshot, lo, hi []byte, f func(key, val []byte) error) error {
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}
