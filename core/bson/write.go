package bson

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Every writing function takes the bytes so far and returns them longer. Nothing is buffered or reflected, so a
// document is made in one pass into one slice. Names must not contain a NUL.

// Begin opens a document or an array and returns where it began, for End.
func Begin(dst []byte) (int, []byte) { return len(dst), append(dst, 0, 0, 0, 0) }

// End closes the document or array that began at.
//
//go:noinline // called from many places, see decision 41
func End(dst []byte, at int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// AppendHead appends an element's type and name.
func AppendHead[N ~string | ~[]byte](dst []byte, typ byte, name N) []byte {
	dst = append(dst, typ)
	dst = append(dst, name...)
	return append(dst, 0)
}

// AppendIndexHead appends the type and name of element n of an array.
func AppendIndexHead(dst []byte, typ byte, n int) []byte {
	if n < 10 {
		return append(dst, typ, byte('0'+n), 0)
	}
	if n < 100 {
		return append(dst, typ, byte('0'+n/10), byte('0'+n%10), 0)
	}
	return append(strconv.AppendInt(append(dst, typ), int64(n), 10), 0)
}

// BeginObject opens an embedded document.
//
//go:noinline // called from many places, see decision 41
func BeginObject(dst []byte, key string) (int, []byte) {
	return Begin(AppendHead(dst, TypeDocument, key))
}

// BeginArray opens an array.
//
//go:noinline // called from many places, see decision 41
func BeginArray(dst []byte, key string) (int, []byte) { return Begin(AppendHead(dst, TypeArray, key)) }

// AppendInt32 appends an int32.
//
//go:noinline // called from many places, see decision 41
func AppendInt32(dst []byte, key string, i int32) []byte {
	return binary.LittleEndian.AppendUint32(AppendHead(dst, TypeInt32, key), uint32(i))
}

// AppendInt64 appends an int64.
//
//go:noinline // called from many places, see decision 41
func AppendInt64(dst []byte, key string, i int64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHead(dst, TypeInt64, key), uint64(i))
}

// AppendDouble appends a double.
//
//go:noinline // called from many places, see decision 41
func AppendDouble(dst []byte, key string, f float64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHead(dst, TypeDouble, key), math.Float64bits(f))
}

// AppendBool appends a boolean.
//
//go:noinline // called from many places, see decision 41
func AppendBool(dst []byte, key string, b bool) []byte {
	dst = AppendHead(dst, TypeBool, key)
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendString appends a string.
//
//go:noinline // called from many places, see decision 41
func AppendString(dst []byte, key, s string) []byte {
	return AppendStringValue(AppendHead(dst, TypeString, key), s)
}

// AppendDate appends a date in milliseconds since 1970.
//
//go:noinline // called from many places, see decision 41
func AppendDate(dst []byte, key string, ms int64) []byte {
	return binary.LittleEndian.AppendUint64(AppendHead(dst, TypeDate, key), uint64(ms))
}

// AppendNull appends a null.
func AppendNull(dst []byte, key string) []byte { return AppendHead(dst, TypeNull, key) }

// AppendBinary appends a binary of subtype 0.
//
//go:noinline // called from many places, see decision 41
func AppendBinary(dst []byte, key string, b []byte) []byte {
	return AppendBinaryValue(AppendHead(dst, TypeBinary, key), 0, b)
}

// AppendDocument appends an embedded document given as BSON.
//
//go:noinline // called from many places, see decision 41
func AppendDocument(dst []byte, key string, doc []byte) []byte {
	return append(AppendHead(dst, TypeDocument, key), doc...)
}

// AppendStrings appends an array of strings.
func AppendStrings(dst []byte, key string, ss ...string) []byte {
	at, dst := BeginArray(dst, key)
	for i, s := range ss {
		dst = AppendStringValue(AppendIndexHead(dst, TypeString, i), s)
	}
	return End(dst, at)
}

// The functions whose names end in Value append a value alone, without type and name.

// AppendStringValue appends a string, or code, or a symbol.
func AppendStringValue[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)+1))
	return append(append(dst, s...), 0)
}

// AppendBinaryValue appends a binary.
func AppendBinaryValue(dst []byte, subtype byte, b []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	return append(append(dst, subtype), b...)
}

// AppendCodeScopeValue appends code with a scope, a document.
func AppendCodeScopeValue(dst, code, scope []byte) []byte {
	at, dst := Begin(dst)
	dst = append(AppendStringValue(dst, code), scope...)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// AppendDBPointerValue appends a DBPointer; id has 12 bytes.
func AppendDBPointerValue(dst, ns, id []byte) []byte {
	return append(AppendStringValue(dst, ns), id...)
}
