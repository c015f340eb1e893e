// Package graphson reads and writes GraphSON, the JSON form of Gremlin values: versions 2 and 3 with and without types,
// and version 1 without types. The service replies with the latter for the mime type of version 2.
//
// A typed value is {"@type": tag, "@value": ..}. Source: Apache TinkerPop's IO documentation (graphson) and
// docs/compat/gremlin.md.
package graphson

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

var (
	errTooDeep = errors.New("the result is nested too deeply to be sent")
	errTooMany = errors.New("a bag in the result has too many values to be sent")
)

// maxExpand limits the number of values that are written for a bag in formats without counts.
const maxExpand = 1 << 20

// writer appends values and keeps the first error. After an error the bytes are useless.
type writer struct {
	b       []byte
	version int
	typed   bool
	tokens  bool // elements without properties
	depth   int
	err     error
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

// open begins a typed value and close ends it. Without types both do nothing.
//
//go:noinline // called from many places, see decision 41
func (w *writer) open(tag string) {
	if w.typed {
		w.raw(`{"@type":"`)
		w.raw(tag)
		w.raw(`","@value":`)
	}
}

func (w *writer) close() {
	if w.typed {
		w.b = append(w.b, '}')
	}
}

// open3 and close3 are for types that exist only in version 3.
func (w *writer) open3(tag string) {
	if w.version == 3 {
		w.open(tag)
	}
}

func (w *writer) close3() {
	if w.version == 3 {
		w.close()
	}
}

// value appends any value.
func (w *writer) value(v any) {
	switch x := v.(type) {
	case nil:
		w.raw("null")
	case string:
		w.string(x)
	case bool:
		w.b = strconv.AppendBool(w.b, x)
	case int32:
		w.integer("g:Int32", int64(x))
	case int64:
		w.integer("g:Int64", x)
	case float64:
		w.float("g:Double", v, x-x == 0)
	case float32:
		w.float("g:Float", v, x-x == 0)
	case int16:
		w.integer("gx:Int16", int64(x))
	case int8:
		w.integer("gx:Byte", int64(x))
	case *big.Int:
		w.open("gx:BigInteger")
		w.b = x.Append(w.b, 10)
		w.close()
	case *gvalue.BigDecimal:
		w.open("gx:BigDecimal")
		w.raw(x.String())
		w.close()
	case gvalue.UUID:
		w.tagged("g:UUID", x.String())
	case gvalue.Class:
		w.tagged("g:Class", string(x))
	case gvalue.Char:
		w.tagged("gx:Char", string(rune(x)))
	case []byte:
		w.open("gx:ByteBuffer")
		w.b = append(w.b, '"')
		w.b = base64.StdEncoding.AppendEncode(w.b, x)
		w.b = append(w.b, '"')
		w.close()
	case gvalue.Enum:
		if w.typed {
			w.open("g:" + x.EnumType())
		}
		w.string(x.EnumName())
		w.close()
	default:
		w.nested(v)
	}
}

// scalar appends the value of a Scalar.
func (w *writer) scalar(s *gvalue.Scalar) {
	if s.IsText {
		w.string(s.Text)
	} else {
		w.value(s.Other)
	}
}

func (w *writer) integer(tag string, n int64) {
	w.open(tag)
	w.b = strconv.AppendInt(w.b, n, 10)
	w.close()
}

// float appends a number. A value that JSON numbers can't express becomes a string.
func (w *writer) float(tag string, v any, finite bool) {
	w.open(tag)
	if !finite {
		w.b = append(w.b, '"')
	}
	w.b = gvalue.AppendValueText(w.b, v)
	if !finite {
		w.b = append(w.b, '"')
	}
	w.close()
}

func (w *writer) tagged(tag, s string) {
	w.open(tag)
	w.string(s)
	w.close()
}

// string appends a JSON string. Bytes that aren't UTF-8 become U+FFFD.
func (w *writer) string(s string) {
	if !json.IsPlain(s) {
		w.b = json.AppendString(w.b, s)
		return
	}
	w.b = append(w.b, '"') // in w.b itself, so that no pointer is written unless it grows
	w.b = append(w.b, s...)
	w.b = append(w.b, '"')
}

// nested appends types that contain other values, and rare scalars.
func (w *writer) nested(v any) {
	if w.depth++; w.depth > message.MaxDepth {
		w.err = errTooDeep
		w.raw("null")
		return
	}
	if !w.element(v) && !w.collection(v) && !w.calendar(v) && !w.language(v) && w.err == nil {
		w.err = fmt.Errorf("a value of type %T can't be sent in GraphSON", v)
	}
	w.depth--
}

// calendar appends dates and times as text. Date and Timestamp are milliseconds, except in version 1.
func (w *writer) calendar(v any) bool {
	switch x := v.(type) {
	case gvalue.Date:
		if w.version > 1 {
			w.integer("g:Date", int64(x))
			return true
		}
	case gvalue.Timestamp:
		if w.version > 1 {
			w.integer("g:Timestamp", int64(x))
			return true
		}
	}
	s, ok := gvalue.TimeText(v)
	if !ok {
		return false
	}
	tag := ""
	if w.typed {
		tag = calendarTag(v)
	}
	w.tagged(tag, s)
	return true
}

func calendarTag(v any) string {
	switch v.(type) {
	case gvalue.OffsetDateTime:
		return "gx:OffsetDateTime"
	case gvalue.ZonedDateTime:
		return "gx:ZonedDateTime"
	case gvalue.Instant:
		return "gx:Instant"
	case gvalue.Duration:
		return "gx:Duration"
	case gvalue.LocalDate:
		return "gx:LocalDate"
	case gvalue.LocalTime:
		return "gx:LocalTime"
	case gvalue.LocalDateTime:
		return "gx:LocalDateTime"
	case gvalue.MonthDay:
		return "gx:MonthDay"
	case gvalue.ZoneOffset:
		return "gx:ZoneOffset"
	case gvalue.OffsetTime:
		return "gx:OffsetTime"
	case gvalue.Period:
		return "gx:Period"
	case gvalue.Year:
		return "gx:Year"
	case gvalue.YearMonth:
		return "gx:YearMonth"
	}
	return "gx:InetAddress"
}
