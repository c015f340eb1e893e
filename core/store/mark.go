package store

import (
	"encoding/binary"
	"time"

	"github.com/orrerydb/orrery/core/keys"
)

// Mark is a record that a write of an engine with one process leaves in the commit of its item: the result of
// a statement that its client may repeat after a restart. Nothing is read for it, and nothing depends on what was there
// before: the process itself remembers what its clients have done since it began. The writes of one command that share
// a commit in a slot share a record, under the number of the first one.
//
// Example: a command inserts 100 documents, and 60 of them belong to slot 1. Their commit has one more key: session and
// number of the first of them, with the numbers of the 59 others.
type Mark struct {
	Kind    byte // of the record
	Session [16]byte
	Number  uint32 // of the statement in its command
	// Data appends the record's content. more are the numbers of the other statements in the commit.
	Data func(dst []byte, more []uint32) []byte
	Idle time.Duration // as for WriteRecord
}

// MarkName returns the name of the record of a mark.
func MarkName(kind byte, session [16]byte, number uint32) RecordName {
	return RecordName{kind, string(binary.BigEndian.AppendUint32(session[:], number))}
}

// mark adds the records of a part's marks.
func (d *draft) mark(p *part) {
	var first *Mark
	var more []uint32
	for i := range p.chs {
		switch m := p.chs[i].mark; {
		case m == nil:
		case first == nil:
			first = m
		default:
			more = append(more, m.Number)
		}
	}
	if first == nil {
		return
	}
	var name [20]byte
	copy(name[:], first.Session[:])
	binary.BigEndian.PutUint32(name[16:], first.Number)
	val := binary.BigEndian.AppendUint64(append(d.mem.val[:0], formatRecord), uint64(p.h.LSN))
	val = binary.BigEndian.AppendUint32(val, uint32(first.Idle/time.Second))
	d.mem.val = first.Data(val, more)
	d.put(d.late, keys.AppendRecord(d.mem.key[:0], first.Kind, name[:]), d.mem.val)
}
