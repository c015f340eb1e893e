package graphbinary

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// maxBigBytes limits big integers: 4096 bits are more than clients need, and arithmetic stays cheap.
const maxBigBytes = 512

// maxKeyDepth limits the nesting of collections in map keys and sets, whose members must be compared as a whole.
const maxKeyDepth = 8

// reader reads values from untrusted bytes. After the first error all reads return zero values, so only loops must
// check err. A length is only used after checking that the bytes exist.
type reader struct {
	b        []byte
	off      int
	err      error
	depth    int
	keyDepth int
	values   int // read so far
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("GraphBinary, byte %d: "+format, append([]any{r.off}, args...)...)
	}
}

// take returns the next n bytes, or nil after an error. The slice belongs to the message.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b)-r.off {
		r.fail("%d bytes expected, %d left", n, len(r.b)-r.off)
		return nil
	}
	p := r.b[r.off : r.off+n]
	r.off += n
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) int16() int16 {
	if p := r.take(2); p != nil {
		return int16(binary.BigEndian.Uint16(p))
	}
	return 0
}

func (r *reader) int32() int32 {
	if p := r.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (r *reader) int64() int64 {
	if p := r.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// count reads the number of elements. Each element has at least min bytes, which limits the number by the remaining
// bytes.
func (r *reader) count(min int) int {
	n := int(r.int32())
	if n < 0 || n > (len(r.b)-r.off)/min {
		r.fail("%d elements can't be in %d bytes", n, len(r.b)-r.off)
		return 0
	}
	if r.values += n; r.values > message.MaxValuesPerRequest {
		r.fail("more than %d values", message.MaxValuesPerRequest)
		return 0
	}
	return n
}

func (r *reader) string() string {
	p := r.take(int(r.int32()))
	if !utf8.Valid(p) {
		r.fail("a string is not UTF-8")
		return ""
	}
	return string(p)
}

// enter goes one level deeper. A call of leave must follow.
func (r *reader) enter() bool {
	if r.depth++; r.depth > message.MaxDepth {
		r.fail("more than %d levels of nesting", message.MaxDepth)
	}
	return r.err == nil
}

func (r *reader) leave() { r.depth-- }

// value reads one fully qualified value.
func (r *reader) value() any {
	code := r.byte()
	if code == tCustom {
		r.fail("custom types are not supported")
		return nil
	}
	switch flag := r.byte(); {
	case r.err != nil:
		return nil
	case flag&flagNull != 0:
		return nil
	case code == tNull:
		r.fail("a null without its flag")
		return nil
	}
	return r.unqualified(code)
}

// unqualified reads a value after its type code and flag.
func (r *reader) unqualified(code byte) any {
	switch code {
	case tInt:
		return r.int32()
	case tLong:
		return r.int64()
	case tString:
		return r.string()
	case tDate:
		return gvalue.Date(r.int64())
	case tTimestamp:
		return gvalue.Timestamp(r.int64())
	case tClass:
		return gvalue.Class(r.string())
	case tDouble:
		return math.Float64frombits(uint64(r.int64()))
	case tFloat:
		return math.Float32frombits(uint32(r.int32()))
	case tUUID:
		var u gvalue.UUID
		copy(u[:], r.take(16))
		return u
	case tBoolean:
		return r.byte() != 0
	case tByte:
		return int8(r.byte())
	case tShort:
		return r.int16()
	case tByteBuffer:
		return append([]byte{}, r.take(int(r.int32()))...)
	case tBigInteger:
		return r.bigInt()
	case tBigDecimal:
		scale := r.int32()
		return &gvalue.BigDecimal{Scale: scale, Unscaled: r.bigInt()}
	}
	if name, ok := enumTypes[code]; ok {
		return r.enum(name)
	}
	if !r.enter() {
		return nil
	}
	defer r.leave()
	if code >= tChar {
		return r.calendar(code)
	}
	if v, ok := r.collection(code); ok {
		return v
	}
	if v, ok := r.element(code); ok {
		return v
	}
	return r.language(code)
}

func (r *reader) bigInt() *big.Int {
	p := r.take(int(r.int32()))
	if len(p) > maxBigBytes {
		r.fail("an integer of %d bytes; the limit is %d", len(p), maxBigBytes)
		return new(big.Int)
	}
	n := new(big.Int).SetBytes(p)
	if len(p) > 0 && p[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(p))))
	}
	return n
}

