package value

import (
	"bytes"
	"slices"
)

// The classes of values in the order of Cosmos, extended to all BSON kinds. Values of different classes are never
// equal. Stored keys (core/keys) begin with these numbers, so they never change. The gaps are for later kinds.
const (
	ClassAny       = 0x01 // no value has it; the class of index entries that match any value
	ClassMinKey    = 0x04
	ClassUndefined = 0x08
	ClassNull      = 0x10
	ClassBool      = 0x18
	ClassNumber    = 0x20
	ClassString    = 0x28 // String and Symbol
	ClassArray     = 0x30
	ClassObject    = 0x38
	ClassUUID      = 0x40
	ClassBinary    = 0x48
	ClassObjectID  = 0x50
	ClassDate      = 0x58
	ClassTimestamp = 0x60
	ClassRegex     = 0x68
	ClassOther     = 0x70 // DBPointer, Code, CodeScope, in this order
	ClassMaxKey    = 0x7F

	// Classes of index entries that hold the position of a shape instead of a value (core/geo).
	ClassLeafCell = 0x80 // a smallest cell: a point
	ClassCell     = 0x88 // a larger cell, one of several that cover a shape
)

var classes = [...]byte{
	Undefined: ClassUndefined, Null: ClassNull, Bool: ClassBool, Int32: ClassNumber, Int64: ClassNumber,
	Double: ClassNumber, Decimal: ClassNumber, String: ClassString, Symbol: ClassString, Array: ClassArray,
	Object: ClassObject, Binary: ClassBinary, UUID: ClassUUID, ObjectID: ClassObjectID, Date: ClassDate,
	Timestamp: ClassTimestamp, Regex: ClassRegex, DBPointer: ClassOther, Code: ClassOther, CodeScope: ClassOther,
	MinKey: ClassMinKey, MaxKey: ClassMaxKey,
}

// Class returns the class of v.
func (v Value) Class() byte { return classes[v.kind] }

// bsonRanks is MongoDB's order of kinds. Undefined (missing) has the rank of null.
var bsonRanks = [...]byte{
	MinKey: 1, Undefined: 5, Null: 5, Int32: 10, Int64: 10, Double: 10, Decimal: 10, String: 15, Symbol: 15,
	Object: 20, Array: 25, Binary: 30, UUID: 30, ObjectID: 35, Bool: 40, Date: 45, Timestamp: 47, Regex: 50,
	DBPointer: 55, Code: 60, CodeScope: 65, MaxKey: 127,
}

// CompareCosmos is the total order of the NoSQL API: undefined, null, booleans, numbers, strings, arrays, objects, then
// the kinds that JSON lacks. Numbers of all kinds compare by exact value (NaN lowest, -0 equals 0), strings by bytes,
// arrays element by element, objects as fields sorted by name.
func CompareCosmos(a, b Value) int {
	if ca, cb := classes[a.kind], classes[b.kind]; ca != cb {
		return int(ca) - int(cb)
	}
	switch a.kind {
	case Array:
		return compareElements(a, b, CompareCosmos)
	case Object:
		return compareSorted(a, b)
	}
	return compareScalars(a, b)
}

// CompareBSON is MongoDB's order of values: MinKey, null and missing, numbers, strings, objects, arrays, binaries,
// ObjectIds, booleans, dates, timestamps, regular expressions, MaxKey. Objects compare field by field in their order:
// class, name, value. Undefined equals null, as in MongoDB's sort; callers that distinguish them check IsDefined first.
func CompareBSON(a, b Value) int {
	if ra, rb := bsonRanks[a.kind], bsonRanks[b.kind]; ra != rb {
		return int(ra) - int(rb)
	}
	switch a.kind {
	case Array:
		return compareElements(a, b, CompareBSON)
	case Object:
		return compareFields(a, b)
	case CodeScope:
		return compareCodeScope(a, b)
	}
	return compareScalars(a, b)
}

// SameBracket reports whether two values are of kinds that CompareBSON compares by their values, as all numbers are.
func SameBracket(a, b Value) bool { return bsonRanks[a.kind] == bsonRanks[b.kind] }

// EqualCosmos is deep equality of the NoSQL API: numbers of all kinds compare by value, and the order of an object's
// fields doesn't matter. It is CompareCosmos == 0, so NaN equals itself.
func EqualCosmos(a, b Value) bool {
	if classes[a.kind] != classes[b.kind] {
		return false
	}
	return CompareCosmos(a, b) == 0
}

