package gvalue

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
)

// Equal reports whether two values are equal: numbers of all types by value, elements by id (a vertex never equals an
// edge), lists in order, sets and maps in any order. NaN equals itself, so that it can be a key.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case int32:
		if y, ok := b.(int32); ok {
			return x == y
		}
	case T:
		y, ok := b.(T)
		return ok && x == y
	case UUID:
		y, ok := b.(UUID)
		return ok && x == y
	}
	return string(AppendKey(nil, a)) == string(AppendKey(nil, b))
}

// Class bytes of AppendKey, one for each family of values that can be equal.
const (
	keyNull byte = iota + 1
	keyFalse
	keyTrue
	keyInt
	keyDouble
	keyDecimal
	keyString
	keyChar
	keyUUID
	keyTime
	keyBytes
	keyList
	keySet
	keyMap
	keyVertex
	keyEdge
	keyVertexProperty
	keyProperty
	keyPath
	keyEnum
	keyOther
)

// AppendKey appends bytes that are equal exactly when two values are Equal. They have no order, and are never sent or
// stored.
//
//	int32 1, int64 1, 1.0, BigDecimal 1.00  ->  the same bytes
//	"1"                                     ->  other bytes
func AppendKey(dst []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(dst, keyNull)
	case bool:
		if x {
			return append(dst, keyTrue)
		}
		return append(dst, keyFalse)
	case int8:
		return appendInt(dst, int64(x))
	case int16:
		return appendInt(dst, int64(x))
	case int32:
		return appendInt(dst, int64(x))
	case int64:
		return appendInt(dst, x)
	case float32:
		return appendDouble(dst, float64(x))
	case float64:
		return appendDouble(dst, x)
	case *big.Int:
		return appendBig(dst, x, 0)
	case *BigDecimal:
		return appendBig(dst, x.Unscaled, x.Scale)
	case string:
		return appendText(append(dst, keyString), x)
	case Char:
		return binary.BigEndian.AppendUint32(append(dst, keyChar), uint32(x))
	case UUID:
		return append(append(dst, keyUUID), x[:]...)
	case Date:
		return appendInstant(dst, x.Time().Unix(), x.Time().Nanosecond())
	case Timestamp:
		return appendInstant(dst, Date(x).Time().Unix(), Date(x).Time().Nanosecond())
	case OffsetDateTime:
		return appendInstant(dst, x.Unix(), x.Nanosecond())
	case ZonedDateTime:
		return appendInstant(dst, x.Unix(), x.Nanosecond())
	case Instant:
		return appendInstant(dst, x.Seconds, int(x.Nanos))
	case []byte:
		return appendText(append(dst, keyBytes), string(x))
	case Enum:
		return appendText(appendText(append(dst, keyEnum), x.EnumType()), x.EnumName())
	}
	return appendCompositeKey(dst, v)
}

// appendCompositeKey is AppendKey for collections, elements and rare scalars.
func appendCompositeKey(dst []byte, v any) []byte {
	switch x := v.(type) {
	case []any:
		dst = binary.AppendUvarint(append(dst, keyList), uint64(len(x)))
		for _, e := range x {
			dst = AppendKey(dst, e)
		}
		return dst
	case *Set:
		return appendUnordered(dst, keySet, x.Len(), func(i int, b []byte) []byte { return AppendKey(b, x.items[i]) })
	case *Map:
		return appendUnordered(dst, keyMap, x.Len(), func(i int, b []byte) []byte {
			return AppendKey(AppendKey(b, x.entries[i].Key), x.entries[i].Value)
		})
	case *BulkSet:
		return appendUnordered(dst, keyList, x.Len(), func(i int, b []byte) []byte {
			return appendInt(AppendKey(b, x.items[i].Value), x.items[i].Bulk)
		})
	case *Vertex:
		return AppendKey(append(dst, keyVertex), x.ID)
	case *Edge:
		return AppendKey(append(dst, keyEdge), x.ID)
	case *VertexProperty:
		dst = AppendKey(appendText(append(dst, keyVertexProperty), x.Label), x.ID)
		return AppendKey(dst, x.Value)
	case *Property:
		return AppendKey(appendText(append(dst, keyProperty), x.Key), x.Value)
	case *Path:
		dst = binary.AppendUvarint(append(dst, keyPath), uint64(len(x.Objects)))
		for _, e := range x.Objects {
			dst = AppendKey(dst, e)
		}
		return dst
	case *Tree:
		return appendUnordered(dst, keyOther, len(x.Entries), func(i int, b []byte) []byte {
			return appendCompositeKey(AppendKey(b, x.Entries[i].Key), x.Entries[i].Child)
		})
	}
	return appendText(append(dst, keyOther), Text(v))
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendInt(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyInt), uint64(n))
}

// appendDouble appends a double. A whole one that fits an int64 has the bytes of that integer.
func appendDouble(dst []byte, f float64) []byte {
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return appendInt(dst, int64(f))
	}
	if f != f {
		f = math.NaN()
	}
	return binary.BigEndian.AppendUint64(append(dst, keyDouble), math.Float64bits(f))
}

// appendBig appends a decimal in its shortest form. If it equals an int64 or a double, it has the bytes of that number.
func appendBig(dst []byte, u *big.Int, scale int32) []byte {
	if u == nil || u.Sign() == 0 {
		return appendInt(dst, 0)
	}
	if scale == 0 && u.IsInt64() {
		return appendInt(dst, u.Int64())
	}
	if f, exact := exactDouble(u, scale); exact {
		return appendDouble(dst, f)
	}
	n, ten, rem := new(big.Int).Set(u), big.NewInt(10), new(big.Int)
	for q := new(big.Int); ; {
		q.QuoRem(n, ten, rem)
		if rem.Sign() != 0 || scale == math.MinInt32 {
			break
		}
		n.Set(q)
		scale--
	}
	return appendText(append(dst, keyDecimal), n.String()+"E"+strconv.FormatInt(-int64(scale), 10))
}

// exactDouble converts u * 10^-scale to a double. ok is false if that isn't exact.
func exactDouble(u *big.Int, scale int32) (float64, bool) {
	if scale > maxPlainScale || scale < -maxPlainScale || u.BitLen() > 4096 {
		return 0, false
	}
	r := new(big.Rat).SetInt(u)
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale > 0 {
		r.SetFrac(u, p)
	} else {
		r.SetInt(new(big.Int).Mul(u, p))
	}
	return r.Float64()
}

func appendInstant(dst []byte, sec int64, nano int) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(append(dst, keyTime), uint64(sec)), uint32(nano))
}

// appendUnordered appends n parts so that the result doesn't depend on their order.
func appendUnordered(dst []byte, class byte, n int, part func(i int, b []byte) []byte) []byte {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = string(part(i, nil))
	}
	sortStrings(parts)
	dst = binary.AppendUvarint(append(dst, class), uint64(n))
	for _, p := range parts {
		dst = appendText(dst, p)
	}
	return dst
}
