package graphson

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// maxNumberText limits the digits of a number. Longer ones are refused.
const maxNumberText = 1000

// maxKeyDepth limits the nesting of collections in map keys and sets, whose members must be compared as a whole.
const maxKeyDepth = 8

// converter converts parsed JSON to values. It keeps the first error.
type converter struct {
	err      error
	keyDepth int
}

func (c *converter) fail(format string, args ...any) any {
	if c.err == nil {
		c.err = fmt.Errorf("GraphSON: "+format, args...)
	}
	return nil
}

// value converts JSON of all three versions. Typed and bare values may be mixed.
//
//	{"@type": "g:Int64", "@value": 5}  ->  int64 5
//	5                                  ->  int32 5
//	{"a": 5}                           ->  a Map with the key "a"
func (c *converter) value(v any) any {
	if c.err != nil {
		return nil
	}
	switch x := v.(type) {
	case number:
		return c.bareNumber(string(x))
	case []any:
		l := make([]any, len(x))
		for i, e := range x {
			l[i] = c.value(e)
		}
		return l
	case *object:
		if t, ok := x.get("@type"); ok {
			if name, ok := t.(string); ok {
				val, _ := x.get("@value")
				return c.typed(name, val)
			}
		}
		m := gvalue.NewMap(len(x.members))
		once := x.once()
		for _, e := range x.members {
			if v := c.value(e.val); once {
				m.Append(e.name, v)
			} else {
				m.Put(e.name, v)
			}
		}
		return m
	}
	return v // nil, bool, string
}

// bareNumber converts a number without a type to the narrowest integer type, at least Int32, or to Double.
func (c *converter) bareNumber(s string) any {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return c.fail("the number %.20s is out of range", s)
		}
		return f
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n >= math.MinInt32 && n <= math.MaxInt32 {
			return int32(n)
		}
		return n
	}
	return c.bigInt(s)
}

func (c *converter) bigInt(s string) any {
	if len(s) > maxNumberText {
		return c.fail("a number of %d digits", len(s))
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return c.fail("not an integer: %.20s", s)
	}
	return n
}

// typed converts {"@type": name, "@value": v}.
func (c *converter) typed(name string, v any) any {
	if read, ok := typeReaders[name]; ok {
		return read(c, v)
	}
	prefix, short, _ := strings.Cut(name, ":")
	if _, isEnum := gvalue.MakeEnum(short, "x"); prefix == "g" && (isEnum || enumNames[short]) {
		return c.enum(short, v)
	}
	if prefix == "g" && strings.HasSuffix(short, "Strategy") && isClassName(short) {
		return c.strategy(short, v)
	}
	if prefix == "gx" {
		if s, ok := v.(string); ok {
			if t, ok := gvalue.ParseTimeText(short, s); ok {
				return t
			}
		}
	}
	return c.fail("unknown type or malformed value: %.50s", name)
}

// enumNames are the types with constants as values.
var enumNames = map[string]bool{"T": true, "Direction": true, "Order": true, "Scope": true, "Pop": true, "Column": true,
	"Cardinality": true,
	"Barrier":     true, "Operator": true, "Pick": true, "Merge": true, "DT": true, "GType": true}

// typeReaders has one entry for each type tag, except enumerations, strategies and calendar types, which are found by
// name.
var typeReaders map[string]func(*converter, any) any

