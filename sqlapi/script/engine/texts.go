package engine

import (
	"errors"
	"math"
	"strconv"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// texts converts values from and to JSON. It reads most texts itself, in one pass, which takes a third of the time of
// the engine's own parser, and has the engine read the others. It writes scalars, which most values of functions are,
// and has the engine write the others.
type texts struct {
	m                *machine
	parse, stringify goja.Callable
	shapes           *shapes // of lazy objects; nil: all objects are plain
}

// newTexts takes the engine's functions before a program can replace them.
func (m *machine) newTexts() *texts {
	object := m.rt.Get("JSON").(*goja.Object)
	parse, _ := goja.AssertFunction(object.Get("parse"))
	stringify, _ := goja.AssertFunction(object.Get("stringify"))
	return &texts{m: m, parse: parse, stringify: stringify}
}

// errText is the error for a text that isn't read here: it is malformed, nested too deep, or has a member __proto__,
// which isn't an assignment.
var errText = errors.New("no simple JSON")

// mostNested is the depth up to which texts are read here.
const mostNested = 200

// arguments appends the members of a JSON array to args. A member may also be the word undefined.
func (t *texts) arguments(args []goja.Value, list []byte) ([]goja.Value, *wire.Error) {
	before := len(args)
	end, err := t.elements(list, json.Space(list, 0), 0, func(v goja.Value) { args = append(args, v) })
	if errors.Is(err, errText) || err == nil && json.Space(list, end) != len(list) {
		args = args[:before]
		err = json.EachElement(list, func(raw []byte) error {
			v, err := t.value(raw)
			args = append(args, v)
			return err
		})
	}
	if err != nil {
		return nil, t.m.failure(err)
	}
	return args, nil
}

// value returns the value of a JSON text.
func (t *texts) value(raw []byte) (goja.Value, error) {
	v, end, err := t.read(raw, 0, 0)
	if err == nil && json.Space(raw, end) == len(raw) {
		return v, nil
	}
	if err != nil && !errors.Is(err, errText) {
		return nil, err
	}
	return t.parse(goja.Undefined(), t.m.rt.ToValue(string(raw)))
}

// read returns the value of the text at i, and the position after it.
func (t *texts) read(b []byte, i, depth int) (v goja.Value, end int, err error) {
	switch c := byteAt(b, i); {
	case c == '"':
		s, end, ok := textAt(b, i)
		if !ok {
			return nil, 0, errText
		}
		return t.m.rt.ToValue(s), end, nil
	case c == '-' || c >= '0' && c <= '9':
		_, end, ok := json.ScanNumber(b, i)
		if !ok {
			return nil, 0, errText
		}
		n, err := strconv.ParseFloat(string(b[i:end]), 64)
		if err != nil {
			return nil, 0, errText
		}
		return t.m.rt.ToValue(n), end, nil
	case depth > mostNested:
		return nil, 0, errText
	case c == '{':
		if t.shapes != nil {
			if o, end := t.lazy(b, i, depth); o != nil {
				return o, end, nil
			}
		}
		o := t.m.rt.NewObject()
		end, err = t.members(b, i, depth, o)
		return o, end, err
	case c == '[':
		var items []any
		end, err = t.elements(b, i, depth, func(v goja.Value) { items = append(items, v) })
		if err != nil {
			return nil, 0, err
		}
		return t.m.rt.NewArray(items...), end, nil
	}
	return t.word(b, i)
}

// word returns the value of the word at i.
func (t *texts) word(b []byte, i int) (goja.Value, int, error) {
	switch {
	case json.Word(b, i, "true"):
		return t.m.rt.ToValue(true), i + 4, nil
	case json.Word(b, i, "false"):
		return t.m.rt.ToValue(false), i + 5, nil
	case json.Word(b, i, "null"):
		return goja.Null(), i + 4, nil
	case json.Word(b, i, "undefined"):
		return goja.Undefined(), i + 9, nil
	}
	return nil, 0, errText
}

// members sets the members of the object at i, and returns the position after it.
func (t *texts) members(b []byte, i, depth int, o *goja.Object) (end int, err error) {
	i = json.Space(b, i+1)
	if byteAt(b, i) == '}' {
		return i + 1, nil
	}
	for {
		name, after, ok := textAt(b, i)
		if i = json.Space(b, after); !ok || name == "__proto__" || byteAt(b, i) != ':' {
			return 0, errText
		}
		v, after, err := t.read(b, json.Space(b, i+1), depth+1)
		if err != nil {
			return 0, err
		}
		if err := o.Set(name, v); err != nil {
			return 0, err
		}
		i = json.Space(b, after)
		switch byteAt(b, i) {
		case '}':
			return i + 1, nil
		case ',':
			i = json.Space(b, i+1)
		default:
			return 0, errText
		}
	}
}

// elements calls f for the elements of the array at i, and returns the position after it.
func (t *texts) elements(b []byte, i, depth int, f func(goja.Value)) (end int, err error) {
	if byteAt(b, i) != '[' {
		return 0, errText
	}
	i = json.Space(b, i+1)
	if byteAt(b, i) == ']' {
		return i + 1, nil
	}
	for {
		v, after, err := t.read(b, i, depth+1)
		if err != nil {
			return 0, err
		}
		f(v)
		i = json.Space(b, after)
		switch byteAt(b, i) {
		case ']':
			return i + 1, nil
		case ',':
			i = json.Space(b, i+1)
		default:
			return 0, errText
		}
	}
}

// byteAt returns the byte at i, 0 behind the end.
func byteAt(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// textAt returns the text of the JSON string at i and the position after it; false if there is none.
func textAt(b []byte, i int) (s string, end int, ok bool) {
	if byteAt(b, i) != '"' {
		return "", 0, false
	}
	if end := json.PlainEnd(b, i+1); end > 0 {
		return string(b[i+1 : end]), end + 1, true
	}
	if end = json.Skip(b, i); end < 0 {
		return "", 0, false
	}
	s, ok = json.String(b[i:end])
	return s, end, ok
}

// json returns v as JSON, nil for undefined and for what JSON can't express.
func (t *texts) json(v goja.Value) ([]byte, error) {
	if _, ok := v.(*goja.Object); !ok {
		switch x := v.Export().(type) {
		case string:
			return json.AppendString(nil, x), nil
		case int64:
			return strconv.AppendInt(nil, x, 10), nil
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return []byte("null"), nil
			}
			return appendNumber(nil, x), nil
		case bool:
			return strconv.AppendBool(nil, x), nil
		}
	}
	v, err := t.stringify(goja.Undefined(), v)
	if err != nil || goja.IsUndefined(v) {
		return nil, err
	}
	return []byte(v.String()), nil
}

// appendNumber appends x as JavaScript writes numbers.
func appendNumber(dst []byte, x float64) []byte {
	if size := math.Abs(x); size >= 1e21 || size < 1e-6 && size != 0 {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x+0, 'f', -1, 64) // -0 + 0 is 0
}
