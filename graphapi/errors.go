package graphapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// kind is the kind of a failure, as far as replies differ.
type kind uint8

const (
	kindInternal kind = iota
	kindMalformed
	kindArguments
	kindCompile
	kindRuntime
	kindUnsupported
	kindTimeout
	kindFail
	kindMemory
	kindResult
	kindBusy
	kindBadLogin
	kindForbidden
	kindNotFound
	kindOwnerNotFound
	kindConflict
	kindPrecondition
	kindTooLarge
	kindThrottled
	kindRetryWith
	kindUnavailable
	kindUnknownOutcome
	kindStoreFull
	numKinds
)

// answerRow is the reply for one kind of failure.
type answerRow struct {
	code        int    // status code of the frame for TinkerPop clients
	serviceCode int    // status code of the frame in the service's flavour
	msStatus    int32  // attribute x-ms-status-code
	exception   string // attribute exceptions: the Java class a TinkerPop client may look for
	serviceType string // ExceptionType in the service's text
	interop     string // GraphInterOpStatusCode in the service's text
	scope       string // Scope in the service's text
	msg         string // the text if the failure has none
}

const (
	scopeParse = "graphparse-translate-outer"
	scopeRun   = "graphcmd-query"
)

// answers is the only table of failures. errors_test.go has a case for each row. Clients check the code with a mask, or
// search the text, so the text matters too.
var answers = [numKinds]answerRow{
	kindInternal: {500, 500, 500, "java.lang.RuntimeException", "GraphRuntimeException", "ServerError", scopeRun,
		"internal error"},
	kindMalformed: {498, 498, 1004, "org.apache.tinkerpop.gremlin.util.ser.SerializationException",
		"GraphMalformedException", "MalformedRequest",
		scopeParse, "the request could not be read"},
	kindArguments: {499, 498, 1004, "java.lang.IllegalArgumentException", "GraphMalformedException", "MalformedRequest",
		scopeParse, "invalid arguments"},
	kindCompile: {597, 597, 1004, "org.apache.tinkerpop.gremlin.jsr223.GremlinScriptException", "GraphCompileException",
		"QuerySyntaxError",
		scopeParse, "the script could not be read"},
	kindRuntime: {597, 597, 1000, "java.lang.IllegalStateException", "GraphRuntimeException", "GraphRuntimeError",
		scopeRun, "the traversal failed"},
	kindUnsupported: {597, 597, 1004, "java.lang.UnsupportedOperationException", "GraphNotSupportedException",
		"NotSupported", scopeParse, "not supported"},
	kindTimeout: {598, 598, 1009, "java.util.concurrent.TimeoutException", "GraphTimeoutException",
		"ServerTimeout", scopeRun,
		"the evaluation timeout is over"},
	kindFail: {595, 597, 1000, "org.apache.tinkerpop.gremlin.process.traversal.step.util.FailException",
		"GraphRuntimeException", "GraphRuntimeError", scopeRun, "fail() was reached"},
	kindMemory: {500, 500, 1003, "java.lang.OutOfMemoryError", "GraphRuntimeException", "MemoryLimitExceeded", scopeRun,
		"the traversal holds too much in memory"},
	kindResult: {599, 599, 1001, "org.apache.tinkerpop.gremlin.util.ser.SerializationException",
		"GraphRuntimeException", "SerializationError", scopeRun,
		"the result can't be serialized"},
	kindBusy: {429, 500, 429, "java.util.concurrent.RejectedExecutionException", "RequestRateTooLargeException",
		"ServerBusy", scopeRun,
		"too many requests at a time on this connection"},
	kindBadLogin: {401, 401, 401, "", "UnauthorizedException", "Unauthorized", scopeParse,
		"Unauthorized: Invalid credentials provided"},
	kindForbidden: {403, 500, 403, "java.lang.SecurityException", "DocumentClientException", "Forbidden", scopeRun,
		"forbidden"},
	kindNotFound: {500, 500, 404, "java.util.NoSuchElementException", "DocumentClientException", "NotFound", scopeRun,
		"Resource Not Found"},
	kindOwnerNotFound: {500, 500, 404, "java.util.NoSuchElementException", "DocumentClientException",
		"NotFound", scopeRun,
		"Owner resource does not exist"},
	kindConflict: {500, 500, 409, "java.lang.IllegalArgumentException", "DocumentClientException", "Conflict", scopeRun,
		"Resource with specified id or name already exists."},
	kindPrecondition: {500, 500, 412, "java.lang.IllegalStateException", "PreconditionFailedException",
		"PreconditionFailed", scopeRun,
		"One of the specified pre-condition is not met"},
	kindTooLarge: {500, 500, 413, "java.lang.IllegalArgumentException", "DocumentClientException",
		"RequestEntityTooLarge", scopeRun, "Request size is too large"},
	kindThrottled: {429, 500, 429, "java.util.concurrent.RejectedExecutionException", "DocumentClientException",
		"RequestRateTooLarge", scopeRun, "Request rate is large"},
	kindRetryWith: {596, 500, 449, "java.util.ConcurrentModificationException", "DocumentClientException",
		"RetryWith", scopeRun, "conflicting writes; try again"},
	kindUnavailable: {596, 500, 1007, "java.lang.IllegalStateException", "DocumentClientException",
		"ServiceUnavailable", scopeRun, "the server is closing"},
	kindUnknownOutcome: {500, 500, 503, "java.lang.IllegalStateException", "DocumentClientException",
		"ServiceUnavailable", scopeRun, "the outcome of a write is unknown"},
	kindStoreFull: {500, 500, 403, "java.lang.IllegalStateException", "DocumentClientException", "Forbidden", scopeRun,
		"The disk is full: there is no room for new data. Deletes and reads go on."},
}

