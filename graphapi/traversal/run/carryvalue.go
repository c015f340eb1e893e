package run

import (
	"encoding/binary"
	"math"
	"math/big"
	"reflect"
	"time"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The encoding of values in temporary files: a tag, then what the tag needs. Lengths and numbers of parts are uvarints.
//
//	int32 5                      ->  tagInt32 00 00 00 05
//	"ab"                         ->  tagString 2 'a' 'b'
//	[true, nil]                  ->  tagList 2 tagTrue tagNil
//	a stored vertex              ->  tagVertex, length, its document
//	the same vertex once more    ->  tagAgain, its number among the elements of this record
//	a value of another kind      ->  tagKept, its number among the values that stay in memory
const (
	tagNil byte = iota
	tagFalse
	tagTrue
	tagInt8
	tagInt16
	tagInt32
	tagInt64
	tagFloat
	tagDouble
	tagString
	tagBigInt
	tagDecimal
	tagDate
	tagTimestamp
	tagOffsetTime
	tagInstant
	tagUUID
	tagChar
	tagToken
	tagList
	tagSet
	tagMap
	tagEntry
	tagPath
	tagVertex
	tagEdge
	tagBareVertex
	tagBareEdge
	tagVertexProperty
	tagProperty
	tagAgain
	tagKept
)

// carrier encodes the values and traversers of one request. What it can't encode stays in memory: values that their
// users change or compare by place (the bag of aggregate(), trees), and rare kinds. It is not safe for concurrent use.
type carrier struct {
	x    *exec
	kept []any
	at   map[any]uint64 // places in kept
	els  []any          // the elements of the record that is being written or read
	err  error          // of memory for kept
}

// damagedRecord is the error for a record of a temporary file that can't be read. Blocks have checksums, so it means
// that reader and writer differ.
func damagedRecord() error {
	return status.New(status.Corruption, "A record in a temporary file is damaged.")
}

// keep appends a reference to a value that stays in memory.
func (c *carrier) keep(dst []byte, v any) []byte {
	if !reflect.TypeOf(v).Comparable() {
		return c.keepAs(dst, nil, v)
	}
	return c.keepAs(dst, v, v)
}

// keepAs appends a reference to a value that stays in memory until the end of the request. If it is kept with the same
// key already, that one is meant. Without a key, it is kept once more.
func (c *carrier) keepAs(dst []byte, key, v any) []byte {
	dst = append(dst, tagKept)
	if n, ok := c.at[key]; ok && key != nil {
		return binary.AppendUvarint(dst, n)
	}
	if err := c.x.mem.grow(1, sizeOf(v)+entrySize); err != nil && c.err == nil {
		c.err = err
	}
	n := uint64(len(c.kept))
	c.kept = append(c.kept, v)
	if key != nil {
		if c.at == nil {
			c.at = map[any]uint64{}
		}
		c.at[key] = n
	}
	return binary.AppendUvarint(dst, n)
}

func appendString(dst []byte, tag byte, s string) []byte {
	return append(binary.AppendUvarint(append(dst, tag), uint64(len(s))), s...)
}

// appendValue appends the encoding of a value. As a key, which is only compared, an element is written without its
// document.
func (c *carrier) appendValue(dst []byte, v any, key bool) []byte {
	switch e := v.(type) {
	case nil:
		return append(dst, tagNil)
	case bool:
		if e {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case int8:
		return append(dst, tagInt8, byte(e))
	case int16:
		return binary.BigEndian.AppendUint16(append(dst, tagInt16), uint16(e))
	case int32:
		return binary.BigEndian.AppendUint32(append(dst, tagInt32), uint32(e))
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, tagInt64), uint64(e))
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, tagFloat), math.Float32bits(e))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, tagDouble), math.Float64bits(e))
	case string:
		return appendString(dst, tagString, e)
	case *big.Int:
		return c.appendBig(append(dst, tagBigInt), e)
	case *gvalue.BigDecimal:
		u := e.Unscaled
		if u == nil {
			u = new(big.Int)
		}
		return c.appendBig(binary.BigEndian.AppendUint32(append(dst, tagDecimal), uint32(e.Scale)), u)
	case gvalue.Date:
		return binary.BigEndian.AppendUint64(append(dst, tagDate), uint64(e))
	case gvalue.Timestamp:
		return binary.BigEndian.AppendUint64(append(dst, tagTimestamp), uint64(e))
	case gvalue.OffsetDateTime:
		if b, err := e.MarshalBinary(); err == nil {
			return append(append(dst, tagOffsetTime, byte(len(b))), b...)
		}
	case gvalue.Instant:
		dst = binary.BigEndian.AppendUint64(append(dst, tagInstant), uint64(e.Seconds))
		return binary.BigEndian.AppendUint32(dst, uint32(e.Nanos))
	case gvalue.UUID:
		return append(append(dst, tagUUID), e[:]...)
	case gvalue.Char:
		return binary.BigEndian.AppendUint32(append(dst, tagChar), uint32(e))
	case gvalue.T:
		return appendString(dst, tagToken, string(e))
	case *gvalue.Vertex, *gvalue.Edge, *gvalue.VertexProperty, *gvalue.Property:
		return c.appendElement(dst, v, key)
	case []any:
		return c.appendValues(dst, tagList, e, key)
	case *gvalue.Set:
		return c.appendValues(dst, tagSet, e.Items(), key)
	case *gvalue.Map:
		dst = binary.AppendUvarint(append(dst, tagMap), uint64(e.Len()))
		for _, en := range e.Entries() {
			dst = c.appendValue(c.appendValue(dst, en.Key, key), en.Value, key)
		}
		return dst
	case *mapEntry:
		return c.appendValue(c.appendValue(append(dst, tagEntry), e.k, key), e.v, key)
	case *gvalue.Path:
		dst = c.appendValues(dst, tagPath, e.Objects, key)
		for i := range e.Objects {
			var labels []string
			if i < len(e.Labels) {
				labels = e.Labels[i]
			}
			dst = appendLabels(dst, labels)
		}
		return dst
	}
	return c.keep(dst, v)
}

