package mongoapi

import (
	"encoding/binary"
	"math"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// In a store of one process the session in memory has the reply to its last write. It is lost with the process, and
// a driver may repeat a write just then. So each statement of a retryable write leaves a mark in its commit, with the
// transaction number and its result. When a session is new to the process, the marks of its last command are read
// first: what was done isn't done again (recall). Nothing else reads them, and the next command of the session
// overwrites them. The commit of a transaction leaves a mark too.
//
// Example: {$inc: {n: 1}} with txnNumber 3 is committed, and the server is killed before it answers. The driver repeats
// it at the next server, which doesn't know the session. It finds the mark of statement 0 with number 3, and answers
// with its result.

// marksWrites reports whether the statements of the command leave marks.
func (r *request) marksWrites() bool { return r.retry && !r.s.eng.Shared() }

// mark returns the mark of the i-th statement of a retryable command; nil if it leaves none. result returns the
// statement's result after the write was decided.
func (r *request) mark(i int, result func() outcome) *core.Mark {
	if !r.marksWrites() {
		return nil
	}
	return &core.Mark{Kind: core.StatementRecord, Session: r.sessionKey(r.lsid.Bytes()), Number: uint32(i),
		Idle: statementIdle, Data: r.markData(result)}
}

// marks returns the marks of n statements of a command that insert a document each, from the first on.
func (r *request) marks(first, n int) []core.Mark {
	if !r.marksWrites() {
		return nil
	}
	one := r.mark(first, inserted)
	out := make([]core.Mark, n)
	for i := range out {
		out[i] = *one
		out[i].Number = uint32(first + i)
	}
	return out
}

func (r *request) markData(result func() outcome) func([]byte, []uint32) []byte {
	return func(dst []byte, more []uint32) []byte {
		o, at := result(), len(dst)
		dst = o.append(dst, r.txn)
		if len(more) > 0 {
			list := make([]byte, 0, 4*len(more))
			for _, n := range more {
				list = binary.BigEndian.AppendUint32(list, n)
			}
			dst = bson.End(bson.AppendBinary(dst[:len(dst)-1], "more", list), at)
		}
		return dst
	}
}

// doneBefore returns the result of a statement that an earlier attempt has made, before the server began.
func (r *request) doneBefore(i int) (outcome, bool) {
	o, ok := r.done[uint32(i)]
	if ok {
		r.again(i)
	}
	return o, ok
}

// recall reads what a session that is new to this process has done before. The caller holds the session.
func (r *request) recall(s *session) error {
	if s.recalled || r.s.eng.Shared() {
		return nil
	}
	err := r.s.eng.Records(r.ctx, core.StatementRecord, len(s.key)+4, string(s.key[:]),
		func(n core.RecordName, c core.Record) error {
			d := value.ObjectOf(c.Data)
			txn := d.Get("txn").Int()
			if txn > s.txn {
				s.txn, s.done = txn, nil
			}
			number := binary.BigEndian.Uint32([]byte(n.Name[len(s.key):]))
			if txn < s.txn || number == commitNumber {
				return nil
			}
			if s.done == nil {
				s.done = map[uint32]outcome{}
			}
			o := readOutcome(d)
			s.done[number] = o
			for more := d.Get("more").Bytes(); len(more) >= 4; more = more[4:] {
				s.done[binary.BigEndian.Uint32(more)] = o
			}
			return nil
		})
	s.recalled = err == nil
	return err
}

// commitNumber stands for the commit of a transaction among the statements of a session.
const commitNumber = math.MaxUint32

// commitName is the name of the record of a transaction's commit.
func (r *request) commitName() core.RecordName {
	if r.s.eng.Shared() {
		return r.statementName(commitNumber)
	}
	return core.MarkName(core.StatementRecord, r.sessionKey(r.lsid.Bytes()), commitNumber)
}

// commitRecord returns the record that a transaction leaves in its commit.
func (r *request) commitRecord() *core.Attached {
	return &core.Attached{Name: r.commitName(), Idle: statementIdle, Next: func() []byte {
		o := outcome{}
		return o.append(nil, r.txn)
	}}
}

// committedBefore reports whether the store says that the transaction was committed.
func (r *request) committedBefore() (bool, error) {
	was, err := r.s.eng.Record(r.ctx, r.commitName())
	if err != nil || !was.Exists() {
		return false, err
	}
	return value.ObjectOf(was.Data).Get("txn").Int() == r.txn, nil
}
