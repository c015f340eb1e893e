package edm

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
)

// Prop is one property of an entity in a request.
type Prop struct {
	Name  []byte
	Value value.Value // Undefined if the JSON has null: such a property isn't stored

	ann      Type
	tok      token
	hasValue bool
}

// Entity is an entity read from a request body. Its names and values point into that body and into its own buffers, so
// the body must not change while the entity is used. The next call of Parse reuses the buffers.
type Entity struct {
	PartitionKey, RowKey       string
	HasPartitionKey, HasRowKey bool
	Props                      []Prop // without keys and Timestamp, in the order of the JSON; names are unique

	scan scanner
}

var odataType = []byte("@odata.type")

// Parse reads the JSON of one entity in one pass over body. An annotation may precede or follow its value. Members
// whose name contains "odata." belong to the protocol and are skipped. Timestamp is set by the server and is ignored.
// Keys are validated if present; the caller checks whether they must be. The error is an *Error.
func (e *Entity) Parse(body []byte) error {
	*e = Entity{Props: e.Props[:0], scan: scanner{b: body, scratch: e.scan.scratch[:0]}}
	if !utf8.Valid(body) {
		return errInput
	}
	s := &e.scan
	if !s.next('{') {
		return errInput
	}
	if !s.next('}') {
		for {
			if err := e.member(); err != nil {
				return err
			}
			if s.next('}') {
				break
			}
			if !s.next(',') {
				return errInput
			}
		}
	}
	if s.space(); s.i != len(s.b) {
		return errInput
	}
	return e.finish()
}

// member reads `"name": value`.
func (e *Entity) member() error {
	s := &e.scan
	if !s.next('"') {
		return errInput
	}
	name, ok := s.str()
	if !ok || !s.next(':') {
		return errInput
	}
	tok, ok := s.scalar()
	if !ok {
		return errInput
	}
	if base, isType := bytes.CutSuffix(name, odataType); isType && len(base) > 0 {
		return e.annotate(base, tok)
	}
	if bytes.Contains(name, []byte("odata.")) {
		return nil
	}
	p, err := e.prop(name)
	if err != nil {
		return err
	}
	if p.hasValue {
		return fail(DuplicateProperties, string(name), "A property is specified more than one time.")
	}
	p.tok, p.hasValue = tok, true
	return nil
}

func (e *Entity) annotate(name []byte, tok token) error {
	t, ok := parseType(string(tok.text))
	if tok.kind != '"' || !ok {
		return errInput
	}
	p, err := e.prop(name)
	if err != nil {
		return err
	}
	if p.ann != None {
		return fail(DuplicateProperties, string(name), "A property is specified more than one time.")
	}
	p.ann = t
	return nil
}

// prop finds or adds a property. A value and its annotation are usually neighbours, so the last property is tried
// first.
func (e *Entity) prop(name []byte) (*Prop, error) {
	for i := len(e.Props) - 1; i >= 0; i-- {
		if bytes.Equal(e.Props[i].Name, name) {
			return &e.Props[i], nil
		}
	}
	if len(e.Props) == maxMembers {
		return nil, errTooMany
	}
	e.Props = append(e.Props, Prop{Name: name})
	return &e.Props[len(e.Props)-1], nil
}

var errTooMany = fail(TooManyProperties, "", "The entity contains more properties than allowed. Each entity can "+
	"include up to 252 properties to store data. Each entity also has 3 system properties.")

// finish moves the keys out of the properties, drops Timestamp, and converts the values of all other properties.
func (e *Entity) finish() error {
	kept := e.Props[:0]
	stored := 0
	for i := range e.Props {
		p := e.Props[i]
		if !p.hasValue {
			continue // an annotation without its value
		}
		switch string(p.Name) {
		case Timestamp:
			continue
		case PartitionKey, RowKey:
			if err := e.key(&p); err != nil {
				return err
			}
			continue
		}
		if err := checkName(p.Name); err != nil {
			return err
		}
		v, err := e.convert(p.tok, p.ann, p.Name)
		if err != nil {
			return err
		}
		if p.Value = v; v.IsDefined() {
			stored++
		}
		kept = append(kept, p)
	}
	if e.Props = kept; stored > MaxProperties {
		return errTooMany
	}
	return nil
}