// codeServerError is the status code of the frame for TinkerPop clients when bytecode fails as it runs, or one of its
// strategies refuses it. A script that fails so has code 597.
const codeServerError = 500

// isFault reports whether a kind of failure is a fault of the server, as opposed to a faulty request or a limit.
func (k kind) isFault() bool {
	switch k {
	case kindInternal, kindUnavailable, kindUnknownOutcome, kindStoreFull:
		return true
	}
	return false
}

// codeKinds maps the codes of the core. NotFound with SubOwnerNotFound is kindOwnerNotFound.
var codeKinds = map[status.Code]kind{
	status.Internal: kindInternal, status.BadRequest: kindRuntime, status.Unauthorized: kindBadLogin,
	status.Forbidden: kindForbidden, status.NotFound: kindNotFound, status.Conflict: kindConflict,
	status.Gone: kindUnavailable, status.PreconditionFailed: kindPrecondition, status.TooLarge: kindTooLarge,
	status.TooManyRequests: kindThrottled, status.RetryWith: kindRetryWith, status.Timeout: kindTimeout,
	status.NotSupported: kindUnsupported, status.Unavailable: kindUnavailable,
	status.UnknownOutcome: kindUnknownOutcome, status.Corruption: kindInternal, status.StoreFull: kindStoreFull,
	status.MemoryLimit: kindMemory, status.Locked: kindRetryWith,
}

// failure is an error in the form for clients.
type failure struct {
	kind       kind
	msg        string // "" = the text of the row
	serviceMsg string // "" = msg
	failMsg    string // the message of fail()
	sub        int
	retryAfter time.Duration
}

// Error implements error.
func (f *failure) Error() string { return f.text() }

func (f *failure) text() string {
	if f.msg == "" {
		return answers[f.kind].msg
	}
	return f.msg
}

func fail(k kind, format string, args ...any) *failure {
	return &failure{kind: k, msg: fmt.Sprintf(format, args...)}
}

// failureOf converts any error to a failure.
func failureOf(err error) *failure {
	var f *failure
	var m *message.FormatError
	var s *status.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &m):
		return fail(kindMalformed, "%s", m.Msg)
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{kind: kindTimeout}
	case errors.Is(err, context.Canceled):
		return &failure{kind: kindUnavailable}
	}
	if f := engineFailure(err); f != nil {
		return f
	}
	if !errors.As(err, &s) {
		return &failure{kind: kindInternal} // the text isn't shown, because it may contain internals
	}
	f = &failure{kind: codeKinds[s.Code], msg: s.Msg, sub: s.Sub, retryAfter: s.RetryAfter}
	switch {
	case s.Code == status.NotFound && s.Sub == status.SubOwnerNotFound:
		f.kind = kindOwnerNotFound
		f.msg = ""
	case f.kind == kindConflict: // clients search for the service's text, or for TinkerGraph's
		f.serviceMsg = answers[kindConflict].msg
		if !strings.Contains(f.msg, run.Exists) {
			f.msg = ""
			break
		}
		f.msg += ". " + f.serviceMsg
	case f.kind == kindThrottled:
		f.serviceMsg = answers[kindThrottled].msg
	case f.kind == kindInternal:
		f.msg = ""
	}
	return f
}

// serviceText formats a failure like the service.
func (f *failure) serviceText(activity, request gvalue.UUID) string {
	row := &answers[f.kind]
	msg := f.serviceMsg
	if msg == "" {
		msg = f.text()
	}
	var b strings.Builder
	for _, s := range []string{"\r\n\nActivityId : ", activity.String(), "\nExceptionType : ", row.serviceType,
		"\nExceptionMessage :\r\n\t", msg,
		"\nSource : Microsoft.Azure.Cosmos.Gremlin.Core\n\tGremlinRequestId : ", request.String(),
		"\n\tContext : graphcompute\n\tScope : ", row.scope,
		"\n\tGraphInterOpStatusCode : ", row.interop, "\n\tHResult : 0x80131500\r\n"} {
		b.WriteString(s)
	}
	return b.String()
}

// timeSpan formats a duration like .NET: hh:mm:ss.fffffff.
func timeSpan(d time.Duration) string {
	t := int64(d / 100)
	return fmt.Sprintf("%02d:%02d:%02d.%07d", t/36e9, t/6e8%60, t/1e7%60, t%1e7)
}
