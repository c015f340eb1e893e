package doc

import (
	"encoding/binary"
	"math"
	"strconv"
	"sync"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// JSONOptions says how JSON is read. The zero value is plain JSON with stored names and DefaultMaxDepth.
type JSONOptions struct {
	Names    Names // how top-level names are mapped
	Extended bool  // objects such as {"$oid": ".."} are MongoDB Extended JSON v2 (canonical or relaxed)
	MaxDepth int   // limit of nested arrays and objects, the outermost included; 0 = DefaultMaxDepth
}

// FromJSON appends the JSON object in text as a BSON document to dst.
//
//   - A number without fraction and exponent becomes an Int32 if it fits, else an Int64 if it fits. All other numbers,
//     also -0, become a Double. A number beyond the range of a double is refused.
//   - When an object has a name twice, the last field counts (see dedupe).
//   - A name with U+0000 is refused, because a stored name can't hold it. A string may contain it.
//   - An escaped surrogate without its partner becomes U+FFFD. Bytes that aren't UTF-8 are refused.
//   - One UTF-8 byte order mark before the text is skipped.
//
// Errors are *status.Error, BadRequest, and name the byte position. dst is then returned unchanged.
func FromJSON(dst, text []byte, o JSONOptions) ([]byte, error) {
	p := newParser(dst, text, o)
	defer p.free()
	if p.skip() != '{' {
		return dst, p.fail("a JSON object is expected")
	}
	at := len(p.dst)
	if err := p.object(o.Names != Stored); err != nil {
		return dst, err
	}
	if o.Extended && p.dst[at+4] != 0 && p.dst[at+5] == '$' {
		if t, err := p.extended(at); err != nil || t != bson.TypeDocument {
			return dst, p.failOr(err, "a document is expected, not a single value")
		}
	}
	if p.skip() != 0 || p.i < len(p.src) {
		return dst, p.fail("text follows the end of the JSON value")
	}
	return p.dst, nil
}

// ValueFromJSON reads any plain JSON value. The value has its own bytes.
func ValueFromJSON(text []byte) (value.Value, error) { return valueFromJSON(text, JSONOptions{}) }

// FromExtJSON appends an object in MongoDB Extended JSON v2 (canonical, relaxed or mixed) as a BSON document to dst.
func FromExtJSON(dst, text []byte) ([]byte, error) {
	return FromJSON(dst, text, JSONOptions{Extended: true})
}

// ValueFromExtJSON reads any value in MongoDB Extended JSON v2.
func ValueFromExtJSON(text []byte) (value.Value, error) {
	return valueFromJSON(text, JSONOptions{Extended: true})
}

func valueFromJSON(text []byte, o JSONOptions) (value.Value, error) {
	p := newParser(make([]byte, 0, len(text)+8), text, o)
	defer p.free()
	p.skip()
	t, err := p.value()
	if err != nil {
		return value.Value{}, err
	}
	if p.skip() != 0 || p.i < len(p.src) {
		return value.Value{}, p.fail("text follows the end of the JSON value")
	}
	v, _, ok := value.ReadValue(t, p.dst)
	if !ok {
		return value.Value{}, p.fail("value can't be stored")
	}
	return v, nil
}

// parser turns JSON into BSON in one pass. A length or a type byte is written as a placeholder when an object or a
// field begins, and filled in at its end. names is a stack with the names of all open objects, the innermost last.
//
//	{"id":"a","n":1} with Names NoSQL ->
//	17000000                     the length, filled in at "}"
//	02 "_id" 00 02000000 "a" 00  a field: type (filled in after the value), stored name, string
//	10 "n" 00 01000000           an Int32
//	00                           the end of the document
type parser struct {
	src   []byte
	i     int
	dst   []byte
	names []nameRef
	depth int
	max   int
	ext   bool
	drop  Names
}

// nameRef is a field of an open object: the position of its element in dst, the length of its name, and the signature
// of its name.
type nameRef struct {
	at  int
	n   int
	sig uint64
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

func newParser(dst, text []byte, o JSONOptions) *parser {
	p := parsers.Get().(*parser)
	*p = parser{src: text, dst: dst, names: p.names[:0], max: o.MaxDepth, ext: o.Extended, drop: o.Names}
	if p.max <= 0 {
		p.max = DefaultMaxDepth
	}
	if len(text) >= 3 && text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF {
		p.i = 3
	}
	return p
}

func (p *parser) free() {
	p.src, p.dst = nil, nil
	if cap(p.names) <= 4096 {
		parsers.Put(p)
	}
}

func (p *parser) fail(msg string) error {
	return status.New(status.BadRequest, "invalid JSON at byte %d: %s", p.i, msg)
}

func (p *parser) failOr(err error, msg string) error {
	if err != nil {
		return err
	}
	return p.fail(msg)
}

// skip moves over white space and returns the byte at the new position. It returns 0 at the end of the text (and for a
// NUL, which is valid nowhere).
func (p *parser) skip() byte {
	i := json.Space(p.src, p.i)
	p.i = i
	if i < len(p.src) {
		return p.src[i]
	}
	return 0
}

// value reads the value at p.i, appends its BSON bytes and returns its type.
func (p *parser) value() (t byte, err error) {
	if p.i >= len(p.src) {
		return 0, p.fail("a value is expected")
	}
	switch c := p.src[p.i]; c {
	case '"':
		return bson.TypeString, p.stringValue()
	case '{':
		at := len(p.dst)
		if err := p.object(false); err != nil {
			return 0, err
		}
		if p.ext && p.dst[at+4] != 0 && p.dst[at+5] == '$' {
			return p.extended(at)
		}
		return bson.TypeDocument, nil
	case '[':
		return bson.TypeArray, p.array()
	case 't':
		return bson.TypeBool, p.word("true", 1)
	case 'f':
		return bson.TypeBool, p.word("false", 0)
	case 'n':
		if err := p.word("null", 0); err != nil {
			return 0, err
		}
		p.dst = p.dst[:len(p.dst)-1]
		return bson.TypeNull, nil
	default:
		if c == '-' || c-'0' <= 9 {
			return p.number()
		}
	}
	return 0, p.fail("a value is expected")
}

// word checks a literal (true, false, null) and appends b, its BSON value.
func (p *parser) word(w string, b byte) error {
	if !json.Word(p.src, p.i, w) {
		return p.fail("a value is expected")
	}
	p.i += len(w)
	p.dst = append(p.dst, b)
	return nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > p.max {
		return p.fail("nested deeper than " + strconv.Itoa(p.max) + " levels")
	}
	p.i++
	return nil
}

// object reads the object at p.i. top is true for the document itself, whose names are mapped (JSONOptions.Names).
func (p *parser) object(top bool) error {
	if err := p.enter(); err != nil {
		return err
	}
	at, base := len(p.dst), len(p.names)
	p.dst = append(p.dst, 0, 0, 0, 0)
	c := p.skip()
	for c != '}' {
		if c != '"' {
			return p.fail("a name in quotes is expected")
		}
		el := len(p.dst)
		p.dst = append(p.dst, 0)
		keep, err := p.name(el, top)
		if err != nil {
			return err
		}
		if p.skip() != ':' {
			return p.fail("a colon is expected")
		}
		p.i++
		p.skip()
		t, err := p.value()
		if err != nil {
			return err
		}
		if p.dst[el] = t; !keep {
			p.dst = p.dst[:el]
			p.names = p.names[:len(p.names)-1]
		}
		if c = p.skip(); c == ',' {
			p.i++
			if c = p.skip(); c == '"' {
				continue
			}
			return p.fail("a name in quotes is expected")
		}
		if c != '}' {
			return p.fail("a comma or a closing brace is expected")
		}
	}
	p.i++
	p.depth--
	p.dedupe(base)
	p.names = p.names[:base]
	p.dst = bson.End(p.dst, at)
	return nil
}

// name reads the name of a field whose element begins at el, and pushes it on p.names. keep is false for a system
// field.
func (p *parser) name(el int, top bool) (keep bool, err error) {
	at := p.i
	if err := p.text(); err != nil {
		return false, err
	}
	name := p.dst[el+1:]
	for _, c := range name {
		if c == 0 {
			p.i = at
			return false, p.fail("a property name contains the character U+0000, which stored names can't hold")
		}
	}
	keep = true
	if top && len(name) > 0 && (name[0] == '_' || name[0] == 'i' || name[0] == escape) {
		switch { // as Names.Stored, but without allocating a string
		case string(name) == "id":
			p.dst = append(p.dst[:el+1], "_id"...)
		case isSystem(string(name)):
			keep = false
		case isEscapable(string(name)):
			p.dst = append(p.dst, 0)
			copy(p.dst[el+2:], p.dst[el+1:])
			p.dst[el+1] = escape
		}
		name = p.dst[el+1:]
	}
	p.names = append(p.names, nameRef{at: el, n: len(name), sig: signature(name)})
	p.dst = append(p.dst, 0)
	return keep, nil
}

// signature is a cheap hash of a name: of its length and of up to 16 bytes from both ends.
func signature(name []byte) uint64 {
	n := len(name)
	if n >= 8 {
		return (binary.LittleEndian.Uint64(name)*31+binary.LittleEndian.Uint64(name[n-8:]))*31 + uint64(n)
	}
	var s uint64
	for _, c := range name {
		s = s<<8 | uint64(c)
	}
	return s*31 + uint64(n)
}

func (p *parser) array() error {
	if err := p.enter(); err != nil {
		return err
	}
	at := len(p.dst)
	p.dst = append(p.dst, 0, 0, 0, 0)
	c := p.skip()
	for n := 0; c != ']'; n++ {
		el := len(p.dst)
		p.dst = bson.AppendIndexHead(p.dst, 0, n)
		t, err := p.value()
		if err != nil {
			return err
		}
		p.dst[el] = t
		if c = p.skip(); c == ',' {
			p.i++
			p.skip()
			continue
		}
		if c != ']' {
			return p.fail("a comma or a closing bracket is expected")
		}
	}
	p.i++
	p.depth--
	p.dst = bson.End(p.dst, at)
	return nil
}

func (p *parser) stringValue() error {
	at := len(p.dst)
	p.dst = append(p.dst, 0, 0, 0, 0)
	if err := p.text(); err != nil {
		return err
	}
	p.dst = append(p.dst, 0)
	binary.LittleEndian.PutUint32(p.dst[at:], uint32(len(p.dst)-at-4))
	return nil
}

// number reads a number: an Int32 or Int64 if it is whole and fits, else a Double.
func (p *parser) number() (t byte, err error) {
	n, end, ok := json.ScanNumber(p.src, p.i)
	text := p.src[p.i:end]
	p.i = end
	if !ok {
		return 0, p.fail(string(json.BadNumber))
	}
	if i, ok := n.Int(); ok {
		return p.integer(i), nil
	}
	f, ok := n.Float(text)
	if !ok {
		return 0, p.fail("a number is beyond the range of a 64-bit float")
	}
	p.dst = binary.LittleEndian.AppendUint64(p.dst, math.Float64bits(f))
	return bson.TypeDouble, nil
}

func (p *parser) integer(i int64) byte {
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		p.dst = binary.LittleEndian.AppendUint32(p.dst, uint32(i))
		return bson.TypeInt32
	}
	p.dst = binary.LittleEndian.AppendUint64(p.dst, uint64(i))
	return bson.TypeInt64
}

// text appends the unescaped text of the string at p.i.
func (p *parser) text() error {
	if from := p.i + 1; from < len(p.src) && p.src[p.i] == '"' {
		if end := json.PlainEnd(p.src, from); end > 0 {
			p.dst = append(p.dst, p.src[from:end]...)
			p.i = end + 1
			return nil
		}
	}
	var fault json.Fault
	if p.dst, p.i, fault = json.AppendUnquoted(p.dst, p.src, p.i, json.Surrogates); fault != "" {
		return p.fail(string(fault))
	}
	return nil
}
