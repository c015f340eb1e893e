package graph

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// setScalar sets s to a stored value, converted as FromValue does.
func setScalar(s *gvalue.Scalar, v value.Value) {
	if v.Kind() != value.String {
		*s = gvalue.Scalar{Other: FromValue(v)}
		return
	}
	s.IsText, s.Text = true, view(v.Bytes())
	if s.Other != nil {
		s.Other = nil
	}
}

// FromValue converts a stored value to a value of a traversal. Its strings share bytes of the document.
func FromValue(v value.Value) any {
	switch v.Kind() {
	case value.Undefined, value.Null:
		return nil
	case value.Bool:
		return v.Bool()
	case value.Int32:
		return int32(v.Int())
	case value.Int64:
		return v.Int()
	case value.Double:
		return v.Float()
	case value.String, value.Symbol, value.Code:
		return view(v.Bytes())
	case value.Date:
		if v.Ticks() != 0 {
			return gvalue.OffsetDateTime{Time: time.UnixMilli(v.DateMS()).Add(time.Duration(v.Ticks()) * 100).UTC()}
		}
		return gvalue.Date(v.DateMS())
	case value.UUID:
		return gvalue.UUID(v.Bytes())
	case value.Decimal:
		if d, ok := gvalue.ParseBigDecimal(value.DecimalText(v)); ok {
			return d
		}
		f, err := strconv.ParseFloat(value.DecimalText(v), 64) // NaN and the infinities
		if err != nil {
			return value.DecimalText(v)
		}
		return f
	case value.Array:
		l := []any{}
		for it := v.Iter(); it.Next(); {
			l = append(l, FromValue(it.Value()))
		}
		return l
	case value.Object:
		m := &gvalue.Map{}
		for it := v.Iter(); it.Next(); {
			m.Put(string(it.Key()), FromValue(it.Value()))
		}
		return m
	case value.Binary:
		var s string
		if b := doc.AppendJSON(nil, v); len(b) >= 2 {
			s = string(b[1 : len(b)-1])
		}
		return s
	}
	return string(doc.AppendExtJSON(nil, v, false))
}

// maxStoredDepth limits the nesting of lists and maps that are stored as a property.
const maxStoredDepth = 60

// ToValue returns the stored form of a property value, or an error that says why there is none.
func ToValue(v any) (value.Value, error) { return toValue(v, 0) }

func toValue(v any, depth int) (value.Value, error) {
	if depth > maxStoredDepth {
		//lint:ignore ST1005 a sentence that the client is shown
		return value.Value{}, fmt.Errorf("The property value is nested too deeply")
	}
	switch x := v.(type) {
	case nil:
		return value.NullValue(), nil
	case string:
		return value.StringOf(x), nil
	case bool:
		return value.BoolOf(x), nil
	case int32:
		return value.Int32Of(x), nil
	case int64:
		return value.Int64Of(x), nil
	case float64:
		return value.DoubleOf(x), nil
	case float32:
		return value.DoubleOf(float64(x)), nil
	case int8:
		return value.Int32Of(int32(x)), nil
	case int16:
		return value.Int32Of(int32(x)), nil
	case gvalue.Char:
		return value.StringOf(string(rune(x))), nil
	case gvalue.UUID:
		return value.UUIDOf(append([]byte(nil), x[:]...)), nil
	case gvalue.Date, gvalue.Timestamp, gvalue.OffsetDateTime, gvalue.ZonedDateTime, gvalue.Instant:
		t := gvalue.TimeOf(x)
		return value.DateOf(t.UnixMilli(), uint16(t.Nanosecond()%1e6/100)), nil
	case *big.Int:
		if x.IsInt64() {
			return value.Int64Of(x.Int64()), nil
		}
		return decimalValue(x.String())
	case *gvalue.BigDecimal:
		return decimalValue(x.String())
	case []any, *gvalue.Set, *gvalue.Map:
		return toContainer(v, depth)
	}
	return value.Value{}, fmt.Errorf("Property value [%s] is of a type that is not supported", gvalue.Text(v))
}

func decimalValue(s string) (value.Value, error) {
	if v, ok := value.ParseDecimal(s); ok {
		return v, nil
	}
	//lint:ignore ST1005 a sentence that the client is shown
	return value.Value{}, fmt.Errorf("The number %.40s does not fit a stored decimal", s)
}

func toContainer(v any, depth int) (value.Value, error) {
	at, b := bson.Begin(nil)
	if m, ok := v.(*gvalue.Map); ok {
		for _, e := range m.Entries() {
			k, ok := e.Key.(string)
			if !ok || !ValidKey(k) {
				//lint:ignore ST1005 a sentence that the client is shown
				return value.Value{}, fmt.Errorf("The keys of a map that is stored as a property must be strings")
			}
			ev, err := toValue(e.Value, depth+1)
			if err != nil {
				return value.Value{}, err
			}
			b = doc.AppendElement(b, k, ev)
		}
		return value.ObjectOf(bson.End(b, at)), nil
	}
	list, ok := v.([]any)
	if !ok {
		list = v.(*gvalue.Set).Items()
	}
	for i, e := range list {
		ev, err := toValue(e, depth+1)
		if err != nil {
			return value.Value{}, err
		}
		b = value.AppendElement(b, strconv.Itoa(i), ev)
	}
	return value.ArrayOf(bson.End(b, at)), nil
}

// SameKey reports whether two partition key values are equal.
func SameKey(a, b value.Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return value.CompareNumbers(a, b) == 0
	}
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case value.Bool:
		return a.Bool() == b.Bool()
	case value.Undefined, value.Null:
		return true
	case value.Date:
		return a.DateMS() == b.DateMS() && a.Ticks() == b.Ticks()
	}
	return string(a.Bytes()) == string(b.Bytes())
}
