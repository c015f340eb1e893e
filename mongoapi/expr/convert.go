package expr

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/orrerydb/orrery/core/isotime"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

var convertOps = map[string]operator{
	"$convert": {special: convertOp},
	"$isNumber": unary(func(v value.Value) (value.Value, error) {
		return value.BoolOf(v.IsNumber()), nil
	}),
	"$toBool":     converter("bool"),
	"$toDate":     converter("date"),
	"$toDecimal":  converter("decimal"),
	"$toDouble":   converter("double"),
	"$toInt":      converter("int"),
	"$toLong":     converter("long"),
	"$toObjectId": converter("objectId"),
	"$toString":   converter("string"),

	"$toHashedIndexKey": unary(func(v value.Value) (value.Value, error) { return value.Int64Of(hashedKey(v)), nil }),

	"$type": unary(func(v value.Value) (value.Value, error) { return value.StringOf(TypeName(v)), nil }),
}

//go:noinline // see named
func converter(to string) operator {
	return nullUnary(func(v value.Value) (value.Value, error) { return convert(v, to) })
}

func convertOp(name string, arg value.Value, s *Scope, depth int) (Expr, error) {
	fs, err := namedArgs(name, arg, []string{"input", "to"}, []string{"onError", "onNull", "format"})
	if err != nil {
		return nil, err
	}
	if _, ok := fs["format"]; ok {
		return nil, merr.NotSupported("the format of $convert")
	}
	xs := map[string]Expr{}
	for k, v := range fs {
		if xs[k], err = compile(v, s, depth); err != nil {
			return nil, err
		}
	}
	return func(e *Env) (value.Value, error) {
		to, err := xs["to"](e)
		if err != nil {
			return to, err
		}
		target, err := convertTarget(to)
		if err != nil {
			return to, err
		}
		in, err := xs["input"](e)
		if err != nil {
			return in, err
		}
		if nullish(in) {
			if x := xs["onNull"]; x != nil {
				return x(e)
			}
			return value.NullValue(), nil
		}
		if target == "" {
			return value.NullValue(), nil
		}
		v, err := convert(in, target)
		if x := xs["onError"]; err != nil && x != nil {
			return x(e)
		}
		return v, err
	}, nil
}

func convertTarget(to value.Value) (string, error) {
	switch {
	case nullish(to):
		return "", nil
	case to.Kind() == value.String:
		if _, ok := TypeByName(to.Str()); !ok && to.Str() != "missing" {
			return "", merr.New(merr.BadValue, "Unknown type name: %s", to.Str())
		}
		return to.Str(), nil
	case to.IsNumber():
		n, ok := num.ToInt64(to, false)
		if name, known := typeNames[byte(n)]; ok && known && n == int64(int8(n)) {
			return name, nil
		}
		return "", merr.New(merr.FailedToParse,
			"In $convert, numeric value for 'to' does not correspond to a BSON type")
	}
	return "", merr.New(merr.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s",
		TypeName(to))
}

func unsupported(v value.Value, to string) error {
	return merr.New(merr.ConversionFailure, "Unsupported conversion from %s to %s in $convert with no onError value",
		TypeName(v), to)
}

func convert(v value.Value, to string) (value.Value, error) {
	if TypeName(v) == to {
		return v, nil
	}
	switch to {
	case "bool":
		return value.BoolOf(Truthy(v)), nil
	case "string":
		s, err := toText(v)
		return value.StringOf(s), err
	case "int", "long":
		return toInteger(v, to)
	case "double":
		return toDouble(v)
	case "decimal":
		return toDecimal(v)
	case "date":
		return toDate(v)
	case "objectId":
		if v.Kind() == value.String {
			b, err := hex.DecodeString(v.Str())
			if err != nil || len(b) != 12 {
				return v, merr.New(merr.ConversionFailure, "Failed to parse objectId '%s' in $convert with no "+
					"onError value", v.Str())
			}
			return value.ObjectIDOf(b), nil
		}
	}
	return v, unsupported(v, to)
}

func failedNumber(s string) error {
	return merr.New(merr.ConversionFailure, "Failed to parse number '%s' in $convert with no onError value", s)
}

