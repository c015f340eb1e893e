package wire

import (
	"fmt"
	"net/http"
	"time"
)

// subCompilation is the sub-status of a program that is no JavaScript.
const subCompilation = 65535

// ExceptionError is the failure of a program that threw. The text is the exception and its stack trace.
func ExceptionError(text string) *Error {
	return &Error{Status: http.StatusBadRequest,
		Body: "Encountered exception while executing Javascript. Exception = " + text}
}

// CompilationError is the failure of a program that is no JavaScript.
func CompilationError(text string) *Error {
	return &Error{Status: http.StatusBadRequest, Sub: subCompilation,
		Body: "Encountered exception while compiling Javascript. Exception = " + text}
}

// TimeError is the failure of a program that ran longer than limit.
func TimeError(limit time.Duration) *Error {
	return &Error{Status: http.StatusRequestTimeout, Exceeded: true,
		Body: fmt.Sprintf("The script was stopped, because it ran longer than %v. Nothing that it did is kept.", limit)}
}

// MemoryError is the failure of a program that has used more memory than it may.
func MemoryError() *Error {
	e := ExceptionError("Error: Out of memory")
	e.Exceeded = true
	return e
}
