package merr

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core/value"
)

// Show prints a value for an error message like the server: in shell notation, and truncated if it is long.
func Show(v value.Value) string {
	b := appendShow(nil, v, 0)
	if len(b) > 512 {
		b = append(b[:512], "..."...)
	}
	return string(b)
}

func appendShow(b []byte, v value.Value, depth int) []byte {
	if depth > 20 || len(b) > 600 {
		return append(b, "..."...)
	}
	switch v.Kind() {
	case value.Undefined, value.Null:
		return append(b, "null"...)
	case value.Bool:
		return strconv.AppendBool(b, v.Bool())
	case value.Int32, value.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case value.Double:
		s := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if v.Float() == float64(int64(v.Float())) && len(s) < 16 {
			s = strconv.FormatFloat(v.Float(), 'f', 1, 64)
		}
		return append(b, s...)
	case value.Decimal:
		return append(append(append(b, `NumberDecimal("`...), value.DecimalText(v)...), `")`...)
	case value.String, value.Symbol:
		return append(append(append(b, '"'), v.Bytes()...), '"')
	case value.ObjectID:
		return append(append(append(b, "ObjectId('"...), hex.EncodeToString(v.Bytes())...), "')"...)
	case value.UUID:
		h := hex.EncodeToString(v.Bytes())
		return append(append(append(b, `UUID("`...), h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:]...),
			`")`...)
	case value.Binary:
		b = append(append(b, "BinData("...), strconv.Itoa(int(v.Subtype()))...)
		return append(append(append(b, ", "...), hex.EncodeToString(v.Bytes())...), ')')
	case value.Date:
		return append(append(append(b, "new Date("...), strconv.FormatInt(v.DateMS(), 10)...), ')')
	case value.Timestamp:
		t := time.Unix(int64(v.Raw64()>>32), 0).Unix()
		return append(append(append(append(append(b, "Timestamp("...), strconv.FormatInt(t, 10)...), ", "...),
			strconv.Itoa(int(uint32(v.Raw64())))...), ')')
	case value.Array:
		b = append(b, "[ "...)
		for i, it := 0, v.Iter(); it.Next(); i++ {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendShow(b, it.Value(), depth+1)
		}
		return append(b, " ]"...)
	case value.Object:
		b = append(b, "{ "...)
		for i, it := 0, v.Iter(); it.Next(); i++ {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(append(b, it.Key()...), ": "...)
			b = appendShow(b, it.Value(), depth+1)
		}
		return append(b, " }"...)
	case value.MinKey:
		return append(b, "MinKey"...)
	case value.MaxKey:
		return append(b, "MaxKey"...)
	}
	return append(b, "?"...)
}
