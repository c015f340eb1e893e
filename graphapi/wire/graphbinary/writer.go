package graphbinary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

var errTooDeep = errors.New("the result is nested too deeply to be sent")

// writer appends values and keeps the first error. After an error the bytes are useless.
type writer struct {
	b      []byte
	tokens bool // elements without properties
	depth  int
	err    error
}

func (w *writer) byte(b byte)      { w.b = append(w.b, b) }
func (w *writer) int16(n int16)    { w.b = binary.BigEndian.AppendUint16(w.b, uint16(n)) }
func (w *writer) int32(n int32)    { w.b = binary.BigEndian.AppendUint32(w.b, uint32(n)) }
func (w *writer) int64(n int64)    { w.b = binary.BigEndian.AppendUint64(w.b, uint64(n)) }
func (w *writer) code(c byte)      { w.b = append(w.b, c, flagValue) }
func (w *writer) null()            { w.b = append(w.b, tNull, flagNull) }
func (w *writer) string(s string)  { w.int32(int32(len(s))); w.b = append(w.b, s...) }
func (w *writer) qstring(s string) { w.code(tString); w.string(s) }

// value appends a fully qualified value.
func (w *writer) value(v any) {
	switch x := v.(type) {
	case nil:
		w.null()
	case string:
		w.qstring(x)
	case bool:
		w.code(tBoolean)
		if x {
			w.byte(1)
		} else {
			w.byte(0)
		}
	case int32:
		w.code(tInt)
		w.int32(x)
	case int64:
		w.code(tLong)
		w.int64(x)
	case float64:
		w.code(tDouble)
		w.int64(int64(math.Float64bits(x)))
	case float32:
		w.code(tFloat)
		w.int32(int32(math.Float32bits(x)))
	case int16:
		w.code(tShort)
		w.int16(x)
	case int8:
		w.code(tByte)
		w.byte(byte(x))
	case gvalue.UUID:
		w.code(tUUID)
		w.b = append(w.b, x[:]...)
	case *big.Int:
		w.code(tBigInteger)
		w.bigInt(x)
	case *gvalue.BigDecimal:
		w.code(tBigDecimal)
		w.int32(x.Scale)
		w.bigInt(x.Unscaled)
	case []byte:
		w.code(tByteBuffer)
		w.string(string(x))
	case gvalue.Class:
		w.code(tClass)
		w.string(string(x))
	case gvalue.Enum:
		w.code(enumCodes[x.EnumType()])
		w.qstring(x.EnumName())
	default:
		w.nested(v)
	}
}

// scalar appends the value of a Scalar, fully qualified.
func (w *writer) scalar(s *gvalue.Scalar) {
	if s.IsText {
		w.qstring(s.Text)
	} else {
		w.value(s.Other)
	}
}

// nested appends types that contain other values, and rare scalars.
func (w *writer) nested(v any) {
	if w.depth++; w.depth > message.MaxDepth {
		w.err = errTooDeep
		w.null()
		return
	}
	if !w.element(v) && !w.collection(v) && !w.calendar(v) && !w.language(v) && w.err == nil {
		w.err = fmt.Errorf("a value of type %T can't be sent in GraphBinary", v)
	}
	w.depth--
}

func (w *writer) element(v any) bool {
	switch x := v.(type) {
	case *gvalue.Vertex:
		w.code(tVertex)
		w.value(x.ID)
		w.string(x.Label)
		if w.tokens {
			w.null()
			return true
		}
		w.vertexProperties(x)
	case *gvalue.Edge:
		w.code(tEdge)
		w.value(x.ID)
		w.string(x.Label)
		w.value(x.InV)
		w.string(x.InVLabel)
		w.value(x.OutV)
		w.string(x.OutVLabel)
		w.null()
		if w.tokens {
			w.null()
			return true
		}
		w.properties(x.Props())
	case *gvalue.VertexProperty:
		w.code(tVertexProperty)
		w.vertexProperty(&gvalue.LoadedProperty{Key: x.Label, ID: gvalue.Scalar{Other: x.ID},
			Value: gvalue.Scalar{Other: x.Value}, Properties: x.Properties})
	case *gvalue.Property:
		w.code(tProperty)
		w.property(x)
	case *gvalue.Path:
		w.path(x)
	case gvalue.Traverser:
		w.code(tTraverser)
		w.int64(x.Bulk)
		w.value(x.Value)
	case *gvalue.Graph:
		w.graph(x)
	default:
		return false
	}
	return true
}

