package mongoshell

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/core/value"
)

// Values are shown as MongoDB's shell does, whose rules are those of Node's util.inspect:
//
//   - An object or array is written in one line if it contains at most three levels of others and the line has about 80
//     characters, else with one member a line.
//   - An array of more than six short members is written in columns.
//
// Example: {_id: ObjectId("65…"), tags: ["a"], at: Date} is
//
//	{ _id: ObjectId('65…'), tags: [ 'a' ], at: ISODate('2024-01-02T00:00:00.000Z') }

const (
	lineWidth = 80
	maxLevels = 3 // of objects in one line
)

// inspect returns a value in readable form.
func (s *Shell) inspect(v goja.Value) string {
	w := inspector{s: s}
	return w.value(v, 0)
}

type inspector struct {
	s      *Shell
	indent int            // of the line that the present object begins in
	level  int            // of the object that was written last
	open   []*goja.Object // that contain the present one
}

// plainName is the name of a field that needs no quotes.
var plainName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z_0-9]*$`)

func (w *inspector) value(v goja.Value, level int) string {
	switch {
	case v == nil || goja.IsUndefined(v):
		return "undefined"
	case goja.IsNull(v):
		return "null"
	}
	if o, ok := v.(*goja.Object); ok {
		return w.object(o, level)
	}
	if sym, ok := v.(*goja.Symbol); ok {
		return "Symbol(" + sym.String() + ")"
	}
	switch x := v.Export().(type) {
	case string:
		return quoted(x)
	case float64:
		if x == 0 && math.Signbit(x) {
			return "-0"
		}
	case *big.Int:
		return x.String() + "n"
	}
	return v.String()
}

// object returns an object: by its type, or by its members.
func (w *inspector) object(o *goja.Object, level int) string {
	if w.s.shown != nil {
		if text := o.GetSymbol(w.s.shown); text != nil && !goja.IsUndefined(text) {
			return text.String()
		}
	}
	if kind := o.Get("_bsontype"); kind != nil && !goja.IsUndefined(kind) {
		return w.typed(kind.String(), o)
	}
	switch o.ClassName() {
	case "Date":
		text, _ := goja.AssertFunction(o.Get("toISOString"))
		iso, err := text(o)
		if err != nil {
			return "Invalid Date"
		}
		return "ISODate('" + iso.String() + "')"
	case "RegExp", "Error":
		return o.String()
	case "Function":
		if strings.HasPrefix(o.String(), "class ") {
			return "[class " + o.Get("name").String() + "]"
		}
		if name := o.Get("name").String(); name != "" {
			return "[Function: " + name + "]"
		}
		return "[Function (anonymous)]"
	case "Boolean", "Number", "String":
		return "[" + o.ClassName() + ": " + quoted(o.String()) + "]"
	}
	for _, outer := range w.open {
		if outer == o {
			return "[Circular]"
		}
	}
	w.open = append(w.open, o)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	return w.members(o, level)
}

// members returns an object or array with its members.
func (w *inspector) members(o *goja.Object, level int) string {
	array := o.ClassName() == "Array"
	before, open, end := "", "{", "}"
	var parts []string
	numbers := true // all members are numbers
	last := w.level
	w.level = level
	switch x := o.Export().(type) {
	case [][2]any: // a Map
		before = fmt.Sprintf("Map(%d)", len(x))
		w.s.vm.ForOf(o, func(pair goja.Value) bool {
			p := pair.ToObject(w.s.vm)
			parts = append(parts, w.inner(p.Get("0"), level)+" => "+w.inner(p.Get("1"), level))
			return true
		})
	case []byte:
		before, open, end = fmt.Sprintf("Uint8Array(%d)", len(x)), "[", "]"
		for _, b := range x {
			parts = append(parts, strconv.Itoa(int(b)))
		}
		array = true
	default:
		if array {
			open, end = "[", "]"
			for i := range int(o.Get("length").ToInteger()) {
				v := o.Get(strconv.Itoa(i))
				if v == nil || v.ExportType() == nil || !isNumber(v) {
					numbers = false
				}
				parts = append(parts, w.inner(v, level))
			}
			break
		}
		if _, ok := x.([]any); ok { // a Set
			before = fmt.Sprintf("Set(%d)", o.Get("size").ToInteger())
			w.s.vm.ForOf(o, func(v goja.Value) bool {
				parts = append(parts, w.inner(v, level))
				return true
			})
			break
		}
		before = constructorOf(o)
		for _, key := range o.Keys() {
			name := key
			if !plainName.MatchString(key) {
				name = quoted(key)
			}
			parts = append(parts, name+": "+w.inner(o.Get(key), level))
		}
	}
	if before != "" {
		open = before + " " + open
	}
	if len(parts) == 0 {
		w.level = last // an empty one doesn't count as a level
		return open + end
	}
	return w.joined(parts, open, end, level, array, numbers)
}

// inner returns a member.
func (w *inspector) inner(v goja.Value, level int) string {
	w.indent += 2
	defer func() { w.indent -= 2 }()
	return w.value(v, level+1)
}

func isNumber(v goja.Value) bool {
	switch v.Export().(type) {
	case int64, float64, *big.Int:
		_, object := v.(*goja.Object)
		return !object
	}
	return false
}

// constructorOf returns the name of the class of an object, "" for plain ones.
func constructorOf(o *goja.Object) string {
	p := o.Prototype()
	if p == nil {
		return "[Object: null prototype]"
	}
	c, ok := p.Get("constructor").(*goja.Object)
	if !ok {
		return ""
	}
	if name := c.Get("name").String(); name != "Object" {
		return name
	}
	return ""
}

// joined returns the members in one line or in several.
func (w *inspector) joined(parts []string, open, end string, level int, array, numbers bool) string {
	lines := parts
	if array && len(parts) > 6 {
		lines = w.columns(parts, numbers)
	}
	if w.level-level < maxLevels && len(lines) == len(parts) {
		total := len(parts) + len(parts) + w.indent + len(open) + 10
		for _, p := range parts {
			total += len(p)
		}
		if one := strings.Join(parts, ", "); total <= lineWidth && !strings.Contains(one, "\n") {
			return open + " " + one + " " + end
		}
	}
	gap := "\n" + strings.Repeat(" ", w.indent)
	return open + gap + "  " + strings.Join(lines, ","+gap+"  ") + gap + end
}

// columns returns the members of an array in lines of columns, or as they are if they are too wide.
func (w *inspector) columns(parts []string, numbers bool) []string {
	const between, most = 2, 15
	total, longest := 0, 0
	widths := make([]int, len(parts))
	for i, p := range parts {
		widths[i] = utf8.RuneCountInString(p)
		total += widths[i] + between
		longest = max(longest, widths[i])
	}
	column := longest + between
	if column*3+w.indent >= lineWidth || float64(total)/float64(column) <= 5 && longest > 6 {
		return parts
	}
	// Columns so that the block is about 2.5 times as wide as high, less if the members' widths differ much.
	bias := math.Sqrt(float64(column) - float64(total)/float64(len(parts)))
	biased := math.Max(float64(column)-3-bias, 1)
	n := int(math.Round(math.Sqrt(2.5*biased*float64(len(parts))) / biased))
	n = min(n, (lineWidth-w.indent)/column, maxLevels*4, most)
	if n <= 1 {
		return parts
	}
	wide := make([]int, n)
	for i, width := range widths {
		wide[i%n] = max(wide[i%n], width+between)
	}
	var lines []string
	for at := 0; at < len(parts); at += n {
		var b strings.Builder
		last := min(at+n, len(parts)) - 1
		for i := at; i <= last; i++ {
			text, pad := parts[i]+", ", wide[i-at]-widths[i]-between
			if i == last {
				text = parts[i]
			}
			switch space := strings.Repeat(" ", pad); {
			case numbers:
				b.WriteString(space + text)
			case i == last:
				b.WriteString(text)
			default:
				b.WriteString(text + space)
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}

// typed returns a value of a type of types.js, as the call that makes it.
func (w *inspector) typed(kind string, o *goja.Object) string {
	v, err := w.s.typed(kind, o, 0)
	if err != nil {
		return kind + "(malformed)"
	}
	switch kind {
	case "ObjectId":
		return "ObjectId('" + hex.EncodeToString(v.Bytes()) + "')"
	case "Long":
		return "Long('" + strconv.FormatInt(v.Int(), 10) + "')"
	case "Int32", "Double":
		return kind + "(" + o.String() + ")"
	case "Decimal128":
		return "Decimal128('" + value.DecimalText(v) + "')"
	case "Binary":
		if v.Kind() == value.UUID {
			return "UUID('" + string(value.AppendUUID(nil, v.Bytes())) + "')"
		}
		return fmt.Sprintf("Binary.createFromBase64('%s', %d)", o.Get("base64"), v.Subtype())
	case "Timestamp":
		return fmt.Sprintf("Timestamp({ t: %d, i: %d })", v.Raw64()>>32, v.Raw64()&math.MaxUint32)
	case "BSONRegExp":
		return "BSONRegExp(" + quoted(o.Get("pattern").String()) + ", " + quoted(o.Get("options").String()) + ")"
	case "Code":
		return "Code(" + quoted(o.Get("code").String()) + ")"
	}
	return kind + "()"
}

// quoted returns a text in quotes: single ones unless it contains such and no others.
func quoted(text string) string {
	quote := byte('\'')
	if strings.ContainsRune(text, '\'') {
		switch {
		case !strings.ContainsRune(text, '"'):
			quote = '"'
		case !strings.Contains(text, "`") && !strings.Contains(text, "${"):
			quote = '`'
		}
	}
	b := []byte{quote}
	for _, r := range text {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\v':
			b = append(b, `\v`...)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			b = fmt.Appendf(b, `\x%02X`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, quote))
}