func (c *carrier) appendBig(dst []byte, n *big.Int) []byte {
	sign := byte(0)
	if n.Sign() < 0 {
		sign = 1
	}
	b := n.Bytes()
	return append(binary.AppendUvarint(append(dst, sign), uint64(len(b))), b...)
}

func (c *carrier) appendValues(dst []byte, tag byte, vs []any, key bool) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(vs)))
	for _, v := range vs {
		dst = c.appendValue(dst, v, key)
	}
	return dst
}

func appendLabels(dst []byte, labels []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(labels)))
	for _, l := range labels {
		dst = append(binary.AppendUvarint(dst, uint64(len(l))), l...)
	}
	return dst
}

// fewElements bounds the elements of a record that are looked for when one is written, so that long paths take no time
// that grows with the square of their length. An element beyond it is written each time.
const fewElements = 16

// again finds an element that the record has already.
func (c *carrier) again(v any) int {
	for i, e := range c.els {
		if i == fewElements {
			break
		}
		if e == v {
			return i
		}
	}
	return -1
}

func (c *carrier) appendElement(dst []byte, v any, key bool) []byte {
	if !key {
		if i := c.again(v); i >= 0 {
			return append(dst, tagAgain, byte(i))
		}
	}
	switch e := v.(type) {
	case *gvalue.Vertex:
		if key {
			return appendString(c.appendValue(append(dst, tagBareVertex), e.ID, true), tagString, "")
		}
		c.els = append(c.els, v)
		if n := graph.VertexOf(e); n != nil {
			return append(binary.AppendUvarint(append(dst, tagVertex), uint64(len(n.Doc))), n.Doc...)
		}
		if e.Loader == nil && len(e.Properties) == 0 && e.Ref == nil {
			return appendString(c.appendValue(append(dst, tagBareVertex), e.ID, false), tagString, e.Label)
		}
	case *gvalue.Edge:
		if key {
			return c.appendValue(append(dst, tagBareEdge), e.ID, true)
		}
		if n := graph.EdgeOf(e); n != nil {
			c.els = append(c.els, v)
			return append(binary.AppendUvarint(append(dst, tagEdge), uint64(len(n.Doc))), n.Doc...)
		}
		return c.keep(dst, v)
	case *gvalue.VertexProperty:
		if key {
			dst = append(c.appendValue(append(dst, tagVertexProperty), e.ID, true), tagString, 0)
			return append(dst, tagNil, 0, tagNil)
		}
		dst = appendString(c.appendValue(append(dst, tagVertexProperty), e.ID, false), tagString, e.Label)
		dst = c.appendValue(dst, e.Value, false)
		dst = binary.AppendUvarint(dst, uint64(len(e.Properties)))
		for i := range e.Properties {
			p := &e.Properties[i]
			dst = c.appendValue(appendString(dst, tagString, p.Key), p.Value, false)
		}
		if e.Vertex == nil {
			return append(dst, tagNil)
		}
		return c.appendElement(dst, e.Vertex, false)
	case *gvalue.Property:
		dst = c.appendValue(appendString(append(dst, tagProperty), tagString, e.Key), e.Value, key)
		if key || e.Element == nil {
			return append(dst, tagNil)
		}
		return c.appendValue(dst, e.Element, false)
	}
	return c.keep(dst, v)
}

