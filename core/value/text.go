package value

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/json"
)

// Style is a form of JSON text for values.
type Style uint8

// The styles.
const (
	// PlainJSON is the form of the NoSQL API: dates as ISO 8601 text, UUIDs as text, binaries as base64, NaN and the
	// infinities as the strings "NaN", "Infinity", "-Infinity". Kinds without a JSON form (ObjectId, decimal,
	// timestamp, ..) are canonical Extended JSON. Values of different kinds may have the same text.
	PlainJSON Style = iota
	// RelaxedJSON is MongoDB Extended JSON v2, relaxed: numbers are plain, and dates of the years 1970 to 9999 are ISO
	// text.
	RelaxedJSON
	// CanonicalJSON is MongoDB Extended JSON v2, canonical: the text determines the kind.
	CanonicalJSON
	// IdentityJSON is CanonicalJSON of the canonical value (see Canonical), so values that BSON calls equal have the
	// same text: 1, 1.0, 1L and a decimal 1; a string and a symbol.
	IdentityJSON
)

// AppendText appends v as JSON text in style s. Undefined is written as null; callers that must omit it check first.
func AppendText(dst []byte, v Value, s Style) []byte {
	switch v.kind {
	case Undefined, Null:
		return append(dst, "null"...)
	case Bool:
		return strconv.AppendBool(dst, v.n != 0)
	case Int32, Int64, Double, Decimal:
		return appendNumberStyle(dst, v, s)
	case String:
		return json.AppendText(dst, v.b)
	case Array:
		return appendContainer(dst, v.b, true, s)
	case Object:
		return appendContainer(dst, v.b, false, s)
	}
	return appendExtended(dst, v, s)
}

// AppendRaw appends the BSON value raw of type t as JSON text. The length of raw must be bson.SizeOf.
func AppendRaw(dst []byte, t byte, raw []byte, s Style) []byte {
	switch t { // the kinds that JSON has are written without making a Value
	case bson.TypeString:
		return json.AppendText(dst, raw[4:len(raw)-1])
	case bson.TypeInt32:
		if s <= RelaxedJSON {
			return strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(raw))), 10)
		}
	case bson.TypeDocument:
		return appendContainer(dst, raw, false, s)
	case bson.TypeArray:
		return appendContainer(dst, raw, true, s)
	case bson.TypeBool:
		if raw[0] != 0 {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case bson.TypeNull:
		return append(dst, "null"...)
	}
	v, _, ok := ReadValue(t, raw)
	if !ok {
		return append(dst, "null"...)
	}
	return AppendText(dst, v, s)
}