func init() {
	typeReaders = map[string]func(*converter, any) any{
		"g:Int32":          func(c *converter, v any) any { return int32(c.integer(v, 32)) },
		"g:Int64":          func(c *converter, v any) any { return c.integer(v, 64) },
		"gx:Int16":         func(c *converter, v any) any { return int16(c.integer(v, 16)) },
		"gx:Byte":          func(c *converter, v any) any { return int8(c.integer(v, 8)) },
		"g:Double":         func(c *converter, v any) any { return c.float(v, 64) },
		"g:Float":          func(c *converter, v any) any { return float32(c.float(v, 32)) },
		"gx:BigInteger":    func(c *converter, v any) any { return c.bigInt(c.text(v)) },
		"gx:BigDecimal":    (*converter).bigDecimal,
		"g:UUID":           (*converter).uuid,
		"g:Date":           func(c *converter, v any) any { return gvalue.Date(c.integer(v, 64)) },
		"g:Timestamp":      func(c *converter, v any) any { return gvalue.Timestamp(c.integer(v, 64)) },
		"g:Class":          func(c *converter, v any) any { return gvalue.Class(c.text(v)) },
		"gx:Char":          (*converter).char,
		"gx:ByteBuffer":    (*converter).byteBuffer,
		"g:List":           func(c *converter, v any) any { return c.items(v) },
		"g:Set":            (*converter).set,
		"g:Map":            (*converter).mapValue,
		"g:BulkSet":        (*converter).bulkSet,
		"g:Vertex":         (*converter).vertex,
		"g:Edge":           (*converter).edge,
		"g:VertexProperty": (*converter).vertexProperty,
		"g:Property":       (*converter).property,
		"g:Path":           (*converter).path,
		"g:Tree":           func(c *converter, v any) any { return c.tree(v) },
		"g:Traverser":      (*converter).traverser,
		"g:Bytecode":       (*converter).bytecode,
		"g:P":              func(c *converter, v any) any { return c.predicate(v, false) },
		"g:TextP":          func(c *converter, v any) any { return c.predicate(v, true) },
		"g:Binding":        (*converter).binding,
		"g:Lambda":         (*converter).lambda,
	}
}

// text returns the text of a string or a number.
func (c *converter) text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case number:
		return string(x)
	}
	c.fail("a string or a number expected")
	return ""
}

// integer reads a whole number. It may be written as a string or with a zero fraction.
func (c *converter) integer(v any, bits int) int64 {
	s := c.text(v)
	if c.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f != math.Trunc(f) || f < -math.Ldexp(1, bits-1) || f >= math.Ldexp(1, bits-1) {
			c.fail("not an integer of %d bits: %.20s", bits, s)
			return 0
		}
		n = int64(f)
	}
	return n
}

func (c *converter) float(v any, bits int) float64 {
	s := c.text(v)
	switch s {
	case "NaN":
		return math.NaN()
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil || f-f != 0 {
		c.fail("not a floating-point number: %.20s", s)
		return 0
	}
	return f
}

func (c *converter) bigDecimal(v any) any {
	s := c.text(v)
	d, ok := gvalue.ParseBigDecimal(s)
	if !ok {
		return c.fail("not a decimal: %.20s", s)
	}
	return d
}

func (c *converter) uuid(v any) any {
	s := c.text(v)
	u, ok := parseUUID(s)
	if !ok {
		return c.fail("not a UUID: %.40s", s)
	}
	return u
}

// parseUUID reads 8-4-4-4-12 hex digits.
func parseUUID(s string) (u gvalue.UUID, ok bool) {
	if len(s) != 36 {
		return u, false
	}
	u, err := uuid.Parse(s)
	return u, err == nil
}

func (c *converter) char(v any) any {
	s := c.text(v)
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || n != len(s) {
		return c.fail("one character expected")
	}
	return gvalue.Char(r)
}

func (c *converter) byteBuffer(v any) any {
	b, err := base64.StdEncoding.DecodeString(c.text(v))
	if err != nil {
		return c.fail("not base64")
	}
	return b
}

func (c *converter) enum(typ string, v any) any {
	name := c.text(v)
	e, ok := gvalue.MakeEnum(typ, name)
	if !ok {
		return c.fail("%s has no constant %.30s", typ, name)
	}
	return e
}

// object returns v as an object. A g:Map with string keys is accepted too.
func (c *converter) object(v any) *object {
	o, ok := v.(*object)
	if !ok {
		c.fail("an object expected")
		return &object{}
	}
	if t, _ := o.get("@type"); t == "g:Map" {
		flat, _ := o.get("@value")
		l, _ := flat.([]any)
		m := &object{}
		for i := 0; i+1 < len(l); i += 2 {
			if _, ok := l[i].(string); ok {
				m.members = append(m.members, member{l[i], l[i+1]})
			}
		}
		return m
	}
	return o
}

// member converts one member of an object, nil if it is absent.
func (c *converter) member(o *object, key string) any {
	v, _ := o.get(key)
	return c.value(v)
}

// label returns a member that is a string, or "".
func (c *converter) label(o *object, key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

// items converts a JSON array, bare or as a g:List or g:Set.
func (c *converter) items(v any) []any {
	if o, ok := v.(*object); ok {
		v, _ = o.get("@value")
	}
	l, ok := v.([]any)
	if !ok {
		c.fail("an array expected")
		return nil
	}
	out := make([]any, len(l))
	for i, e := range l {
		out[i] = c.value(e)
	}
	return out
}
