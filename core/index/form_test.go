package index

import (
	"fmt"
	"math"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// bsonOf makes a document or object of names and values; names may come twice.
func bsonOf(fields ...any) []byte {
	b := make([]byte, 4)
	for i := 0; i < len(fields); i += 2 {
		b = doc.AppendElement(b, fields[i].(string), fields[i+1].(value.Value))
	}
	return endDocument(b)
}

// TestForms: which entries tell their values, and of what kind.
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
		want value.Kind // Undefined: the entry tells nothing
		odd  bool
	}{
		"int32":                    {bsonOf("a", i(1)), []string{"a"}, value.Int32, false},
		"int64":                    {bsonOf("a", value.Int64Of(1)), []string{"a"}, value.Int64, false},
		"double":                   {bsonOf("a", value.DoubleOf(1)), []string{"a"}, value.Double, false},
		"-0":                       {bsonOf("a", value.DoubleOf(math.Copysign(0, -1))), []string{"a"}, value.Undefined, false},
		"NaN":                      {bsonOf("a", value.DoubleOf(math.NaN())), []string{"a"}, value.Undefined, false},
		"decimal":                  {bsonOf("a", value.DecimalOf(make([]byte, 16))), []string{"a"}, value.Undefined, true},
		"symbol":                   {bsonOf("a", value.RawOf(value.Symbol, []byte("x"))), []string{"a"}, value.Undefined, true},
		"string":                   {bsonOf("a", value.StringOf("x")), []string{"a"}, value.String, false},
		"array":                    {bsonOf("a", value.ArrayOf(bsonOf("0", i(1)))), []string{"a"}, value.Undefined, false},
		"nested":                   {bsonOf("a", o("b", i(1)), "b", i(2)), []string{"a", "b"}, value.Int32, false},
		"twice":                    {bsonOf("a", i(1), "b", i(2), "a", i(3)), []string{"a"}, value.Undefined, true},
		"twice alike":              {bsonOf("a", i(1), "a", i(1)), []string{"a"}, value.Undefined, true},
		"beside one that is twice": {bsonOf("a", i(1), "b", i(2), "a", i(3)), []string{"b"}, value.Int32, true},
		"below the second":         {bsonOf("a", i(1), "a", o("b", i(2))), []string{"a", "b"}, value.Undefined, true},
		"below the second, unseen": {bsonOf("hid", i(1), "hid", o("b", i(2))), []string{"hid", "b"}, value.Undefined, true},
		"twice below":              {bsonOf("o", o("a", i(1), "a", i(2)), "b", i(2)), []string{"o", "a"}, value.Undefined, true},
		"an element too":           {bsonOf("a", value.ArrayOf(bsonOf("0", i(1))), "a", i(1)), []string{"a"}, value.Undefined, true},
		"many names":               {bsonOf(many...), []string{"f150"}, value.Int32, false},
		"many names, one twice":    {bsonOf(append(many[:len(many):len(many)], "f150", i(7))...), []string{"f150"}, value.Undefined, true},
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