// EqualBSON is MongoDB's deep equality: numbers of all kinds compare by value, and the order of an object's fields
// matters. It is CompareBSON == 0, so Undefined equals null and NaN equals itself.
func EqualBSON(a, b Value) bool {
	if bsonRanks[a.kind] != bsonRanks[b.kind] {
		return false
	}
	return CompareBSON(a, b) == 0
}

// compareScalars compares two values of one class (or BSON rank) that are neither arrays nor objects.
func compareScalars(a, b Value) int {
	switch a.kind {
	case Bool:
		return int(a.n) - int(b.n)
	case Int32, Int64, Double, Decimal:
		return CompareNumbers(a, b)
	case String, Symbol, UUID, ObjectID, Binary:
		if a.kind == Binary || b.kind == Binary {
			return compareBinary(a, b)
		}
		return bytes.Compare(a.b, b.b)
	case Date:
		if c := cmpInt(int64(a.n), int64(b.n)); c != 0 {
			return c
		}
		return int(a.frac) - int(b.frac)
	case Timestamp:
		switch {
		case a.n < b.n:
			return -1
		case a.n > b.n:
			return 1
		}
		return 0
	case Regex, DBPointer, Code, CodeScope:
		// Regex: pattern and options are C strings, so the raw bytes sort by pattern first
		switch {
		case a.kind != b.kind:
			return int(a.kind) - int(b.kind)
		case a.kind == CodeScope:
			return compareCodeScope(a, b)
		}
		return bytes.Compare(a.b, b.b)
	}
	return 0
}

// compareBinary orders binaries by length, then subtype, then bytes.
func compareBinary(a, b Value) int {
	if c := len(a.b) - len(b.b); c != 0 {
		return c
	}
	if c := int(a.sub) - int(b.sub); c != 0 {
		return c
	}
	return bytes.Compare(a.b, b.b)
}

func compareCodeScope(a, b Value) int {
	ca, sa := a.CodeScopeParts()
	cb, sb := b.CodeScopeParts()
	if c := bytes.Compare(ca, cb); c != 0 {
		return c
	}
	return compareFields(ObjectOf(sa), ObjectOf(sb))
}

func compareElements(a, b Value, compare func(a, b Value) int) int {
	if bytes.Equal(a.b, b.b) {
		return 0
	}
	x, y := a.Iter(), b.Iter()
	for {
		nx, ny := x.Next(), y.Next()
		if !nx || !ny {
			return boolInt(nx) - boolInt(ny)
		}
		if c := compare(x.val, y.val); c != 0 {
			return c
		}
	}
}

func compareFields(a, b Value) int {
	if bytes.Equal(a.b, b.b) {
		return 0
	}
	x, y := a.Iter(), b.Iter()
	for {
		nx, ny := x.Next(), y.Next()
		if !nx || !ny {
			return boolInt(nx) - boolInt(ny)
		}
		if rx, ry := bsonRanks[x.val.kind], bsonRanks[y.val.kind]; rx != ry {
			return int(rx) - int(ry)
		}
		if c := bytes.Compare(x.Key(), y.Key()); c != 0 {
			return c
		}
		if c := CompareBSON(x.val, y.val); c != 0 {
			return c
		}
	}
}

// field is one field of an object, for orders that ignore the order of fields.
type field struct {
	key []byte
	val Value
}

func sortedFields(buf []field, v Value) []field {
	for it := v.Iter(); it.Next(); {
		buf = append(buf, field{it.Key(), it.val})
	}
	slices.SortStableFunc(buf, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	return buf
}

func compareSorted(a, b Value) int {
	if bytes.Equal(a.b, b.b) {
		return 0
	}
	var bufA, bufB [8]field
	x, y := sortedFields(bufA[:0], a), sortedFields(bufB[:0], b)
	for i := range min(len(x), len(y)) {
		if c := bytes.Compare(x[i].key, y[i].key); c != 0 {
			return c
		}
		if c := CompareCosmos(x[i].val, y[i].val); c != 0 {
			return c
		}
	}
	return len(x) - len(y)
}

// Identical reports whether two values have the same kind and the same bytes, and so the same encodings and hashes.
// Values that are equal need not be identical.
func Identical(a, b Value) bool {
	return a.kind == b.kind && a.sub == b.sub && a.frac == b.frac && a.n == b.n && bytes.Equal(a.b, b.b)
}
