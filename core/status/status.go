// Package status has the one error type of the core. A status.Error has a code, a sub-status and a message that is safe
// to show to a client. Each API translates the code to its own protocol in one place.
//
// It imports no other package of ours, so every package may use it.
package status

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of failure. The values never change, because logs contain them.
type Code uint8

// The codes, with the HTTP status that the NoSQL API gives them.
const (
	Internal           Code = iota // 500: a fault of Orrery
	BadRequest                     // 400: the request is malformed or not allowed
	Unauthorized                   // 401: the credentials are missing or wrong
	Forbidden                      // 403: no permission, or a quota is used up
	NotFound                       // 404
	Conflict                       // 409: id or unique key taken
	Gone                           // 410: the partition with this id doesn't exist any more
	PreconditionFailed             // 412: etag or condition
	TooLarge                       // 413: item, request or key above a limit
	TooManyRequests                // 429: request units used up
	RetryWith                      // 449: a write conflict, internal retries are used up
	Timeout                        // 408
	NotSupported                   // 501 internally; each API has its own error for "not supported"
	Unavailable                    // 503: the engine is closing or lacks a resource; nothing was applied
	UnknownOutcome                 // 503: the write may or may not have been applied
	NotModified                    // 304
	Corruption                     // 500: stored bytes fail their checks
	StoreFull                      // 403: the disk has no room for new data; deletes and reads still work
	MemoryLimit                    // 400: the query needs more memory than one request may use
	Locked                         // 423: another change of the same thing is in progress
)

// Sub-statuses of the service that the core itself returns (header x-ms-substatus).
const (
	SubPartitionKeyMismatch   = 1001
	SubReadSessionUnavailable = 1002
	SubPartitionKeyRangeGone  = 1002
	SubOwnerNotFound          = 1003
	SubPartitionKeyFull       = 1014
	SubStaleContainer         = 1024
	SubThrottled              = 3200
)

// Error is the only error type that leaves the core.
type Error struct {
	Code       Code
	Sub        int           // sub-status of the service, 0 = none
	Msg        string        // safe to show to a client
	RetryAfter time.Duration // only with TooManyRequests
	Index      int           // the failing operation of a batch, -1 = none
	cause      error
}

// Error implements error.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Msg + ": " + e.cause.Error()
	}
	return e.Msg
}

// Unwrap returns the cause. It is for logs and never shown to a client.
func (e *Error) Unwrap() error { return e.cause }

// New returns an Error with a message that is safe to show to a client.
//
//go:noinline // called from many places, see decision 41
func New(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Msg: fmt.Sprintf(format, args...), Index: -1}
}

// WithSub returns an Error with a sub-status.
func WithSub(c Code, sub int, format string, args ...any) *Error {
	e := New(c, format, args...)
	e.Sub = sub
	return e
}

// Wrap returns an Error with a cause that must not be shown to a client.
//
//go:noinline // called from many places, see decision 41
func Wrap(c Code, cause error, format string, args ...any) *Error {
	e := New(c, format, args...)
	e.cause = cause
	return e
}

// From returns err as an *Error. An error of another type becomes Internal, with err as the cause.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Msg: "internal error", cause: err, Index: -1}
}

// Is reports whether err is an Error with code c.
//
//go:noinline // called from many places, see decision 41
func Is(err error, c Code) bool {
	if err == nil {
		return false // most calls; errors.As would allocate
	}
	var e *Error
	return errors.As(err, &e) && e.Code == c
}

// CodeOf returns the code of err, Internal for an error of another type.
func CodeOf(err error) Code {
	if e := From(err); e != nil {
		return e.Code
	}
	return Internal
}