func toInteger(v value.Value, to string) (value.Value, error) {
	var n int64
	switch v.Kind() {
	case value.Bool:
		if v.Bool() {
			n = 1
		}
	case value.String:
		var err error
		if n, err = strconv.ParseInt(v.Str(), 10, 64); err != nil {
			return v, failedNumber(v.Str())
		}
	case value.Date:
		if to == "int" {
			return v, unsupported(v, to)
		}
		n = v.DateMS()
	case value.Int32, value.Int64, value.Double, value.Decimal:
		var ok bool
		if n, ok = num.ToInt64(v, true); !ok {
			return v, merr.New(merr.ConversionFailure, "Conversion would overflow target type in $convert with no "+
				"onError value: %v", num.ToFloat(v))
		}
	default:
		return v, unsupported(v, to)
	}
	if to == "long" {
		return value.Int64Of(n), nil
	}
	if n != int64(int32(n)) {
		return v, merr.New(merr.ConversionFailure, "Conversion would overflow target type in $convert with no "+
			"onError value: %d", n)
	}
	return value.Int32Of(int32(n)), nil
}

func toDouble(v value.Value) (value.Value, error) {
	switch v.Kind() {
	case value.Bool:
		if v.Bool() {
			return value.DoubleOf(1), nil
		}
		return value.DoubleOf(0), nil
	case value.Int32, value.Int64:
		return value.DoubleOf(num.ToFloat(v)), nil
	case value.Decimal:
		f := num.ToFloat(v)
		if math.IsInf(f, 0) && !num.IsInf(v) {
			return v, merr.New(merr.ConversionFailure, "Conversion would overflow target type in $convert with no "+
				"onError value: %s", value.DecimalText(v))
		}
		return value.DoubleOf(f), nil
	case value.Date:
		return value.DoubleOf(float64(v.DateMS())), nil
	case value.String:
		f, err := strconv.ParseFloat(v.Str(), 64)
		if err != nil || strings.ContainsAny(v.Str(), "xX_") {
			return v, failedNumber(v.Str())
		}
		return value.DoubleOf(f), nil
	}
	return v, unsupported(v, "double")
}

func toDecimal(v value.Value) (value.Value, error) {
	switch v.Kind() {
	case value.Bool:
		if v.Bool() {
			return num.ToDecimal(value.Int32Of(1)), nil
		}
		return num.ToDecimal(value.Int32Of(0)), nil
	case value.Int32, value.Int64, value.Double:
		return num.ToDecimal(v), nil
	case value.Date:
		return num.ToDecimal(value.Int64Of(v.DateMS())), nil
	case value.String:
		if d, ok := value.ParseDecimal(v.Str()); ok {
			return d, nil
		}
		return v, failedNumber(v.Str())
	}
	return v, unsupported(v, "decimal")
}

func toDate(v value.Value) (value.Value, error) {
	switch v.Kind() {
	case value.Int64, value.Double, value.Decimal:
		n, ok := num.ToInt64(v, true)
		if !ok {
			return v, merr.New(merr.ConversionFailure, "Conversion would overflow target type in $convert with no "+
				"onError value: %v", num.ToFloat(v))
		}
		return value.DateOf(n, 0), nil
	case value.String:
		ms, err := parseDate(v.Str(), nil)
		return value.DateOf(ms, 0), err
	case value.ObjectID:
		return value.DateOf(int64(be32(v.Bytes()))*1000, 0), nil
	case value.Timestamp:
		return value.DateOf(int64(v.Raw64()>>32)*1000, 0), nil
	}
	return v, unsupported(v, "date")
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// toText converts a value by the rules of $toString.
func toText(v value.Value) (string, error) {
	switch v.Kind() {
	case value.String, value.Symbol, value.Code:
		return v.Str(), nil
	case value.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case value.Int32, value.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case value.Double:
		return doubleText(v.Float()), nil
	case value.Decimal:
		return value.DecimalText(v), nil
	case value.ObjectID:
		return hex.EncodeToString(v.Bytes()), nil
	case value.Date:
		return string(isotime.AppendMilli(nil, v.DateMS(), 0)), nil
	case value.Timestamp:
		return time.Unix(int64(v.Raw64()>>32), 0).UTC().Format("Jan _2 15:04:05") + ":" +
			strconv.Itoa(int(uint32(v.Raw64()))), nil
	case value.UUID:
		return string(value.AppendUUID(nil, v.Bytes())), nil
	case value.Binary:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	}
	return "", unsupported(v, "string")
}

func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', 16, 64) // MongoDB's "%.16g"
}
