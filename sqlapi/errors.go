package sqlapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/rest"
)

// This file is the one place where errors of the core become the service's replies.

// Texts of the service that clients test for or users search for.
const (
	msgNotFound     = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"
	msgConflict     = "Resource with specified id or name already exists."
	msgUnique       = "Unique index constraint violation."
	msgPrecondition = "One of the specified pre-condition is not met"
	msgTooLarge     = "Request size is too large"
	msgInvalid      = "One of the specified inputs is invalid"
	msgPKMismatch   = "PartitionKey extracted from document doesn't match the one specified in the header"
	msgThrottled    = "Request rate is large. More Request Units may be needed, so no changes were made. Please " +
		"retry this request later. Learn more: http://aka.ms/cosmosdb-error-429"
)

var (
	errTooLarge    = status.New(status.TooLarge, msgTooLarge)
	errInvalid     = status.New(status.BadRequest, msgInvalid)
	errNotFound    = status.New(status.NotFound, msgNotFound)
	errNotModified = status.New(status.NotModified, "")
	errEtag        = status.New(status.PreconditionFailed, msgPrecondition)
	errPKMismatch  = status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch, msgPKMismatch)
	errNoPath      = status.New(status.NotFound, msgNotFound)
)

// httpStatus gives the HTTP status and the name of an error code.
func httpStatus(code status.Code) (int, string) {
	switch code {
	case status.BadRequest:
		return http.StatusBadRequest, "BadRequest"
	case status.Unauthorized:
		return http.StatusUnauthorized, "Unauthorized"
	case status.Forbidden:
		return http.StatusForbidden, "Forbidden"
	case status.NotFound:
		return http.StatusNotFound, "NotFound"
	case status.Conflict:
		return http.StatusConflict, "Conflict"
	case status.Gone:
		return http.StatusGone, "Gone"
	case status.PreconditionFailed:
		return http.StatusPreconditionFailed, "PreconditionFailed"
	case status.TooLarge:
		return http.StatusRequestEntityTooLarge, "RequestEntityTooLarge"
	case status.TooManyRequests:
		return http.StatusTooManyRequests, "TooManyRequests"
	case status.RetryWith:
		return 449, "RetryWith"
	case status.Timeout:
		return http.StatusRequestTimeout, "RequestTimeout"
	case status.NotSupported:
		return http.StatusBadRequest, "BadRequest" // the service answers 400; a 501 makes some clients retry
	case status.Unavailable, status.UnknownOutcome:
		return http.StatusServiceUnavailable, "ServiceUnavailable"
	case status.NotModified:
		return http.StatusNotModified, "NotModified"
	case status.StoreFull: // no sub-status: with some of 403's, SDKs retry in another region
		return http.StatusForbidden, "Forbidden"
	case status.MemoryLimit:
		return http.StatusBadRequest, "BadRequest"
	case status.Locked:
		return http.StatusLocked, "Locked"
	}
	return http.StatusInternalServerError, "InternalServerError"
}

// message returns the text of an error. If the service has a fixed text for the code, it returns that text.
func message(e *status.Error) string {
	switch e.Code {
	case status.NotFound:
		if e.Sub == status.SubReadSessionUnavailable {
			return "The read session is not available for the input session token."
		}
		return msgNotFound
	case status.Conflict:
		if strings.Contains(strings.ToLower(e.Msg), "unique") {
			return msgUnique
		}
		return msgConflict
	case status.PreconditionFailed:
		return msgPrecondition
	case status.TooManyRequests:
		return msgThrottled
	case status.Internal, status.Corruption:
		return "An unexpected error occurred. The server's log has more."
	}
	return e.Msg
}

// Fail writes the reply of an error.
func (c *call) Fail(err error) {
	e := rest.Status(err)
	if e.Code == status.NotModified {
		_ = c.send(http.StatusNotModified)
		return
	}
	if (e.Code == status.Internal || e.Code == status.Corruption) && !rest.Panicked(err) {
		c.s.log.Error("A request failed inside.", "path", c.Request.URL.Path, "error", err.Error(),
			"activity_id", string(c.ID[:]))
	}
	code, name := httpStatus(e.Code)
	sub, retry := refusal(e)
	if sub != 0 {
		c.sub = sub
	}
	if retry > 0 {
		c.SetInt(hRetryAfter, retry)
	}
	c.errorBody(name, message(e), nil)
	_ = c.send(code)
}

// refusal returns an error's sub-status, 0 when it has none, and the time in milliseconds after which to retry, 0 when
// a retry doesn't help.
func refusal(e *status.Error) (sub int, retry int64) {
	if e.Code != status.TooManyRequests {
		return e.Sub, 0
	}
	if sub = e.Sub; sub == 0 {
		sub = status.SubThrottled
	}
	return sub, max(1, e.RetryAfter.Milliseconds())
}

// errorBody writes the body of an error. A text that is JSON itself ({"errors":[..]} of the query language) is included
// unchanged. Any other text becomes {"Errors":["text"]}. extra is appended inside the object (",\"key\":value").
func (c *call) errorBody(name, text string, extra []byte) {
	m := append(c.Spare[:0], "Message: "...)
	if strings.HasPrefix(text, `{"`) {
		m = append(m, text...)
	} else {
		m = append(m, `{"Errors":[`...)
		m = json.AppendString(m, text)
		m = append(m, "]}"...)
	}
	m = append(m, "\r\nActivityId: "...)
	m = append(m, c.ID[:]...)
	m = append(m, ", Request URI: "...)
	m = append(m, c.Request.URL.EscapedPath()...)
	m = append(m, ", RequestStats: , SDK: orrery"...)
	c.Spare = m

	b := append(c.Out[:0], `{"code":`...)
	b = json.AppendString(b, name)
	b = append(b, `,"message":`...)
	b = json.AppendString(b, string(m))
	b = append(b, extra...)
	c.Out = append(b, '}')
}

// unsupported answers for a resource that the service has and this server doesn't support.
func unsupported(what string) handler {
	err := status.New(status.NotSupported, "%s are not supported by this server.", what)
	return func(*call) error { return err }
}

// appendQuotedETag appends an etag in the form of a body: a JSON string that includes the quotes.
func appendQuotedETag(dst []byte, etag string) []byte {
	dst = append(dst, `"\"`...)
	dst = append(dst, etag...)
	return append(dst, `\""`...)
}

// badHeader returns the error for a header that can't be parsed.
func badHeader(name, value string) error {
	return status.New(status.BadRequest, "The value %s specified for header %s is invalid.",
		strconv.QuoteToASCII(clip(value)), name)
}

// clip bounds a text that goes into a message.
func clip(s string) string {
	if len(s) > 200 {
		return s[:200]
	}
	return s
}
