package doc

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
)

// extended converts the object at p.dst[at:] from its Extended JSON form to the value that it represents, and returns
// the BSON type of that value. The first name of the object begins with '$'. The members of the object were parsed
// before, so a number in it is already a BSON number.
//
//	{"$oid": "507f1f77bcf86cd799439011"}  ->  an ObjectId: 12 bytes replace the object
//	{"$gt": 5}                            ->  stays an object: $gt is not a key of Extended JSON
//	{"$oid": "xyz"}                       ->  BadRequest: the key is known, the content is malformed
func (p *parser) extended(at int) (byte, error) {
	o := value.ObjectOf(p.dst[at:])
	it := o.Iter()
	it.Next()
	read := extKeys[string(it.Key())]
	if read == nil {
		return bson.TypeDocument, nil
	}
	v, shape, ok := read(o, it.Value(), o.Len())
	if !shape {
		return bson.TypeDocument, nil
	}
	if !ok {
		return 0, p.fail("malformed Extended JSON " + string(it.Key()))
	}
	v = v.Clone() // v may point into bytes that the next line overwrites
	p.dst = value.AppendBSON(p.dst[:at], v)
	return value.BSONType(v), nil
}

// An extReader makes the value that an object o with n fields represents; v is the object's first field. shape is false
// when o doesn't have this form (it stays an object). ok is false when it has the form, but its content is malformed.
type extReader func(o, v value.Value, n int) (r value.Value, shape, ok bool)

var extKeys map[string]extReader

func init() {
	extKeys = map[string]extReader{
		"$binary":            extBinary,
		"$code":              extCode,
		"$date":              extDate,
		"$dbPointer":         extDBPointer,
		"$maxKey":            extEnd(value.MaxKeyValue()),
		"$minKey":            extEnd(value.MinKeyValue()),
		"$numberDecimal":     extText(extDecimal),
		"$numberDouble":      extText(extDouble),
		"$numberInt":         extText(extInt),
		"$numberLong":        extText(extLong),
		"$oid":               extText(extOID),
		"$regularExpression": extRegex,
		"$scope":             extCode,
		"$symbol":            extText(func(s []byte) (value.Value, bool) { return value.SymbolOf(s), true }),
		"$timestamp":         extTimestamp,
		"$undefined":         extEnd(value.NullValue()),
		"$uuid":              extText(extUUID),
	}
}

// extText reads the forms {"$key": "text"}.
//
//go:noinline // each caller would get its own copy of the closure
func extText(parse func([]byte) (value.Value, bool)) extReader {
	return func(_, v value.Value, n int) (value.Value, bool, bool) {
		if n != 1 {
			return value.Value{}, false, false
		}
		if v.Kind() != value.String {
			return value.Value{}, true, false
		}
		r, ok := parse(v.Bytes())
		return r, true, ok
	}
}

// extEnd reads the forms of $minKey and $maxKey, whose member has no content.
func extEnd(r value.Value) extReader {
	return func(_, _ value.Value, n int) (value.Value, bool, bool) { return r, n == 1, true }
}

func extInt(s []byte) (value.Value, bool) {
	i, err := strconv.ParseInt(string(s), 10, 32)
	return value.Int32Of(int32(i)), err == nil
}

func extLong(s []byte) (value.Value, bool) {
	i, err := strconv.ParseInt(string(s), 10, 64)
	return value.Int64Of(i), err == nil
}

