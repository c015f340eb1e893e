// Package edm is the Table API's type system on the wire: the eight Edm types, their literals, and entities as JSON in
// and out of stored documents. Reading is one pass over the request body and writing one pass over the stored bytes;
// neither builds a map.
//
// What the types look like on the wire is fixed by Microsoft's page "Payload format for Table service operations".
package edm

import (
	"encoding/hex"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
)

// Type is one Edm type that a property may have.
type Type uint8

// The types of the Table API. None stands for a value without an annotation.
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
	Null // Edm.Null: accepted on input, the property is not stored
)

// types is the registry of type names: the annotation `P@odata.type` holds one of them.
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

// ParseType returns the type of an annotation; ok is false for a name that the Table API does not know.
func ParseType(name string) (t Type, ok bool) {
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

// TypeOf returns the Edm type under which a stored value is shown: arrays, documents and the kinds
// that only MongoDB has are strings, null and undefined are None (absent).
func TypeOf(v value.Value) Type {
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

// AppendTicks appends an instant given in 100 ns units since 1970 with all seven digits of its fraction, as Timestamp
// and ETags show it. colon is ":" or "%3A".
func AppendTicks(dst []byte, ticks int64, colon string) []byte {
	sec, frac := floorDiv(ticks, 10_000_000)
	dst = append(isotime.AppendColon(dst, sec, colon), '.')
	return append(isotime.AppendPadded(dst, int(frac), 7), 'Z')
}

// AppendDateTime appends a Date as Edm.DateTime shows it: UTC, the fraction without its trailing zeros.
func AppendDateTime(dst []byte, v value.Value) []byte {
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

// dateForms are the forms of Edm.DateTime.
const dateForms = isotime.DateOnly | isotime.DateZone | isotime.MinutesOnly | isotime.NoZone |
	isotime.Space | isotime.LowerCase |
	isotime.ShortOffset

// maxOffset is the greatest offset from UTC that the service takes, in seconds.
const maxOffset = 14*3600 + 59*60

// ParseDateTime reads an Edm.DateTime: an ISO date, optionally a time, up to seven digits of fraction (more are cut),
// and Z or an offset, which is converted; without a zone it is UTC. Errors: InvalidInput for anything else,
// OutOfRangeInput outside 1601..9999.
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

// ParseGUID reads a GUID in the forms 8-4-4-4-12 and, like it in braces, and 32 hex digits.
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