// qualifiedString reads a String with its type code and flag.
func (r *reader) qualifiedString() string {
	s, ok := r.value().(string)
	if !ok {
		r.fail("a String expected")
	}
	return s
}

func (r *reader) enum(typ string) any {
	name := r.qualifiedString()
	if r.err != nil {
		return nil
	}
	e, ok := gvalue.MakeEnum(typ, name)
	if !ok {
		r.fail("%s has no constant %q", typ, name)
		return nil
	}
	return e
}

func (r *reader) calendar(code byte) any {
	switch code {
	case tChar:
		return r.char()
	case tDuration:
		return gvalue.Duration{Seconds: r.int64(), Nanos: r.int32()}
	case tInetAddress:
		p := r.take(int(r.int32()))
		if len(p) != 4 && len(p) != 16 {
			r.fail("an address of %d bytes", len(p))
		}
		return gvalue.InetAddress(append([]byte{}, p...))
	case tInstant:
		return gvalue.Instant{Seconds: r.int64(), Nanos: r.int32()}
	case tLocalDate:
		return r.localDate()
	case tLocalDateTime:
		return gvalue.LocalDateTime{Date: r.localDate(), Time: gvalue.LocalTime(r.int64())}
	case tLocalTime:
		return gvalue.LocalTime(r.int64())
	case tMonthDay:
		return gvalue.MonthDay{Month: int8(r.byte()), Day: int8(r.byte())}
	case tOffsetDateTime:
		return gvalue.OffsetDateTime{Time: r.dateTime()}
	case tZonedDateTime:
		return gvalue.ZonedDateTime{Time: r.dateTime()}
	case tOffsetTime:
		return gvalue.OffsetTime{Time: gvalue.LocalTime(r.int64()), Offset: gvalue.ZoneOffset(r.int32())}
	case tPeriod:
		return gvalue.Period{Years: r.int32(), Months: r.int32(), Days: r.int32()}
	case tYear:
		return gvalue.Year(r.int32())
	case tYearMonth:
		return gvalue.YearMonth{Year: r.int32(), Month: int8(r.byte())}
	case tZoneOffset:
		return gvalue.ZoneOffset(r.int32())
	}
	r.fail("unknown type code 0x%02x", code)
	return nil
}

// char reads one character in UTF-8. Its first byte determines its length.
func (r *reader) char() gvalue.Char {
	p := []byte{r.byte()}
	switch {
	case p[0] >= 0xf0:
		p = append(p, r.take(3)...)
	case p[0] >= 0xe0:
		p = append(p, r.take(2)...)
	case p[0] >= 0xc0:
		p = append(p, r.take(1)...)
	}
	c, n := utf8.DecodeRune(p)
	if c == utf8.RuneError && n < 3 {
		r.fail("a character is not UTF-8")
	}
	return gvalue.Char(c)
}

func (r *reader) localDate() gvalue.LocalDate {
	return gvalue.LocalDate{Year: r.int32(), Month: int8(r.byte()), Day: int8(r.byte())}
}

// dateTime reads a local date and time, and their offset from UTC.
func (r *reader) dateTime() time.Time {
	d, ns, off := r.localDate(), r.int64(), int(r.int32())
	if d.Month < 1 || d.Month > 12 || d.Day < 1 || d.Day > 31 || ns < 0 || ns >= 24*3600*1e9 || off > 18*3600 ||
		off < -18*3600 ||
		d.Year > 999999999 || d.Year < -999999999 {
		r.fail("not a date: %d-%d-%d", d.Year, d.Month, d.Day)
		return time.Time{}
	}
	zone := time.UTC
	if off != 0 {
		zone = time.FixedZone("", off)
	}
	return time.Date(int(d.Year), time.Month(d.Month), int(d.Day), 0, 0, int(ns/1e9), int(ns%1e9), zone)
}
