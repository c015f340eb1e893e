package keys

import (
	"encoding/binary"
	"strconv"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// maxDecodeDepth limits recursion over damaged bytes. Items are nested less deeply (doc.DefaultMaxDepth, or the limit
// of an API).
const maxDecodeDepth = 1000

// SkipExact returns the bytes after the exact encoding at the front of b.
func SkipExact(b []byte) (rest []byte, err error) { return skipExact(b, 0) }

func skipExact(b []byte, depth int) (rest []byte, err error) {
	if len(b) == 0 || depth > maxDecodeDepth {
		return nil, errEncoding
	}
	class := b[0]
	b = b[1:]
	switch class {
	case value.ClassNumber:
		return skipNumberExact(b)
	case value.ClassString, value.ClassRegex:
		return skipText(b)
	case value.ClassArray:
		for len(b) > 0 && b[0] != 0 {
			if b, err = skipExact(b, depth+1); err != nil {
				return nil, err
			}
		}
		return skipN(b, 1)
	case value.ClassObject:
		return skipObject(b, depth)
	case value.ClassBinary:
		if len(b) < 5 {
			return nil, errEncoding
		}
		return skipN(b, 5+int(binary.BigEndian.Uint32(b)))
	case value.ClassOther:
		if len(b) == 0 || b[0] == 0 || int(b[0]) >= len(otherKinds) {
			return nil, errEncoding
		}
		scope := otherKinds[b[0]] == value.CodeScope
		if b, err = skipText(b[1:]); err != nil || !scope {
			return b, err
		}
		return skipObject(b, depth+1)
	}
	return skipN(b, fixedSize(class))
}

func skipN(b []byte, n int) ([]byte, error) {
	if n < 0 || n > len(b) {
		return nil, errEncoding
	}
	return b[n:], nil
}

func skipText(b []byte) ([]byte, error) {
	_, rest, mark, ok := escapedText(b)
	if !ok || mark != markEnd {
		return nil, errEncoding
	}
	return rest, nil
}

func skipNumberExact(b []byte) ([]byte, error) {
	switch {
	case len(b) < 9:
		return nil, errEncoding
	case b[8] == 0:
		return b[9:], nil
	case len(b) < 18:
		return nil, errEncoding
	case b[17] == 0:
		return b[18:], nil
	}
	return skipN(b, 18+value.DecimalKeySize)
}

func skipObject(b []byte, depth int) (rest []byte, err error) {
	for len(b) > 0 && b[0] == 1 {
		_, after, ok := cString(b[1:])
		if !ok {
			return nil, errEncoding
		}
		if b, err = skipExact(after, depth+1); err != nil {
			return nil, err
		}
	}
	if len(b) == 0 || b[0] != 0 {
		return nil, errEncoding
	}
	return b[1:], nil
}

func cString(b []byte) (s, rest []byte, ok bool) {
	for i, c := range b {
		if c == 0 {
			return b[:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// DecodeExact reads the exact encoding at the front of b. The value is in the canonical kind (value.Canonical), and
// value.EqualBSON calls it equal to the value that was encoded. It points into b if the encoding contains the value's
// bytes; otherwise it has its own bytes.
func DecodeExact(b []byte) (v value.Value, rest []byte, err error) {
	if rest, err = SkipExact(b); err != nil {
		return value.Value{}, nil, err
	}
	v, ok := decode(b[0], b[1:len(b)-len(rest)])
	if !ok {
		return value.Value{}, nil, errEncoding
	}
	return v, rest, nil
}

// DecodeIndex reads an index encoding of a value whose kind k is known. ok is false when the encoding doesn't determine
// the value: the kind isn't listed here, or the bytes are not a value of the kind. The value points into b if the
// encoding contains its bytes.
func DecodeIndex(b []byte, k value.Kind) (value.Value, bool) {
	if len(b) == 0 {
		return value.Value{}, false
	}
	p := b[1:]
	switch k {
	case value.Null:
		return value.NullValue(), true
	case value.Int32, value.Int64, value.Double:
		return decodeIndexNumber(p, k)
	case value.String:
		if n := len(p) - 2; n >= 0 && p[n+1] == markEnd {
			return value.StringBytes(unescape(p[:n])), true
		}
		return value.Value{}, false
	case value.Bool, value.UUID, value.ObjectID, value.Date, value.Timestamp:
		if len(p) == fixedSize(b[0]) {
			v, ok := decode(b[0], p)
			return v, ok && v.Kind() == k
		}
	}
	return value.Value{}, false
}

func decodeIndexNumber(p []byte, k value.Kind) (value.Value, bool) {
	if len(p) < 9 || p[8] != 0 && len(p) < 17 {
		return value.Value{}, false
	}
	n := value.NumberKey{Floor: unsortable(binary.BigEndian.Uint64(p)), Exact: p[8] == 0}
	if !n.Exact {
		n.Frac = binary.BigEndian.Uint64(p[9:])
	}
	switch {
	case k == value.Double:
		return value.DoubleOf(n.Floor), n.Exact
	case !(n.Floor >= -1<<63 && n.Floor < 1<<63):
		return value.Value{}, false
	case k == value.Int64:
		return value.Int64Of(value.IntOfKey(n)), true
	}
	return value.Int32Of(int32(n.Floor)), n.Exact
}

// decode reads the payload p, whose length skipExact has checked.
func decode(class byte, p []byte) (value.Value, bool) {
	switch class {
	case value.ClassMinKey:
		return value.MinKeyValue(), true
	case value.ClassUndefined:
		return value.Undef(), true
	case value.ClassNull:
		return value.NullValue(), true
	case value.ClassMaxKey:
		return value.MaxKeyValue(), true
	case value.ClassBool:
		return value.BoolOf(p[0] != 0), true
	case value.ClassNumber:
		return decodeNumber(p)
	case value.ClassString:
		return value.StringBytes(unescape(p[:len(p)-2])), true
	case value.ClassArray:
		b, ok := decodeArray(p)
		return value.ArrayOf(b), ok
	case value.ClassObject:
		b, ok := decodeObject(p)
		return value.ObjectOf(b), ok
	case value.ClassUUID:
		return value.UUIDOf(p), true
	case value.ClassBinary:
		return value.BinaryOf(p[4], p[5:]), true
	case value.ClassObjectID:
		return value.ObjectIDOf(p), true
	case value.ClassDate:
		return value.DateOf(int64(binary.BigEndian.Uint64(p)^1<<63), binary.BigEndian.Uint16(p[8:])), true
	case value.ClassTimestamp:
		return value.TimestampOf(binary.BigEndian.Uint64(p)), true
	case value.ClassRegex:
		return decodeRaw(value.Regex, unescape(p[:len(p)-2]))
	case value.ClassOther:
		return decodeOther(otherKinds[p[0]], p[1:])
	}
	return value.Value{}, false
}

func decodeNumber(p []byte) (value.Value, bool) {
	k := value.NumberKey{Floor: unsortable(binary.BigEndian.Uint64(p)), Exact: p[8] == 0}
	if k.Exact {
		return value.Canonical(value.DoubleOf(k.Floor)), true
	}
	k.Frac = binary.BigEndian.Uint64(p[9:])
	if p[17] != 0 {
		return value.DecimalOfKey(p[18:], k.Floor < 0)
	}
	if !(k.Floor >= -1<<63 && k.Floor < 1<<63) {
		return value.Value{}, false
	}
	return value.IntOf(value.IntOfKey(k)), true
}

func unescape(text []byte) []byte {
	for i := range text {
		if text[i] != 0 {
			continue
		}
		out := append(make([]byte, 0, len(text)), text[:i]...)
		for ; i < len(text); i++ {
			if out = append(out, text[i]); text[i] == 0 {
				i++ // the FF after an escaped 00
			}
		}
		return out
	}
	return text[:len(text):len(text)]
}

// decodeElements appends the elements of an array or object as BSON. The function name reads the name of the next
// element.
func decodeElements(p []byte, name func(p []byte) (name, rest []byte)) ([]byte, bool) {
	at, out := bson.Begin(make([]byte, 0, len(p)+32))
	for p[0] != 0 {
		var key []byte
		key, p = name(p)
		rest, err := SkipExact(p)
		if err != nil {
			return nil, false
		}
		v, ok := decode(p[0], p[1:len(p)-len(rest)])
		if !ok {
			return nil, false
		}
		out = value.AppendBSON(bson.AppendHead(out, value.BSONType(v), key), v)
		p = rest
	}
	return bson.End(out, at), true
}

func decodeArray(p []byte) ([]byte, bool) {
	n := -1
	return decodeElements(p, func(p []byte) (name, rest []byte) {
		n++
		return strconv.AppendInt(nil, int64(n), 10), p
	})
}

func decodeObject(p []byte) ([]byte, bool) {
	return decodeElements(p, func(p []byte) (name, rest []byte) {
		name, rest, _ = cString(p[1:])
		return name, rest
	})
}

func decodeOther(k value.Kind, p []byte) (value.Value, bool) {
	text, rest, _, _ := escapedText(p)
	text = unescape(text)
	switch k {
	case value.Code:
		return value.CodeOf(text), true
	case value.CodeScope:
		scope, ok := decodeObject(rest)
		if !ok {
			return value.Value{}, false
		}
		return value.RawOf(k, bson.AppendCodeScopeValue(nil, text, scope)), true
	}
	return decodeRaw(k, text)
}

// decodeRaw makes a value of a kind that is kept as BSON bytes.
func decodeRaw(k value.Kind, raw []byte) (value.Value, bool) {
	v := value.RawOf(k, raw)
	return v, bson.SizeOf(value.BSONType(v), raw) == len(raw)
}
