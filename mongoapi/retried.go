package mongoapi

import (
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
)

// The reply to a repeated write names the statements that an earlier attempt has made: retriedStmtIds, or of
// findAndModify, which has only one, retriedStmtId.
//
// Example: an insert of two documents is repeated with the same txnNumber. The reply is {n: 2, retriedStmtIds: [0, 1]}.

// again notes that a statement was made before.
func (r *request) again(number int) { r.retried = append(r.retried, int32(number)) }

// appendRetried appends the statements that were made before to a reply that is open.
func (r *request) appendRetried(dst []byte) []byte {
	switch {
	case len(r.retried) == 0:
		return dst
	case r.modifiesOne():
		return bson.AppendInt32(dst, "retriedStmtId", r.retried[0])
	}
	at, dst := bson.BeginArray(dst, "retriedStmtIds")
	for i, n := range r.retried {
		dst = value.AppendIndexed(dst, i, value.Int32Of(n))
	}
	return bson.End(dst, at)
}

func (r *request) modifiesOne() bool { return r.name == "findAndModify" || r.name == "findandmodify" }

// statementLists are the arguments that have the statements of a command.
var statementLists = map[string]string{"insert": "documents", "update": "updates", "delete": "deletes",
	"bulkWrite": "ops"}

// repeated appends the kept reply to a write that is repeated. All statements were made before but those that failed,
// and those behind the first one that failed if they are ordered.
func (r *request) repeated(dst, kept []byte) []byte {
	reply := value.ObjectOf(kept)
	if reply.Get("retriedStmtIds").IsDefined() || reply.Get("retriedStmtId").IsDefined() ||
		reply.Get("nErrors").Int() > 0 {
		return append(dst, kept...)
	}
	n := 1
	if !r.modifiesOne() {
		list, err := r.docs(statementLists[r.name])
		if err != nil {
			return append(dst, kept...)
		}
		n = len(list)
	}
	failed := map[int64]bool{}
	for _, e := range value.Elements(reply.Get("writeErrors")) {
		failed[e.Get("index").Int()] = true
	}
	ordered := args.Flag(r.body, "ordered", true)
	for i := 0; i < n && !(ordered && failed[int64(i)]); i++ {
		if !failed[int64(i)] {
			r.again(i)
		}
	}
	at := len(dst)
	dst = append(dst, kept[:len(kept)-1]...)
	return bson.End(r.appendRetried(dst), at)
}
