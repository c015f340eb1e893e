// Package edm implements the type system of the Table API: the eight Edm types, their literals, and the conversion of
// entities between JSON and stored documents. Reading is one pass over the request body, writing one pass over the
// stored bytes; neither builds a map. Microsoft's page "Payload format for Table service operations" defines the form
// of the types in JSON.
//
// Example:
//
//	{"PartitionKey":"p", "RowKey":"r", "n@odata.type":"Edm.Int64", "n":"5", "ok":true}
//	-> keys "p" and "r"; properties n = Int64 5, ok = true
package edm

import (
	"encoding/hex"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
)

// Type is the Edm type of a property.
type Type uint8

// The types of the Table API. None is the type of a value without an annotation.
const (
	None Type = iota
	Binary
	Boolean
	DateTime
	Double
	GUID
	Int32
	Int64
	String
	Null // Edm.Null: accepted on input; the property isn't stored
)

// types is the registry of type names, which the annotation `P@odata.type` contains.
var types = []struct {
	name string
	t    Type
}{
	{"Edm.Binary", Binary},
	{"Edm.Boolean", Boolean},
	{"Edm.DateTime", DateTime},
	{"Edm.Double", Double},
	{"Edm.Guid", GUID},
	{"Edm.Int32", Int32},
	{"Edm.Int64", Int64},
	{"Edm.Null", Null},
	{"Edm.String", String},
}

// parseType returns the type of an annotation. ok is false for an unknown name.
func parseType(name string) (t Type, ok bool) {
	for i := range types {
		if types[i].name == name {
			return types[i].t, true
		}
	}
	return None, false
}

// String returns the annotation's text, "" for None.
func (t Type) String() string {
	for i := range types {
		if types[i].t == t {
			return types[i].name
		}
	}
	return ""
}

// typeOf returns the Edm type under which a stored value is shown. Arrays, documents and kinds that only MongoDB has
// are strings. Null and undefined are None (absent).
func typeOf(v value.Value) Type {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return None
	case value.Bool:
		return Boolean
	case value.Int32:
		return Int32
	case value.Int64:
		return Int64
	case value.Double:
		return Double
	case value.Binary:
		return Binary
	case value.UUID:
		return GUID
	case value.Date:
		if ms := v.DateMS(); ms < minDateMS || ms > maxDateMS {
			return String
		}
		return DateTime
	}
	return String
}

// The range of Edm.DateTime: 1601-01-01 to 9999-12-31T23:59:59.9999999, in milliseconds since 1970.
const (
	minDateMS = -11644473600000
	maxDateMS = 253402300799999
)

// appendTicks appends an instant, in units of 100 ns since 1970, with all seven digits of its fraction, as in Timestamp
// and ETags. colon is ":" or "%3A".
func appendTicks(dst []byte, ticks int64, colon string) []byte {
	sec, frac := floorDiv(ticks, 10_000_000)
	dst = append(isotime.AppendColon(dst, sec, colon), '.')
	return append(isotime.AppendPadded(dst, int(frac), 7), 'Z')
}

// appendDateTime appends a Date as Edm.DateTime: UTC, the fraction without trailing zeros.
func appendDateTime(dst []byte, v value.Value) []byte {
	sec, ms := floorDiv(v.DateMS(), 1000)
	dst = isotime.Append(dst, sec)
	if frac := int(ms)*10_000 + int(v.Ticks()); frac != 0 {
		dst = isotime.AppendPadded(append(dst, '.'), frac, 7)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}

// dateForms are the accepted forms of Edm.DateTime.
const dateForms = isotime.DateOnly | isotime.DateZone | isotime.MinutesOnly | isotime.NoZone |
	isotime.Space | isotime.LowerCase |
	isotime.ShortOffset

// maxOffset is the largest offset from UTC that the service accepts, in seconds.
const maxOffset = 14*3600 + 59*60

// ParseDateTime reads an Edm.DateTime: an ISO date, optionally a time, up to seven digits of fraction (further digits
// are dropped), and Z or an offset, which is converted to UTC. Without a zone the time is UTC. The error is
// OutOfRangeInput outside 1601..9999, and InvalidInput for other texts.
func ParseDateTime(s string) (value.Value, error) {
	t, ok := isotime.Parse(s, dateForms)
	if !ok || t.Offset > maxOffset || t.Offset < -maxOffset {
		return value.Value{}, errInput
	}
	ms := t.UnixMilli()
	if ms < minDateMS || ms > maxDateMS {
		return value.Value{}, fail(OutOfRangeInput, "", "The value is out of range.")
	}
	return value.DateOf(ms, t.Ticks()), nil
}

// ParseGUID reads a GUID: 8-4-4-4-12 digits, the same in braces, or 32 hex digits.
func ParseGUID(s string) (value.Value, bool) {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) == 32 {
		b, err := hex.DecodeString(s)
		return value.UUIDOf(b), err == nil
	}
	b, ok := value.ParseUUID([]byte(s))
	return value.UUIDOf(b), ok
}