func (e *Entity) key(p *Prop) error {
	if p.tok.kind == 'n' {
		return nil
	}
	if p.tok.kind != '"' || p.ann != None && p.ann != String {
		return errInput
	}
	text := string(p.tok.text)
	if err := CheckKey(string(p.Name), text); err != nil {
		return err
	}
	if string(p.Name) == RowKey {
		e.RowKey, e.HasRowKey = text, true
	} else {
		e.PartitionKey, e.HasPartitionKey = text, true
	}
	return nil
}

// convert converts a token to the type of its annotation. Without an annotation the type follows from the JSON.
func (e *Entity) convert(tok token, t Type, name []byte) (value.Value, error) {
	if tok.kind == 'n' || t == Null {
		return value.Value{}, nil
	}
	if t == None {
		t = plainType(tok)
	}
	var v value.Value
	ok := false
	switch t {
	case Binary:
		return e.binary(tok)
	case Boolean:
		// Clients in Python write False as a text.
		is := tok.kind == 't' || tok.kind == '"' && strings.EqualFold(string(tok.text), "true")
		ok = is || tok.kind == 'f' || tok.kind == '"' && strings.EqualFold(string(tok.text), "false")
		v = value.BoolOf(is)
	case DateTime:
		if tok.kind != '"' {
			return v, errInput
		}
		d, err := ParseDateTime(string(tok.text))
		if x, is := err.(*Error); is && x.Code == OutOfRangeInput {
			return v, fail(OutOfRangeInput, string(name), "The '"+string(name)+"' parameter of value '"+
				string(tok.text)+"' is out of range.")
		}
		return d, err
	case Double:
		var f float64
		f, ok = parseDouble(tok)
		v = value.DoubleOf(f)
	case GUID:
		if tok.kind == '"' {
			v, ok = ParseGUID(string(tok.text))
		}
	case Int32:
		var n int64
		n, ok = parseInt(tok, 32)
		v = value.Int32Of(int32(n))
	case Int64:
		var n int64
		n, ok = parseInt(tok, 64)
		v = value.Int64Of(n)
	case String:
		ok = tok.kind == '"'
		if v = value.StringBytes(tok.text); len(tok.text) > maxString && utf16Units(tok.text) > maxString {
			return v, errValueTooLarge
		}
	}
	if !ok {
		return value.Value{}, errInput
	}
	return v, nil
}

var errValueTooLarge = fail(PropertyValueTooLarge, "", "The property value exceeds the maximum allowed size (64KB). "+
	"If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or "+
	"less.")

// plainType returns the type of a value without an annotation. Whole numbers that fit are Int32, all others Double.
func plainType(tok token) Type {
	switch tok.kind {
	case '"':
		return String
	case 't', 'f':
		return Boolean
	}
	if _, ok := parseInt(tok, 32); ok {
		return Int32
	}
	return Double
}

func parseInt(tok token, bits int) (int64, bool) {
	if tok.kind != '0' && tok.kind != '"' || len(tok.text) > 20 || len(tok.text) > 0 && tok.text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(tok.text), 10, bits)
	return n, err == nil
}

func parseDouble(tok token) (float64, bool) {
	if tok.kind == '"' {
		switch string(tok.text) {
		case "NaN":
			return math.NaN(), true
		case "Infinity", "INF":
			return math.Inf(1), true
		case "-Infinity", "-INF":
			return math.Inf(-1), true
		}
		// Accept only JSON numbers: ParseFloat also accepts hex and names.
		if _, end, ok := json.ScanNumber(tok.text, 0); !ok || end != len(tok.text) {
			return 0, false
		}
	} else if tok.kind != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(tok.text), 64)
	return f, err == nil
}

func (e *Entity) binary(tok token) (value.Value, error) {
	if tok.kind != '"' {
		return value.Value{}, errInput
	}
	from := len(e.scan.scratch)
	out, err := base64.StdEncoding.AppendDecode(e.scan.scratch, tok.text)
	if err != nil {
		return value.Value{}, errInput
	}
	e.scan.scratch = out
	if len(out)-from > maxBinary {
		return value.Value{}, errValueTooLarge
	}
	return value.BinaryOf(value.SubtypeGeneric, out[from:len(out):len(out)]), nil
}
