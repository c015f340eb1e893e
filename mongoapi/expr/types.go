package expr

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var typeNames = map[byte]string{
	0x01: "double", 0x02: "string", 0x03: "object", 0x04: "array", 0x05: "binData", 0x06: "undefined", 0x07: "objectId",
	0x08: "bool", 0x09: "date", 0x0A: "null", 0x0B: "regex", 0x0C: "dbPointer", 0x0D: "javascript", 0x0E: "symbol",
	0x0F: "javascriptWithScope", 0x10: "int", 0x11: "timestamp", 0x12: "long", 0x13: "decimal", 0xFF: "minKey",
	0x7F: "maxKey",
}

var typeCodes = func() map[string]byte {
	m := map[string]byte{}
	for c, n := range typeNames {
		m[n] = c
	}
	return m
}()

// TypeByName returns the BSON type of a $type alias.
func TypeByName(name string) (byte, bool) {
	t, ok := typeCodes[name]
	return t, ok
}

// TypeCode returns the BSON type of v. A date kept with ticks is a date.
func TypeCode(v value.Value) byte {
	if v.Kind() == value.Date {
		return 0x09
	}
	return value.BSONType(v)
}

// TypeName returns the name of v's type as $type gives it; "missing" for Undefined.
//
//go:noinline // called from many places, see decision 41
func TypeName(v value.Value) string {
	if !v.IsDefined() {
		return "missing"
	}
	return typeNames[TypeCode(v)]
}

func isZero(v value.Value) bool { return num.IsZero(v) }
