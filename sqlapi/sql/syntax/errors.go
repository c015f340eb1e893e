package syntax

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
)

// The service's codes for refused query texts.
const (
	CodeSyntax        = "SC1001" // Syntax error, incorrect syntax near 'x'.
	CodeEOF           = "SC1002" // Syntax error, unexpected end-of-file.
	codeNumber        = "SC1003" // a number literal that does not fit
	codeToken         = "SC1010" // Syntax error, invalid token 'x'.
	codeString        = "SC1012" // Syntax error, invalid string literal token
	CodeIdentifier    = "SC2001" // Identifier 'x' could not be resolved.
	CodeFunction      = "SC2005" // 'X' is not a recognized built-in function name.
	CodeDuplicate     = "SC2011" // the same alias twice
	CodeMember        = "SC2022" // two members of a row with one name
	CodeStarNoFrom    = "SC2039" // SELECT * without FROM
	CodeStarJoin      = "SC2040" // SELECT * with a JOIN
	CodeStarGroup     = "SC2041" // SELECT * with GROUP BY
	CodeArity         = "SC2050" // The X function requires n argument(s).
	CodeParameter     = "SC2054" // a parameter that was not given
	codeTop           = "SC2060" // TOP above its limit
	codeLimit         = "SC2061" // LIMIT above its limit
	codeOffset        = "SC2062" // OFFSET above its limit
	CodeNestedAgg     = "SC2101" // an aggregate inside an aggregate
	CodeUngrouped     = "SC2102" // a column that is neither grouped nor aggregated
	CodeAggregateHere = "SC2103" // an aggregate where none is allowed
	codeInnerOrder    = "SC2202" // ORDER BY in a sub-query
	codeInnerLimit    = "SC2204" // OFFSET LIMIT in a sub-query
	CodeRank          = "SC2221" // ORDER BY RANK of something else than scores, and scores elsewhere
	CodeOrderBy       = "2206"   // ORDER BY of an expression that is not a path
	codeLimits        = "SC3001" // a text, list or nesting above a limit
	CodeNotSupported  = "SC3002" // part of the language, but not supported by this server
)

// Error is the error of a query text that is refused. The service answers it with status 400 and a JSON list of errors.
// Start and End are positions in the text in UTF-16 units, as the service counts them. End is exclusive.
type Error struct {
	Code       string
	Start, End int
	Msg        string
	Plain      bool     // shown as {"Errors":["message"]}, without a position
	more       []*Error // further errors of the same text, listed after this one
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// TakesMore reports whether a further error may be added to e: one answer lists a bounded number (maxErrors).
func (e *Error) TakesMore() bool { return len(e.more) < maxErrors }

// Also adds a further error of the same text to the list of e. An error at the same start position is ignored.
func (e *Error) Also(next *Error) {
	if next.Start != e.Start {
		e.more = append(e.more, next)
	}
}

// maxErrors bounds the further errors that one answer lists.
const maxErrors = 20

// Unwrap returns a status.Error (BadRequest) whose message is the JSON text.
func (e *Error) Unwrap() error {
	code := status.BadRequest
	return &status.Error{Code: code, Msg: string(e.AppendJSON(nil)), Index: -1}
}

// AppendJSON appends the error list {"errors":[{..}]} in the service's form.
func (e *Error) AppendJSON(dst []byte) []byte {
	if e.Plain {
		dst = append(dst, `{"Errors":[`...)
		dst = json.AppendString(dst, e.Msg)
		return append(dst, `]}`...)
	}
	dst = e.appendOne(append(dst, `{"errors":[`...))
	for _, m := range e.more {
		dst = m.appendOne(append(dst, ','))
	}
	return append(dst, `]}`...)
}

func (e *Error) appendOne(dst []byte) []byte {
	dst = append(dst, `{"severity":"Error","location":{"start":`...)
	dst = strconv.AppendInt(dst, int64(e.Start), 10)
	dst = append(dst, `,"end":`...)
	dst = strconv.AppendInt(dst, int64(e.End), 10)
	dst = append(dst, `},"code":`...)
	dst = json.AppendString(dst, e.Code)
	dst = append(dst, `,"message":`...)
	dst = json.AppendString(dst, e.Msg)
	return append(dst, '}')
}

// PlainError returns an error without a position. The service uses this form for errors that it finds after parsing.
func PlainError(format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...), Plain: true}
}

// ErrorAt returns an Error for a span of the text. It converts the byte positions of the span to UTF-16 units.
func ErrorAt(text string, sp Span, code, format string, args ...any) *Error {
	return &Error{Code: code, Start: utf16Len(text, sp.start), End: utf16Len(text, sp.end),
		Msg: fmt.Sprintf(format, args...)}
}

// utf16Len counts the UTF-16 units of the first n bytes of s.
func utf16Len(s string, n int) int {
	if n > len(s) {
		n = len(s)
	}
	units := 0
	for i := 0; i < n; {
		r, w := utf8.DecodeRuneInString(s[i:])
		if r >= 0x10000 {
			units++
		}
		units++
		i += w
	}
	return units
}
