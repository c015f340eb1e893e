package expr

import (
	"errors"
	"regexp/syntax"
	"strings"

	back "github.com/dlclark/regexp2/v2/syntax"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

// patternTooLarge is PCRE2's text for a pattern that has too many instructions.
const patternTooLarge = "regular expression is too large"

// invalidPattern returns the error for a pattern that can't be compiled. Its text is that of PCRE2, MongoDB's engine.
func invalidPattern(fault string) error {
	return merr.New(merr.RegexInvalid, "%s%s", invalidPrefix, fault)
}

const invalidPrefix = "Regular expression is invalid: "

// linearFaults are PCRE2's texts for the errors of Go's engine.
var linearFaults = map[syntax.ErrorCode]string{
	syntax.ErrInvalidCharClass:      "unknown POSIX class name",
	syntax.ErrInvalidCharRange:      "range out of order in character class",
	syntax.ErrInvalidUTF8:           "UTF-8 error: byte 2 top bits not 0x80",
	syntax.ErrLarge:                 patternTooLarge,
	syntax.ErrNestingDepth:          "parentheses are too deeply nested",
	syntax.ErrMissingBracket:        "missing terminating ] for character class",
	syntax.ErrMissingParen:          "missing closing parenthesis",
	syntax.ErrMissingRepeatArgument: "quantifier does not follow a repeatable item",
	syntax.ErrTrailingBackslash:     "\\ at end of pattern",
	syntax.ErrUnexpectedParen:       "unmatched closing parenthesis",
}

// backFaults are PCRE2's texts for the errors of the backtracking engine. Patterns that only it knows have these alone.
var backFaults = map[back.ErrorCode]string{
	back.ErrBadClassInCharRange:       "invalid range in character class",
	back.ErrCapNumNotZero:             "subpattern number is too big",
	back.ErrCaptureGroupOutOfRange:    "subpattern number is too big",
	back.ErrDuplicateGroupName:        "two named subpatterns have the same name (PCRE2_DUPNAMES not set)",
	back.ErrIllegalEndEscape:          "\\ at end of pattern",
	back.ErrIncompleteSlashP:          "malformed \\P or \\p sequence",
	back.ErrInvalidCharRange:          "range out of order in character class",
	back.ErrInvalidGroupName:          "subpattern name expected",
	back.ErrInvalidHex:                "character code point value in \\x{} or \\o{} is too large",
	back.ErrInvalidRepeatOp:           "quantifier does not follow a repeatable item",
	back.ErrInvalidRepeatSize:         "numbers out of order in {} quantifier",
	back.ErrMalformedNameRef:          "\\k is not followed by a braced, angle-bracketed, or quoted name",
	back.ErrMalformedSlashP:           "malformed \\P or \\p sequence",
	back.ErrMissingControl:            "\\c at end of pattern",
	back.ErrMissingParen:              "missing closing parenthesis",
	back.ErrMissingRepeatArgument:     "quantifier does not follow a repeatable item",
	back.ErrReversedCharRange:         "range out of order in character class",
	back.ErrShorthandClassInCharRange: "invalid range in character class",
	back.ErrTooFewHex:                 "digits missing after \\x or in \\x{} or \\o{} or \\N{U+}",
	back.ErrUndefinedBackRef:          "reference to non-existent subpattern",
	back.ErrUndefinedNameRef:          "reference to non-existent subpattern",
	back.ErrUnexpectedParen:           "unmatched closing parenthesis",
	back.ErrUnknownSlashP:             "unknown property after \\P or \\p",
	back.ErrUnrecognizedControl:       "\\c must be followed by a printable ASCII character",
	back.ErrUnrecognizedEscape:        "unrecognized character follows \\",
	back.ErrUnrecognizedGrouping:      "unrecognized character after (? or (?-",
	back.ErrUnterminatedBracket:       "missing terminating ] for character class",
	back.ErrUnterminatedComment:       "missing ) after (?# comment",
}

// patternFault returns PCRE2's text for a pattern that neither engine compiles: what the linear engine finds, unless
// the pattern has something that it doesn't know, and then what the other one finds.
//
// Example: "(ab" is "missing closing parenthesis" by both. "(?=ab" is that by the backtracking engine: to the linear
// one the look-ahead is the error.
func patternFault(linear, other error) string {
	var l *syntax.Error
	if errors.As(linear, &l) && !strings.HasPrefix(strings.ToLower(l.Expr), `\p`) { // classes are ranges to it
		if text, ok := linearFaults[l.Code]; ok {
			return text
		}
	}
	var b *back.Error
	if errors.As(other, &b) {
		if text, ok := backFaults[b.Code]; ok {
			return text
		}
	}
	return linear.Error()
}