// appendContainer writes a BSON array or document. It stops at malformed bytes; validated documents have none.
func appendContainer(dst, b []byte, array bool, s Style) []byte {
	open, end := byte('{'), byte('}')
	if array {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	if len(b) > 5 {
		comma := false
		for r := b[4 : len(b)-1]; ; {
			k, n, ok := bson.Element(r)
			if !ok {
				break
			}
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			if !array {
				dst = json.AppendName(dst, r[1:k])
			}
			dst = AppendRaw(dst, r[0], r[k+1:n], s)
			r = r[n:]
		}
	}
	return append(dst, end)
}

const hexDigits = "0123456789abcdef"

// AppendNumber appends a number as JSON text that keeps its kind: integers plain, doubles with a fraction or an
// exponent (1.0, 1e+21, -0.0), NaN and the infinities as strings, decimals as Extended JSON.
func AppendNumber(dst []byte, v Value) []byte { return appendNumberStyle(dst, v, PlainJSON) }

// FormatNumber is AppendNumber as a string.
func FormatNumber(v Value) string { return string(AppendNumber(nil, v)) }

func appendNumberStyle(dst []byte, v Value, s Style) []byte {
	if s == IdentityJSON {
		v, s = Canonical(v), CanonicalJSON
	}
	wrap := func(name string, text func([]byte) []byte) []byte {
		dst = append(append(append(dst, `{"`...), name...), `":"`...)
		return append(text(dst), `"}`...)
	}
	switch v.kind {
	case Int32:
		if s != CanonicalJSON {
			return strconv.AppendInt(dst, int64(v.n), 10)
		}
		return wrap("$numberInt", func(b []byte) []byte { return strconv.AppendInt(b, int64(v.n), 10) })
	case Int64:
		if s != CanonicalJSON {
			return strconv.AppendInt(dst, int64(v.n), 10)
		}
		return wrap("$numberLong", func(b []byte) []byte { return strconv.AppendInt(b, int64(v.n), 10) })
	case Double:
		f := math.Float64frombits(v.n)
		switch odd := math.IsNaN(f) || math.IsInf(f, 0); {
		case !odd && s != CanonicalJSON:
			return appendDouble(dst, f)
		case odd && s == PlainJSON:
			return append(appendDouble(append(dst, '"'), f), '"')
		}
		return wrap("$numberDouble", func(b []byte) []byte { return appendDouble(b, f) })
	case Decimal:
		return wrap("$numberDecimal", func(b []byte) []byte { return appendDecimal(b, v.b) })
	}
	return append(dst, "null"...)
}

// appendDouble appends the shortest text that reads back as f and as a double: whole numbers get ".0". NaN, Infinity
// and -Infinity are written as these words without quotes.
func appendDouble(dst []byte, f float64) []byte {
	switch a := math.Abs(f); {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case a < 1<<53 && f == math.Trunc(f):
		if f == 0 && math.Signbit(f) {
			return append(dst, "-0.0"...)
		}
		return append(strconv.AppendInt(dst, int64(f), 10), ".0"...)
	case a >= 1e-3 && a < 1e9:
		if b, ok := appendShort(dst, f); ok {
			return b
		}
	case a >= 1e21 || a < 1e-6:
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-07 becomes e-7
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	case f == math.Trunc(f):
		return append(strconv.AppendFloat(dst, f, 'f', -1, 64), ".0"...)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendShort writes doubles with at most four digits behind the point and 15 in all. Different decimals of at most 15
// digits are different doubles, so the text that reads back as f is the shortest one. ok is false for other doubles.
func appendShort(dst []byte, f float64) ([]byte, bool) {
	for digits, pow := range [...]float64{10, 100, 1000, 10000} {
		m := math.Round(f * pow)
		if m/pow != f {
			continue
		}
		i, p := int64(m), int64(pow)
		if i < 0 {
			dst, i = append(dst, '-'), -i
		}
		dst = append(strconv.AppendInt(dst, i/p, 10), '.')
		for frac := i % p; digits >= 0; digits-- {
			p /= 10
			dst = append(dst, byte('0'+frac/p%10))
		}
		return dst, true
	}
	return dst, false
}

// appendExtended writes a value of a kind that JSON lacks.
func appendExtended(dst []byte, v Value, s Style) []byte {
	switch v.kind {
	case Symbol:
		if s == CanonicalJSON || s == RelaxedJSON {
			return append(json.AppendText(append(dst, `{"$symbol":`...), v.b), '}')
		}
		return json.AppendText(dst, v.b)
	case Binary:
		if s == PlainJSON {
			return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.binaryData()), '"')
		}
		return appendBinary(dst, v)
	case UUID:
		if s == PlainJSON {
			return append(AppendUUID(append(dst, '"'), v.b), '"')
		}
		return appendBinary(dst, v)
	case ObjectID:
		return append(hex.AppendEncode(append(dst, `{"$oid":"`...), v.b), `"}`...)
	case Date:
		return appendDate(dst, v, s)
	case Timestamp:
		dst = strconv.AppendUint(append(dst, `{"$timestamp":{"t":`...), v.n>>32, 10)
		return append(strconv.AppendUint(append(dst, `,"i":`...), v.n&math.MaxUint32, 10), `}}`...)
	case Regex:
		pattern, options := v.RegexParts()
		dst = json.AppendText(append(dst, `{"$regularExpression":{"pattern":`...), pattern)
		return append(json.AppendText(append(dst, `,"options":`...), options), `}}`...)
	case DBPointer:
		ns, id := v.DBPointerParts()
		dst = json.AppendText(append(dst, `{"$dbPointer":{"$ref":`...), ns)
		return append(hex.AppendEncode(append(dst, `,"$id":{"$oid":"`...), id), `"}}}`...)
	case Code:
		return append(json.AppendText(append(dst, `{"$code":`...), v.b), '}')
	case CodeScope:
		code, scope := v.CodeScopeParts()
		dst = json.AppendText(append(dst, `{"$code":`...), code)
		return append(appendContainer(append(dst, `,"$scope":`...), scope, false, s), '}')
	case MinKey:
		return append(dst, `{"$minKey":1}`...)
	case MaxKey:
		return append(dst, `{"$maxKey":1}`...)
	}
	return append(dst, "null"...)
}

// binaryData returns the data of a binary. In the deprecated subtype 2, a second length precedes the data.
func (v Value) binaryData() []byte {
	if v.sub == SubtypeOld && len(v.b) >= 4 {
		return v.b[4:]
	}
	return v.b
}

func appendBinary(dst []byte, v Value) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, `{"$binary":{"base64":"`...), v.binaryData())
	return append(append(dst, `","subType":"`...), hexDigits[v.sub>>4], hexDigits[v.sub&15], '"', '}', '}')
}