func extDouble(s []byte) (value.Value, bool) {
	switch string(s) {
	case "NaN":
		return value.DoubleOf(math.NaN()), true
	case "Infinity":
		return value.DoubleOf(math.Inf(1)), true
	case "-Infinity":
		return value.DoubleOf(math.Inf(-1)), true
	}
	for _, c := range s { // ParseFloat also knows hex, underscores and "inf"
		if c|0x20 != 'e' && c != '.' && c != '+' && c != '-' && (c < '0' || c > '9') {
			return value.Value{}, false
		}
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return value.DoubleOf(f), err == nil
}

func extDecimal(s []byte) (value.Value, bool) { return value.ParseDecimal(string(s)) }

func extOID(s []byte) (value.Value, bool) {
	b, err := hex.DecodeString(string(s))
	return value.ObjectIDOf(b), err == nil && len(b) == 12
}

func extUUID(s []byte) (value.Value, bool) {
	b, ok := value.ParseUUID(s)
	return value.UUIDOf(b), ok
}

func extDate(_, v value.Value, n int) (value.Value, bool, bool) {
	if n != 1 {
		return value.Value{}, false, false
	}
	switch v.Kind() {
	case value.Int32, value.Int64:
		return value.DateOf(v.Int(), 0), true, true
	case value.String:
		t, ok := isotime.Parse(v.Bytes(), isotime.Full)
		return value.DateOf(t.UnixMilli(), t.Ticks()), true, ok
	}
	return value.Value{}, true, false
}

// extBinary reads {"$binary": {"base64": "..", "subType": ".."}} and the older {"$binary": "..", "$type": ".."}.
func extBinary(o, v value.Value, n int) (value.Value, bool, bool) {
	data, sub := v.Get("base64"), v.Get("subType")
	switch {
	case n == 1 && v.Kind() == value.Object && v.Len() == 2:
	case n == 2 && v.Kind() == value.String && o.Get("$type").IsDefined():
		data, sub = v, o.Get("$type")
	default:
		return value.Value{}, n == 1, false
	}
	if data.Kind() != value.String || sub.Kind() != value.String || len(sub.Bytes()) > 2 {
		return value.Value{}, true, false
	}
	t, err := strconv.ParseUint(sub.Str(), 16, 8)
	if err != nil {
		return value.Value{}, true, false
	}
	b, err := base64.StdEncoding.DecodeString(data.Str())
	if err != nil {
		b, err = base64.RawStdEncoding.DecodeString(data.Str())
	}
	if byte(t) == value.SubtypeOld {
		b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	return value.BinaryOf(byte(t), b), true, err == nil
}

func extCode(o, _ value.Value, n int) (value.Value, bool, bool) {
	code, scope := o.Get("$code"), o.Get("$scope")
	switch {
	case n == 1 && code.Kind() == value.String:
		return value.CodeOf(code.Bytes()), true, true
	case n == 2 && code.IsDefined() && scope.IsDefined():
		if code.Kind() != value.String || scope.Kind() != value.Object {
			return value.Value{}, true, false
		}
		return value.RawOf(value.CodeScope, bson.AppendCodeScopeValue(nil, code.Bytes(), scope.Bytes())), true, true
	}
	return value.Value{}, n == 1 && code.IsDefined(), false
}

func extTimestamp(_, v value.Value, n int) (value.Value, bool, bool) {
	if n != 1 {
		return value.Value{}, false, false
	}
	t, i := v.Get("t"), v.Get("i")
	ok := v.Len() == 2 && isUint32(t) && isUint32(i)
	return value.TimestampOf(uint64(t.Int())<<32 | uint64(i.Int())), true, ok
}

func isUint32(v value.Value) bool {
	return (v.Kind() == value.Int32 || v.Kind() == value.Int64) && v.Int() >= 0 && v.Int() <= math.MaxUint32
}

func extRegex(_, v value.Value, n int) (value.Value, bool, bool) {
	if n != 1 {
		return value.Value{}, false, false
	}
	pattern, options := v.Get("pattern"), v.Get("options")
	ok := v.Len() == 2 && pattern.Kind() == value.String && options.Kind() == value.String
	if !ok || hasNUL(pattern.Bytes()) || hasNUL(options.Bytes()) {
		return value.Value{}, true, false
	}
	return value.RegexOf(pattern.Str(), options.Str()), true, true
}

func hasNUL(b []byte) bool {
	for _, c := range b {
		if c == 0 {
			return true
		}
	}
	return false
}

func extDBPointer(_, v value.Value, n int) (value.Value, bool, bool) {
	if n != 1 {
		return value.Value{}, false, false
	}
	ref, id := v.Get("$ref"), v.Get("$id")
	if v.Len() != 2 || ref.Kind() != value.String || id.Kind() != value.ObjectID {
		return value.Value{}, true, false
	}
	return value.RawOf(value.DBPointer, bson.AppendDBPointerValue(nil, ref.Bytes(), id.Bytes())), true, true
}