// record reads the encoding of values. After damage, bad is true and all that is read is zero.
type record struct {
	c   *carrier
	b   []byte
	bad bool
}

func (r *record) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *record) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *record) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.take(uint64(n))
	return v
}

// count reads a number of parts, each of which takes a byte at least.
func (r *record) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *record) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *record) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *record) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// text reads a string without its tag.
func (r *record) text() string { return string(r.take(r.uvarint())) }

// tagged reads a string with its tag.
func (r *record) tagged() string {
	if r.byte() != tagString {
		r.bad = true
	}
	return r.text()
}

func (r *record) values() []any {
	out := make([]any, r.count())
	for i := range out {
		out[i] = r.value()
	}
	return out
}

func (r *record) labels() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = r.text()
	}
	return out
}

func (r *record) big() *big.Int {
	neg := r.byte() == 1
	n := new(big.Int).SetBytes(r.take(r.uvarint()))
	if neg {
		n.Neg(n)
	}
	return n
}

// value reads a value. It has no reference to the record's bytes.
func (r *record) value() any {
	switch tag := r.byte(); tag {
	case tagNil:
		return nil
	case tagFalse, tagTrue:
		return tag == tagTrue
	case tagInt8:
		return int8(r.byte())
	case tagInt16:
		return int16(r.uint16())
	case tagInt32:
		return int32(r.uint32())
	case tagInt64:
		return int64(r.uint64())
	case tagFloat:
		return math.Float32frombits(r.uint32())
	case tagDouble:
		return math.Float64frombits(r.uint64())
	case tagString:
		return r.text()
	case tagBigInt:
		return r.big()
	case tagDecimal:
		d := &gvalue.BigDecimal{Scale: int32(r.uint32())}
		d.Unscaled = r.big()
		return d
	case tagDate:
		return gvalue.Date(r.uint64())
	case tagTimestamp:
		return gvalue.Timestamp(r.uint64())
	case tagOffsetTime:
		var t time.Time
		r.bad = r.bad || t.UnmarshalBinary(r.take(uint64(r.byte()))) != nil
		return gvalue.OffsetDateTime{Time: t}
	case tagInstant:
		s := int64(r.uint64())
		return gvalue.Instant{Seconds: s, Nanos: int32(r.uint32())}
	case tagUUID:
		var u gvalue.UUID
		copy(u[:], r.take(uint64(len(u))))
		return u
	case tagChar:
		return gvalue.Char(r.uint32())
	case tagToken:
		return gvalue.T(r.text())
	case tagList:
		return r.values()
	case tagSet:
		return gvalue.SetOf(r.values()...)
	case tagMap:
		n := r.count()
		m := gvalue.NewMap(n)
		for range n {
			k := r.value()
			m.Append(k, r.value())
		}
		return m
	case tagEntry:
		k := r.value()
		return &mapEntry{k, r.value()}
	case tagPath:
		p := &gvalue.Path{Objects: r.values()}
		p.Labels = make([][]string, len(p.Objects))
		for i := range p.Labels {
			p.Labels[i] = r.labels()
		}
		return p
	case tagKept:
		if n := r.uvarint(); n < uint64(len(r.c.kept)) {
			return r.c.kept[n]
		}
		r.bad = true
		return nil
	default:
		return r.element(tag)
	}
}

func (r *record) element(tag byte) any {
	c := r.c
	switch tag {
	case tagAgain:
		if i := int(r.byte()); i < len(c.els) {
			return c.els[i]
		}
	case tagVertex:
		v := c.x.g.NewVertex(copyOf(r.take(r.uvarint())))
		c.els = append(c.els, v)
		return v
	case tagEdge:
		e := c.x.g.NewEdge(copyOf(r.take(r.uvarint())))
		c.els = append(c.els, e)
		return e
	case tagBareVertex:
		v := &gvalue.Vertex{}
		c.els = append(c.els, v)
		v.ID = r.value()
		v.Label = r.tagged()
		return v
	case tagBareEdge:
		return &gvalue.Edge{ID: r.value()}
	case tagVertexProperty:
		p := &gvalue.VertexProperty{ID: r.value()}
		p.Label = r.tagged()
		p.Value = r.value()
		if n := r.count(); n > 0 {
			p.Properties = make([]gvalue.Property, n)
		}
		for i := range p.Properties {
			p.Properties[i].Key = r.tagged()
			p.Properties[i].Value = r.value()
		}
		p.Vertex, _ = r.value().(*gvalue.Vertex)
		return p
	case tagProperty:
		p := &gvalue.Property{Key: r.tagged()}
		p.Value = r.value()
		p.Element = r.value()
		return p
	}
	r.bad = true
	return nil
}