// appendDate writes a date. A date with ticks is ISO text in every style, because $numberLong can't hold ticks.
func appendDate(dst []byte, v Value, s Style) []byte {
	ms := v.DateMS()
	iso := ms >= minISO && ms <= maxISO
	switch {
	case iso && s == PlainJSON:
		return append(isotime.AppendMilli(append(dst, '"'), ms, v.frac), '"')
	case iso && s == RelaxedJSON && ms >= 0 && ms%1000 == 0 && v.frac == 0: // this form has no fraction of zero
		dst = isotime.AppendMilli(append(dst, `{"$date":"`...), ms, 0)
		return append(dst[:len(dst)-len(".000Z")], `Z"}`...)
	case iso && (v.frac != 0 || s == RelaxedJSON && ms >= 0):
		return append(isotime.AppendMilli(append(dst, `{"$date":"`...), ms, v.frac), `"}`...)
	}
	return append(strconv.AppendInt(append(dst, `{"$date":{"$numberLong":"`...), ms, 10), `"}}`...)
}

// The first and last millisecond of the years 1 to 9999, for which ISO 8601 text has a year of four digits.
const (
	minISO = -62135596800000
	maxISO = 253402300799999
)

// AppendUUID appends 16 bytes as 8-4-4-4-12 lower-case hex digits.
func AppendUUID(dst, b []byte) []byte {
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// RegexParts returns the pattern and options of a Regex, nil for other kinds.
func (v Value) RegexParts() (pattern, options []byte) {
	if v.kind != Regex {
		return nil, nil
	}
	return bson.RegexParts(v.b)
}

// DBPointerParts returns the namespace and ObjectId of a DBPointer, nil for other kinds.
func (v Value) DBPointerParts() (ns, id []byte) {
	if v.kind != DBPointer {
		return nil, nil
	}
	return bson.DBPointerParts(v.b)
}

// CodeScopeParts returns the code and the scope document of a CodeScope, nil for other kinds or malformed bytes.
func (v Value) CodeScopeParts() (code, scope []byte) {
	if v.kind != CodeScope {
		return nil, nil
	}
	return bson.CodeScopeParts(v.b)
}

// RawOf returns the Regex, DBPointer or CodeScope whose raw BSON value is raw (see bson.SizeOf).
func RawOf(k Kind, raw []byte) Value { return Value{kind: k, b: raw} }

// CodeOf returns JavaScript code without a scope.
func CodeOf(text []byte) Value { return Value{kind: Code, b: text} }

// SymbolOf returns a symbol.
func SymbolOf(text []byte) Value { return Value{kind: Symbol, b: text} }

// RegexOf returns a regular expression. Neither part may contain a NUL.
func RegexOf(pattern, options string) Value {
	b := make([]byte, 0, len(pattern)+len(options)+2)
	b = append(append(b, pattern...), 0)
	return Value{kind: Regex, b: append(append(b, options...), 0)}
}

// ParseUUID reads 8-4-4-4-12 hex digits.
func ParseUUID(s []byte) ([]byte, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, false
	}
	var b [16]byte
	n := 0
	for i := 0; i < 36; i += 2 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++
		}
		if _, err := hex.Decode(b[n:n+1], s[i:i+2]); err != nil {
			return nil, false
		}
		n++
	}
	return b[:], true
}
