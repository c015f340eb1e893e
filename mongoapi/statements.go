package mongoapi

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// If several processes share the store, a driver may repeat a retryable write at another process than the one that has
// made it. So each statement of such a command has a record in the store, named by the session and by the statement's
// number in the command. It holds the transaction number and the result, and is written in the commit that makes the
// change. Whoever executes the statement reads it together with the document: a record of the same transaction number
// says that the change was made, and with which result. A record of a greater number says that the client has gone on
// since, so the command is refused.
//
// The next command of the session replaces the records. A statement that changes nothing, or fails, leaves none: it is
// executed again, as in MongoDB. Statements for several documents aren't retryable.
//
// Example: {$inc: {n: 1}} with txnNumber 3 is committed at process A, which then ends. The driver repeats it at B. B
// reads the document and the record of (session, 0), which says 3 and {n: 1, nModified: 1}. It answers that.

// statementIdle is the time for which a statement's record is kept: that of its session.
const statementIdle = sessionMinutes * time.Minute

// madeBefore is the error of a write whose statement was made by an earlier attempt.
type madeBefore struct{ o outcome }

// Error implements error.
func (*madeBefore) Error() string { return "mongoapi: the statement was made before" }

// superseded is the error of a write whose session has gone on.
type superseded struct{ as *merr.Error }

// Error implements error.
func (s superseded) Error() string { return s.as.Error() }

// remembers reports whether the statements of the command have records.
func (r *request) remembers() bool { return r.txn >= 0 && r.retry && r.s.eng.Shared() }

// record returns what makes a write the i-th statement of a retryable command; nil if it isn't retryable. result
// returns the statement's result after the write was decided.
func (r *request) record(i int, result func() outcome) *core.Attached {
	if !r.remembers() {
		return nil
	}
	return &core.Attached{Name: r.statementName(i), Idle: statementIdle, Check: r.checkStatement,
		Next: func() []byte {
			o := result()
			return o.append(nil, r.txn)
		}}
}

// statementName returns the name of a statement's record. Users have sessions of their own.
func (r *request) statementName(i int) core.RecordName {
	h := sha256.New()
	h.Write([]byte(r.c.user))
	h.Write([]byte{0})
	h.Write(r.lsid.Bytes())
	name := binary.BigEndian.AppendUint32(h.Sum(nil)[:16], uint32(i))
	return core.RecordName{Kind: core.StatementRecord, Name: string(name)}
}

// checkStatement ends a write that was made before, or whose session has gone on.
func (r *request) checkStatement(was core.Record) error {
	if !was.Exists() {
		return nil
	}
	d := value.ObjectOf(was.Data)
	switch txn := d.Get("txn").Int(); {
	case txn == r.txn:
		return &madeBefore{readOutcome(d)}
	case txn > r.txn:
		return superseded{r.tooOld(txn)}
	}
	return nil
}

// tooOld is the error of a command with a transaction number below the session's.
func (r *request) tooOld(last int64) *merr.Error {
	return merr.New(merr.TransactionTooOld, "Cannot start transaction %d on session %x because a newer transaction %d "+
		"has already started", r.txn, r.lsid.Bytes(), last)
}

// findStatement returns the error of checkStatement for a statement that has found no document to change.
func (r *request) findStatement(i int) error {
	if !r.remembers() {
		return nil
	}
	was, err := r.s.eng.Record(r.ctx, r.statementName(i))
	if err != nil {
		return err
	}
	return r.checkStatement(was)
}

// ends reports whether an error of a statement ends its command. Then the reply is a command's error, for which
// a driver repeats a retryable write.
func (r *request) ends(err error) bool {
	if _, ok := err.(superseded); ok {
		return true
	}
	if err != nil && r.multi != nil && r.transient(merr.From(err).Code) {
		return true
	}
	return r.stopped(err) ||
		r.remembers() && (status.Is(err, status.Unavailable) || status.Is(err, status.UnknownOutcome))
}

// repeatable returns the error of a command. An unknown outcome is one for which a driver repeats a retryable write:
// the repeated command finds it out.
func (r *request) repeatable(err error) error {
	if old, ok := err.(superseded); ok {
		return old.as
	}
	if r.remembers() && status.Is(err, status.UnknownOutcome) {
		return merr.New(merr.NetworkTimeout, "%s", status.From(err).Msg)
	}
	return err
}

// kept returns what a record keeps of a result: of the documents only the one that a findAndModify shows.
func (o outcome) kept(st *statement, documents bool) outcome {
	if !documents || !st.new {
		o.after = nil
	}
	if !documents || st.new {
		o.before = nil
	}
	return o
}

// append appends the record of a statement.
func (o *outcome) append(dst []byte, txn int64) []byte {
	at, b := bson.Begin(dst)
	b = bson.AppendInt64(b, "txn", txn)
	b = bson.AppendInt32(b, "matched", o.matched)
	b = bson.AppendInt32(b, "modified", o.modified)
	if o.upserted.IsDefined() {
		b = value.AppendElement(b, "upserted", o.upserted)
	}
	if o.before != nil {
		b = bson.AppendDocument(b, "before", o.before)
	}
	if o.after != nil {
		b = bson.AppendDocument(b, "after", o.after)
	}
	return bson.End(b, at)
}

// readOutcome reads the result in a statement's record.
func readOutcome(d value.Value) (o outcome) {
	d = d.Clone()
	o.matched, o.modified = int32(d.Get("matched").Int()), int32(d.Get("modified").Int())
	if v := d.Get("upserted"); v.IsDefined() {
		o.upserted = v
	}
	if v := d.Get("before"); v.IsDefined() {
		o.before = v.Bytes()
	}
	if v := d.Get("after"); v.IsDefined() {
		o.after = v.Bytes()
	}
	return o
}
