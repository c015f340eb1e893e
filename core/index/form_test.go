package index

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// bsonOf makes a document or object from names and values. Names may occur twice.
func bsonOf(fields ...any) []byte {
	b := make([]byte, 4)
	for i := 0; i < len(fields); i += 2 {
		b = doc.AppendElement(b, fields[i].(string), fields[i+1].(value.Value))
	}
	return bson.End(b, 0)
}

// TestForms: which entries determine their value, and of what kind.
func TestForms(t *testing.T) {
	p, err := Compile([]byte(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/hid/?"}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	i := func(n int32) value.Value { return value.Int32Of(n) }
	o := func(fields ...any) value.Value { return value.ObjectOf(bsonOf(fields...)) }
	many := []any{}
	for n := range 3 * fewNames {
		many = append(many, fmt.Sprint("f", n), i(int32(n)))
	}
	for name, tc := range map[string]struct {
		doc  []byte
		path []string
		want value.Kind // Undefined: the entry determines nothing
		odd  bool
	}{
		"int32":  {bsonOf("a", i(1)), []string{"a"}, value.Int32, false},
		"int64":  {bsonOf("a", value.Int64Of(1)), []string{"a"}, value.Int64, false},
		"double": {bsonOf("a", value.DoubleOf(1)), []string{"a"}, value.Double, false},
		"-0": {bsonOf("a", value.DoubleOf(math.Copysign(0, -1))), []string{"a"},
			value.Undefined, false},
		"NaN": {bsonOf("a", value.DoubleOf(math.NaN())), []string{"a"}, value.Undefined, false},
		"decimal": {bsonOf("a", value.DecimalOf(make([]byte, 16))), []string{"a"},
			value.Undefined, true},
		"symbol": {bsonOf("a", value.RawOf(value.Symbol, []byte("x"))), []string{"a"},
			value.Undefined, true},
		"string": {bsonOf("a", value.StringOf("x")), []string{"a"}, value.String, false},
		"array": {bsonOf("a", value.ArrayOf(bsonOf("0", i(1)))), []string{"a"},
			value.Undefined, false},
		"nested":                   {bsonOf("a", o("b", i(1)), "b", i(2)), []string{"a", "b"}, value.Int32, false},
		"twice":                    {bsonOf("a", i(1), "b", i(2), "a", i(3)), []string{"a"}, value.Undefined, true},
		"twice alike":              {bsonOf("a", i(1), "a", i(1)), []string{"a"}, value.Undefined, true},
		"beside one that is twice": {bsonOf("a", i(1), "b", i(2), "a", i(3)), []string{"b"}, value.Int32, true},
		"below the second":         {bsonOf("a", i(1), "a", o("b", i(2))), []string{"a", "b"}, value.Undefined, true},
		"below the second, unseen": {bsonOf("hid", i(1), "hid", o("b", i(2))), []string{"hid", "b"},
			value.Undefined, true},
		"twice below": {bsonOf("o", o("a", i(1), "a", i(2)), "b", i(2)), []string{"o", "a"},
			value.Undefined, true},
		"an element too": {bsonOf("a", value.ArrayOf(bsonOf("0", i(1))), "a", i(1)), []string{"a"},
			value.Undefined, true},
		"many names": {bsonOf(many...), []string{"f150"}, value.Int32, false},
		"many names, one twice": {bsonOf(append(many[:len(many):len(many)], "f150", i(7))...), []string{"f150"},
			value.Undefined, true},
	} {
		var terms Terms
		p.Collect(&terms, tc.doc, 0)
		terms.Path(p.PathID(tc.path), func(val []byte, flag byte) bool {
			if got := FormKind(flag, val[0]); got != tc.want {
				t.Errorf("%s: the entry %x with flag %x tells kind %d, not %d", name, val, flag, got, tc.want)
			}
			return true
		})
		if odd := terms.Classes&Odd != 0; odd != tc.odd {
			t.Errorf("%s: odd is %v", name, odd)
		}
		if len(terms.names) != 0 {
			t.Errorf("%s: %d names are left over", name, len(terms.names))
		}
	}
}

// TestColumnForms: values that are read from a composite entry equal the document's, with the same kind; and which
// entries determine their values.
func TestColumnForms(t *testing.T) {
	p := compile(t, `[[{"path":"/a"},{"path":"/b","order":"descending"}]]`)
	c := p.Composites()[0]
	i32, i64, f := value.Int32Of, value.Int64Of, value.DoubleOf
	arr := value.ArrayOf(bsonOf("0", i32(1)))
	long := value.StringOf(strings.Repeat("x", 600))
	vals := []value.Value{value.Undef(), value.NullValue(), value.BoolOf(true), i32(0), i32(-7), i32(math.MaxInt32),
		i64(7), i64(math.MaxInt32 + 1), i64(1<<53 + 1), i64(math.MaxInt64),
		i64(math.MinInt64), f(0), f(math.Copysign(0, -1)), f(1.5), f(7), f(3e9), f(1e300), f(math.Inf(-1)),
		f(math.NaN()), value.StringOf(""), value.StringOf("a\x00b"), long, arr, value.ObjectOf(bsonOf("x", i32(1))),
		value.DateOf(5, 0), value.UUIDOf(make([]byte, 16)), value.ObjectIDOf(make([]byte, 12)), value.TimestampOf(7),
		value.BinaryOf(0, []byte{1}), value.RawOf(value.Symbol, []byte("a")), value.MinKeyValue()}
	told := map[string]bool{}
	for i, a := range vals {
		for j, b := range vals {
			var terms Terms
			var fields []any
			if a.IsDefined() {
				fields = append(fields, "a", a)
			}
			if b.IsDefined() {
				fields = append(fields, "b", b)
			}
			p.Collect(&terms, bsonOf(fields...), 1)
			val, flag := entry(t, c, &terms)
			rest, err := keys.SkipColumn(val, c.Cut, false)
			if err != nil {
				t.Fatal(err)
			}
			first, second := val[:len(val)-len(rest)], bytes.Clone(rest)
			keys.Invert(second)
			x, ok := ColumnValue(flag, first)
			y, also := ColumnValue(flag, second)
			if ok != also && flag&FormMask != 0 {
				t.Errorf("%d, %d: one column is told and the other isn't", i, j)
			}
			if ok && also {
				told[fmt.Sprint(a.Kind(), b.Kind())] = true
				for _, pair := range [][2]value.Value{{x, a}, {y, b}} {
					if pair[0].Kind() != pair[1].Kind() ||
						!bytes.Equal(value.AppendBSON(nil, pair[0]), value.AppendBSON(nil, pair[1])) {
						t.Errorf("%d, %d: told %v, not %v", i, j, pair[0], pair[1])
					}
				}
			}
		}
	}
	for _, kinds := range [][2]value.Kind{
		{value.Int32, value.Double}, {value.Double, value.Double}, {value.Int64, value.Int64},
		{value.Int32, value.Int64}, {value.String, value.Int32}, {value.Undefined, value.Undefined},
		{value.Date, value.UUID}, {value.Null, value.Bool}} {
		if !told[fmt.Sprint(kinds[0], kinds[1])] {
			t.Errorf("%v beside %v is never told", kinds[0], kinds[1])
		}
	}
	for _, kinds := range [][2]value.Kind{
		{value.Array, value.Int32}, {value.Symbol, value.Int32}, {value.Binary, value.Int32}} {
		if told[fmt.Sprint(kinds[0], kinds[1])] {
			t.Errorf("%v is told", kinds[0])
		}
	}
}
