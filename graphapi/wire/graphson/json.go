package graphson

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// maxJSONDepth bounds the nesting of a request's JSON; one level of a value takes up to four levels of GraphSON.
const maxJSONDepth = 4 * message.MaxDepth

// The parsed form of JSON: nil, bool, string, number, []any, *object.
type (
	number string // as written
	object struct{ members []member }
	member struct {
		key string
		val any
	}
)

// get returns the last member named key: a repeated name overwrites.
func (o *object) get(key string) (v any, ok bool) {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key == key {
			return o.members[i].val, true
		}
	}
	return nil, false
}

// parser reads JSON from untrusted bytes. The first error sticks.
type parser struct {
	b      []byte
	off    int
	depth  int
	values int
	err    error
}

func parseJSON(b []byte) (any, error) {
	p := parser{b: b}
	v := p.value()
	p.space()
	if p.err == nil && p.off != len(b) {
		p.fail("unexpected text after the message")
	}
	return v, p.err
}

func (p *parser) fail(msg string) any {
	if p.err == nil {
		p.err = fmt.Errorf("GraphSON, byte %d: %s", p.off, msg)
	}
	p.off = len(p.b)
	return nil
}

func (p *parser) space() {
	for p.off < len(p.b) {
		switch p.b[p.off] {
		case ' ', '\t', '\n', '\r':
			p.off++
		default:
			return
		}
	}
}

// next gives the next byte that isn't white space without taking it; 0 at the end.
func (p *parser) next() byte {
	p.space()
	if p.off < len(p.b) {
		return p.b[p.off]
	}
	return 0
}

func (p *parser) value() any {
	if p.values++; p.values > message.MaxValuesPerRequest {
		return p.fail("too many values")
	}
	switch c := p.next(); {
	case c == '{':
		return p.nested(p.object)
	case c == '[':
		return p.nested(p.array)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true", true)
	case c == 'f':
		return p.word("false", false)
	case c == 'n':
		return p.word("null", nil)
	}
	return p.fail("a value expected")
}

func (p *parser) nested(read func() any) any {
	if p.depth++; p.depth > maxJSONDepth {
		return p.fail("nested too deeply")
	}
	p.off++
	v := read()
	p.depth--
	return v
}

func (p *parser) word(w string, v any) any {
	if len(p.b)-p.off < len(w) || string(p.b[p.off:p.off+len(w)]) != w {
		return p.fail("a value expected")
	}
	p.off += len(w)
	return v
}

func (p *parser) array() any {
	l := []any{}
	if p.next() == ']' {
		p.off++
		return l
	}
	for p.err == nil {
		l = append(l, p.value())
		switch p.next() {
		case ',':
			p.off++
		case ']':
			p.off++
			return l
		default:
			return p.fail("',' or ']' expected")
		}
	}
	return nil
}

func (p *parser) object() any {
	o := &object{}
	if p.next() == '}' {
		p.off++
		return o
	}
	o.members = make([]member, 0, 4)
	for p.err == nil {
		if p.next() != '"' {
			return p.fail("a name expected")
		}
		key := p.string()
		if p.next() != ':' {
			return p.fail("':' expected")
		}
		p.off++
		o.members = append(o.members, member{key, p.value()})
		switch p.next() {
		case ',':
			p.off++
		case '}':
			p.off++
			return o
		default:
			return p.fail("',' or '}' expected")
		}
	}
	return nil
}

func (p *parser) digits() int {
	from := p.off
	for p.off < len(p.b) && p.b[p.off] >= '0' && p.b[p.off] <= '9' {
		p.off++
	}
	return p.off - from
}

func (p *parser) number() any {
	from := p.off
	if p.b[p.off] == '-' {
		p.off++
	}
	lead := p.off
	if n := p.digits(); n == 0 || n > 1 && p.b[lead] == '0' {
		return p.fail("not a number")
	}
	if p.off < len(p.b) && p.b[p.off] == '.' {
		p.off++
		if p.digits() == 0 {
			return p.fail("not a number")
		}
	}
	if p.off < len(p.b) && (p.b[p.off] == 'e' || p.b[p.off] == 'E') {
		p.off++
		if p.off < len(p.b) && (p.b[p.off] == '+' || p.b[p.off] == '-') {
			p.off++
		}
		if p.digits() == 0 {
			return p.fail("not a number")
		}
	}
	return number(p.b[from:p.off])
}

// string reads a string whose opening quote is next. Bytes that aren't UTF-8 and lone surrogates become U+FFFD.
func (p *parser) string() string {
	p.off++
	from := p.off
	plain := true
	for p.off < len(p.b) {
		switch c := p.b[p.off]; {
		case c == '"':
			s := p.b[from:p.off]
			p.off++
			if plain {
				return known(s)
			}
			return p.unescape(s)
		case c == '\\':
			plain = false
			p.off += 2
		case c < 0x20:
			p.fail("a control character in a string")
			return ""
		case c >= utf8.RuneSelf:
			plain = false
			p.off++
		default:
			p.off++
		}
	}
	p.fail("a string without its end")
	return ""
}

// known gives the words that every request has without an allocation.
func known(s []byte) string {
	switch string(s) {
	case "@type":
		return "@type"
	case "@value":
		return "@value"
	case "requestId":
		return "requestId"
	case "op":
		return "op"
	case "processor":
		return "processor"
	case "args":
		return "args"
	case "gremlin":
		return "gremlin"
	case "bindings":
		return "bindings"
	case "aliases":
		return "aliases"
	case "language":
		return "language"
	case "accept":
		return "accept"
	case "gremlin-groovy":
		return "gremlin-groovy"
	case "g":
		return "g"
	case "eval":
		return "eval"
	case "g:UUID":
		return "g:UUID"
	case "g:Map":
		return "g:Map"
	case "g:Int32":
		return "g:Int32"
	case "g:Int64":
		return "g:Int64"
	}
	return string(s)
}

func (p *parser) unescape(s []byte) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			r, n := utf8.DecodeRune(s[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		i += 2 // the scan made sure that a byte follows
		switch c := s[i-1]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(s, i)
			if !ok {
				p.fail(`four hex digits expected after \u`)
				return ""
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if low, ok := hex4(s, i+2); ok && s[i] == '\\' && s[i+1] == 'u' && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			p.fail("unknown escape in a string")
			return ""
		}
	}
	return string(out)
}

func hex4(s []byte, at int) (rune, bool) {
	if at+4 > len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[at:at+4]), 16, 32)
	return rune(n), err == nil
}