// vertexProperties appends the list of a vertex's properties. Its length is known at its end.
func (w *writer) vertexProperties(v *gvalue.Vertex) {
	w.code(tList)
	at, n := len(w.b), 0
	w.int32(0)
	v.Visit(func(p *gvalue.LoadedProperty) {
		n++
		w.code(tVertexProperty)
		w.vertexProperty(p)
	})
	binary.BigEndian.PutUint32(w.b[at:], uint32(n))
}

// vertexProperty appends a vertex property without its type code.
func (w *writer) vertexProperty(p *gvalue.LoadedProperty) {
	w.scalar(&p.ID)
	w.string(p.Key)
	w.scalar(&p.Value)
	w.null() // parent
	if w.tokens {
		w.null()
		return
	}
	w.properties(p.Properties)
}

func (w *writer) properties(ps []gvalue.Property) {
	w.code(tList)
	w.int32(int32(len(ps)))
	for i := range ps {
		w.code(tProperty)
		w.property(&ps[i])
	}
}

// property appends a property without its type code.
func (w *writer) property(p *gvalue.Property) {
	w.string(p.Key)
	w.value(p.Value)
	w.null() // parent
}

func (w *writer) path(p *gvalue.Path) {
	w.code(tPath)
	w.code(tList)
	w.int32(int32(len(p.Labels)))
	for _, names := range p.Labels {
		w.code(tSet)
		w.int32(int32(len(names)))
		for _, n := range names {
			w.qstring(n)
		}
	}
	w.value(p.Objects)
}

func (w *writer) graph(g *gvalue.Graph) {
	w.code(tGraph)
	w.int32(int32(len(g.Vertices)))
	for _, v := range g.Vertices {
		w.value(v.ID)
		w.string(v.Label)
		at, n := len(w.b), 0
		w.int32(0)
		v.Visit(func(p *gvalue.LoadedProperty) {
			n++
			w.vertexProperty(p)
		})
		binary.BigEndian.PutUint32(w.b[at:], uint32(n))
	}
	w.int32(int32(len(g.Edges)))
	for _, e := range g.Edges {
		w.value(e.ID)
		w.string(e.Label)
		w.value(e.InV)
		w.null()
		w.value(e.OutV)
		w.null()
		w.null()
		w.properties(e.Props())
	}
}

func (w *writer) collection(v any) bool {
	switch x := v.(type) {
	case []any:
		w.code(tList)
		w.list(x)
	case *gvalue.Set:
		w.code(tSet)
		w.list(x.Items())
	case *gvalue.Map:
		w.code(tMap)
		w.mapValue(x)
	case *gvalue.LazyMap:
		w.code(tMap)
		w.lazyMap(x)
	case *gvalue.BulkSet:
		w.code(tBulkSet)
		w.int32(int32(x.Len()))
		for _, e := range x.Items() {
			w.value(e.Value)
			w.int64(e.Bulk)
		}
	case *gvalue.Tree:
		w.code(tTree)
		w.tree(x)
	default:
		return false
	}
	return true
}

func (w *writer) list(l []any) {
	w.int32(int32(len(l)))
	for _, e := range l {
		w.value(e)
	}
}

// mapValue appends a map without its type code.
func (w *writer) mapValue(m *gvalue.Map) {
	w.int32(int32(m.Len()))
	for _, e := range m.Entries() {
		w.value(e.Key)
		w.value(e.Value)
	}
}

// lazyMap appends a map whose entries are read meanwhile.
func (w *writer) lazyMap(m *gvalue.LazyMap) {
	w.int32(int32(m.Len))
	at := len(w.b)
	err := m.Each(func(e gvalue.Entry) error {
		w.value(e.Key)
		w.value(e.Value)
		if w.err != nil || m.Written == nil {
			return w.err
		}
		return m.Written(len(w.b) - at)
	})
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) tree(t *gvalue.Tree) {
	if w.depth++; w.depth > message.MaxDepth {
		w.err = errTooDeep
		return
	}
	w.int32(int32(len(t.Entries)))
	for _, e := range t.Entries {
		w.value(e.Key)
		w.tree(e.Child)
	}
	w.depth--
}

