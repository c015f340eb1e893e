package graphson

import (
	"fmt"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// maxJSONDepth limits the nesting of a request's JSON. One level of a value needs up to four levels of GraphSON.
const maxJSONDepth = 4 * message.MaxDepth

// The parsed form of JSON: nil, bool, string, number, []any, *object.
type (
	number string // as written
	object struct{ members []member }
	member struct {
		name any // a string; kept as a value, because it may become the key of a map
		val  any
	}
)

func (m *member) key() string {
	s, _ := m.name.(string)
	return s
}

// get returns the last member with a name: a repeated name overwrites.
//
//go:noinline // called from many places, see decision 41
func (o *object) get(key string) (v any, ok bool) {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key() == key {
			return o.members[i].val, true
		}
	}
	return nil, false
}

// fewMembers is the number of members up to which comparing all of their names takes less time than a map of them.
const fewMembers = 32

// once reports whether o has few members and each has another name.
func (o *object) once() bool {
	if len(o.members) > fewMembers {
		return false
	}
	for i := range o.members {
		for j := range i {
			if o.members[j].key() == o.members[i].key() {
				return false
			}
		}
	}
	return true
}

// parser reads JSON from untrusted bytes. It keeps the first error.
type parser struct {
	b       []byte
	off     int
	depth   int
	values  int
	err     error
	members pile[member]
	items   pile[any]
	objects []object // unused ones
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

func (p *parser) space() { p.off = json.Space(p.b, p.off) }

// next returns the next byte that isn't white space, without consuming it, and 0 at the end.
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
	if !json.Word(p.b, p.off, w) {
		return p.fail("a value expected")
	}
	p.off += len(w)
	return v
}

func (p *parser) array() any {
	if p.next() == ']' {
		p.off++
		return []any{}
	}
	begin := p.items.begin()
	for p.err == nil {
		p.items.add(p.value())
		switch p.next() {
		case ',':
			p.off++
		case ']':
			p.off++
			return p.items.end(begin)
		default:
			return p.fail("',' or ']' expected")
		}
	}
	return nil
}

func (p *parser) object() any {
	if len(p.objects) == 0 {
		p.objects = make([]object, 4)
	}
	o := &p.objects[0]
	p.objects = p.objects[1:]
	if p.next() == '}' {
		p.off++
		return o
	}
	begin := p.members.begin()
	for p.err == nil {
		if p.next() != '"' {
			return p.fail("a name expected")
		}
		name := p.string()
		if p.next() != ':' {
			return p.fail("':' expected")
		}
		p.off++
		p.members.add(member{name, p.value()})
		switch p.next() {
		case ',':
			p.off++
		case '}':
			p.off++
			o.members = p.members.end(begin)
			return o
		default:
			return p.fail("',' or '}' expected")
		}
	}
	return nil
}

func (p *parser) number() any {
	from := p.off
	_, end, ok := json.ScanNumber(p.b, from)
	if p.off = end; !ok {
		return p.fail(string(json.BadNumber))
	}
	return number(p.b[from:end])
}

// string reads a string whose opening quote is next, as a value. Bytes that aren't UTF-8 and unpaired surrogates become
// U+FFFD.
func (p *parser) string() any {
	if from := p.off + 1; from < len(p.b) {
		if end := json.PlainEnd(p.b, from); end > 0 {
			p.off = end + 1
			return known(p.b[from:end])
		}
	}
	text, end, fault := json.AppendUnquoted(nil, p.b, p.off, json.Surrogates|json.RawBytes)
	if p.off = end; fault != "" {
		p.fail(string(fault))
		return ""
	}
	return string(text)
}

// known returns a string as a value, the frequent ones of requests without allocating.
func known(s []byte) any {
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
