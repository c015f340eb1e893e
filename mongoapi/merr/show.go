package merr

import (
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/value"
)

// Show prints a value for an error message like the server: in shell notation, and truncated if it is long.
func Show(v value.Value) string {
	b := appendShow(nil, v, 0, shownOfError+88)
	if len(b) > shownOfError {
		b = append(b[:shownOfError], "..."...)
	}
	return string(b)
}

// shownOfError is the longest text of a value in an error.
const shownOfError = 512

// ShowShort prints a document like Show, as a text of at most so many bytes.
func ShowShort(v value.Value, most int) string {
	b := appendShow(nil, v, 0, most)
	if len(b) <= most {
		return string(b)
	}
	for b = b[:most-3]; len(b) > 0 && !utf8.Valid(b); {
		b = b[:len(b)-1]
	}
	return string(b) + "..."
}

// appendShow stops when the text has become longer than most.
func appendShow(b []byte, v value.Value, depth, most int) []byte {
	if depth > 20 || len(b) > most {
		return add(b, "...")
	}
	switch v.Kind() {
	case value.Undefined, value.Null:
		return add(b, "null")
	case value.Bool:
		return strconv.AppendBool(b, v.Bool())
	case value.Int32, value.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case value.Double:
		s := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if v.Float() == float64(int64(v.Float())) && len(s) < 16 {
			s = strconv.FormatFloat(v.Float(), 'f', 1, 64)
		}
		return add(b, s)
	case value.Decimal:
		return add(add(add(b, `NumberDecimal("`), value.DecimalText(v)), `")`)
	case value.String, value.Symbol:
		return add(add(add(b, `"`), string(v.Bytes())), `"`)
	case value.ObjectID:
		return add(add(add(b, "ObjectId('"), hex.EncodeToString(v.Bytes())), "')")
	case value.UUID:
		h := hex.EncodeToString(v.Bytes())
		return add(add(add(b, `UUID("`), h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:]), `")`)
	case value.Binary:
		b = add(add(b, "BinData("), strconv.Itoa(int(v.Subtype())))
		return add(add(add(b, ", "), hex.EncodeToString(v.Bytes())), ")")
	case value.Date:
		return add(add(add(b, "new Date("), strconv.FormatInt(v.DateMS(), 10)), ")")
	case value.Timestamp:
		t := time.Unix(int64(v.Raw64()>>32), 0).Unix()
		b = add(add(add(b, "Timestamp("), strconv.FormatInt(t, 10)), ", ")
		return add(add(b, strconv.Itoa(int(uint32(v.Raw64())))), ")")
	case value.Array:
		b = add(b, "[ ")
		for i, it := 0, v.Iter(); it.Next(); i++ {
			if i > 0 {
				b = add(b, ", ")
			}
			b = appendShow(b, it.Value(), depth+1, most)
		}
		return add(b, " ]")
	case value.Object:
		b = add(b, "{ ")
		for i, it := 0, v.Iter(); it.Next(); i++ {
			if i > 0 {
				b = add(b, ", ")
			}
			b = add(add(b, string(it.Key())), ": ")
			b = appendShow(b, it.Value(), depth+1, most)
		}
		return add(b, " }")
	case value.MinKey:
		return add(b, "MinKey")
	case value.MaxKey:
		return add(b, "MaxKey")
	}
	return add(b, "?")
}

//go:noinline // called from many places, see decision 41
func add(b []byte, s string) []byte { return append(b, s...) }
