package mongoapi

import (
	"errors"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// appendError appends the reply of a command that failed.
func (r *request) appendError(dst []byte, err error) []byte {
	e := merr.From(err)
	if e.Code == merr.InternalError && !r.logged {
		r.s.log.Error("mongo command failed", "command", r.operation(), "error", err, "cause", errors.Unwrap(err))
	}
	at, dst := bson.Begin(dst)
	dst = bson.AppendDouble(dst, "ok", 0)
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", e.CodeName())
	dst = append(dst, e.Extra...)
	if stateChange(e.Code) && r.c.home != nil { // a driver that knows this version needn't look again
		dst = r.appendTopologyVersion(dst)
	}
	return bson.End(r.appendLabels(dst, e.Code, e.Labels), at)
}

// appendLabels appends the labels of a reply: those of its error, or of its writeConcernError, with a code.
func (r *request) appendLabels(dst []byte, code int32, labels []string) []byte {
	switch {
	case r.failure != nil && r.failure.Labelled:
		labels = r.failure.Labels
	case r.txn >= 0 && (!r.inTxn || r.closes()) && retryable(code):
		labels = append(labels, "RetryableWriteError")
	case r.inTxn && r.transient(code):
		labels = append(labels, "TransientTransactionError")
	case r.resumable && resumable(code):
		labels = append(labels, "ResumableChangeStreamError")
	case code == merr.ChangeStreamFatal || code == merr.ChangeStreamHistoryLost:
		labels = append(labels, "NonResumableChangeStreamError")
	}
	if len(labels) > 0 {
		dst = bson.AppendStrings(dst, "errorLabels", labels...)
	}
	return dst
}

// retryable reports whether a driver may repeat a retryable write after this error.
func retryable(code int32) bool {
	switch code {
	case 6, 7, 89, 9001: // HostUnreachable, HostNotFound, NetworkTimeout, SocketException
		return true
	case 91, 262, 11600: // ShutdownInProgress, ExceededTimeLimit, InterruptedAtShutdown
		return true
	}
	return stateChange(code)
}

// stateChange reports whether an error says that the server is no primary. Then its reply has the version of the
// server's description: a driver that knows this version already doesn't give the server up. The errors of a server
// that shuts down have none, so drivers leave it.
func stateChange(code int32) bool {
	switch code {
	case 189, 11602: // PrimarySteppedDown, InterruptedDueToReplStateChange
		return true
	case 10107, 13435, 13436: // NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary
		return true
	}
	return false
}

// resumable reports whether a driver may open a change stream again after this error.
func resumable(code int32) bool {
	switch code {
	case 63, 133, 150, 234: // StaleShardVersion, FailedToSatisfyReadPreference, StaleEpoch, RetryChangeStream
		return true
	}
	return retryable(code)
}

// appendUnmet appends the writeConcernError of a reply.
func appendUnmet(dst []byte, e *merr.Error) []byte {
	if e == nil {
		return dst
	}
	at, dst := bson.BeginObject(dst, "writeConcernError")
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", e.CodeName())
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	return bson.End(dst, at)
}

// malformed replies to a message with valid framing whose content is malformed. The connection stays open.
func (c *conn) malformed(dst []byte, h wire.Header, err error) ([]byte, error) {
	r := request{s: c.s, c: c, txn: -1, logged: true}
	e := merr.From(err)
	if c.s.o.Observe != nil {
		c.seen.req.Status = strconv.Itoa(int(e.Code))
	}
	at := len(dst)
	dst = wire.BeginMsg(dst, c.out, h.RequestID, 0)
	dst = r.appendError(dst, e)
	return wire.EndMsg(dst, at), nil
}