func (w *writer) calendar(v any) bool {
	switch x := v.(type) {
	case gvalue.Date:
		w.code(tDate)
		w.int64(int64(x))
	case gvalue.Timestamp:
		w.code(tTimestamp)
		w.int64(int64(x))
	case gvalue.Char:
		w.code(tChar)
		w.b = utf8.AppendRune(w.b, rune(x))
	case gvalue.Duration:
		w.code(tDuration)
		w.int64(x.Seconds)
		w.int32(x.Nanos)
	case gvalue.InetAddress:
		w.code(tInetAddress)
		w.string(string(x))
	case gvalue.Instant:
		w.code(tInstant)
		w.int64(x.Seconds)
		w.int32(x.Nanos)
	case gvalue.LocalDate:
		w.code(tLocalDate)
		w.localDate(x)
	case gvalue.LocalDateTime:
		w.code(tLocalDateTime)
		w.localDate(x.Date)
		w.int64(int64(x.Time))
	case gvalue.LocalTime:
		w.code(tLocalTime)
		w.int64(int64(x))
	case gvalue.MonthDay:
		w.code(tMonthDay)
		w.b = append(w.b, byte(x.Month), byte(x.Day))
	case gvalue.OffsetDateTime:
		w.code(tOffsetDateTime)
		w.dateTime(x.Time)
	case gvalue.ZonedDateTime:
		w.code(tZonedDateTime)
		w.dateTime(x.Time)
	case gvalue.OffsetTime:
		w.code(tOffsetTime)
		w.int64(int64(x.Time))
		w.int32(int32(x.Offset))
	case gvalue.Period:
		w.code(tPeriod)
		w.int32(x.Years)
		w.int32(x.Months)
		w.int32(x.Days)
	case gvalue.Year:
		w.code(tYear)
		w.int32(int32(x))
	case gvalue.YearMonth:
		w.code(tYearMonth)
		w.int32(x.Year)
		w.byte(byte(x.Month))
	case gvalue.ZoneOffset:
		w.code(tZoneOffset)
		w.int32(int32(x))
	default:
		return false
	}
	return true
}

func (w *writer) localDate(d gvalue.LocalDate) {
	w.int32(d.Year)
	w.b = append(w.b, byte(d.Month), byte(d.Day))
}

func (w *writer) dateTime(t time.Time) {
	w.localDate(gvalue.LocalDate{Year: int32(t.Year()), Month: int8(t.Month()), Day: int8(t.Day())})
	w.int64(int64(t.Hour()*3600+t.Minute()*60+t.Second())*1e9 + int64(t.Nanosecond()))
	_, off := t.Zone()
	w.int32(int32(off))
}

// bigInt appends the shortest two's complement form. Zero is one byte, as in Java.
func (w *writer) bigInt(n *big.Int) {
	if n == nil || n.Sign() == 0 {
		w.int32(1)
		w.byte(0)
		return
	}
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 { // -2^(8k-1) needs no additional byte
		size = new(big.Int).Add(n, big.NewInt(1)).BitLen()/8 + 1
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	w.int32(int32(size))
	w.b = append(w.b, n.FillBytes(make([]byte, size))...)
}

// language appends predicates, bytecode and metrics.
func (w *writer) language(v any) bool {
	switch x := v.(type) {
	case *gvalue.P:
		if x.Text {
			w.code(tTextP)
		} else {
			w.code(tP)
		}
		w.string(x.Op)
		w.list(x.Args)
	case *gvalue.Bytecode:
		w.code(tBytecode)
		w.instructions(x.Steps)
		w.instructions(x.Source)
	case gvalue.CardinalityValue:
		w.value(
			&gvalue.Bytecode{
				Source: []gvalue.Instruction{{Op: "CardinalityValueTraversal", Args: []any{x.Cardinality, x.Value}}}})
	case *gvalue.Binding:
		w.code(tBinding)
		w.string(x.Key)
		w.value(x.Value)
	case *gvalue.Lambda:
		w.code(tLambda)
		w.string(x.Language)
		w.string(x.Script)
		w.int32(x.Args)
	case *gvalue.Strategy:
		w.code(tStrategy)
		w.string(x.Class)
		w.mapValue(x.Config)
	case *gvalue.Metrics:
		w.metrics(x)
	case *gvalue.TraversalMetrics:
		w.code(tTraversalMetrics)
		w.int64(x.Duration)
		w.int32(int32(len(x.Metrics)))
		for _, m := range x.Metrics {
			w.metrics(m)
		}
	default:
		return false
	}
	return true
}

func (w *writer) instructions(ins []gvalue.Instruction) {
	w.int32(int32(len(ins)))
	for _, in := range ins {
		w.string(in.Op)
		w.list(in.Args)
	}
}

func (w *writer) metrics(m *gvalue.Metrics) {
	if w.depth++; w.depth > message.MaxDepth {
		w.err = errTooDeep
		return
	}
	w.code(tMetrics)
	w.string(m.ID)
	w.string(m.Name)
	w.int64(m.Duration)
	w.mapValue(m.Counts)
	w.mapValue(m.Annotations)
	w.int32(int32(len(m.Nested)))
	for _, n := range m.Nested {
		w.metrics(n)
	}
	w.depth--
}
