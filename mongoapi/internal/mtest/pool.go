package mtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core/value"
)

// Pool breeds arguments for fuzz targets from the cases of data-driven tests: a case, some of whose parts are replaced
// by parts of other cases. What it makes is well-formed and uses real operators, which random bytes never do. An
// operator is bred as soon as it has a case. The bytes of a find mean something else after the next case, so what is
// found is kept as a case, too.
//
// Example: [{$match: {a: 1}}] and [{$project: {x: {$add: ["$a", 2]}}}] can become [{$match: {a: {$add: ["$a", 2]}}}].
type Pool struct {
	whole []any // the cases
	parts []any // all values in them
	names []string
}

// odd are the values at which operators have failed before, here or elsewhere.
const odd = `[null,true,0,-1,1,2147483647,-2147483648,{"$numberLong":"9223372036854775807"},
{"$numberLong":"-9223372036854775808"},{"$numberDouble":"NaN"},{"$numberDouble":"-Infinity"},{"$numberDouble":"-0.0"},
1e308,0.5,{"$numberDecimal":"NaN"},{"$numberDecimal":"9.999999999999999999999999999999999E+6144"},
{"$numberDecimal":"1E-6176"},"","$a","$n","$$ROOT","$$REMOVE","$a.b","$d","x",[],{},[[]],[null],{"a":{}},
{"$date":"2026-01-02T00:00:00Z"},{"$date":{"$numberLong":"-9223372036854775808"}},
{"$date":{"$numberLong":"9223372036854775807"}},{"$oid":"0123456789abcdef01234567"},{"$minKey":1},{"$maxKey":1},
{"$undefined":true},{"$regularExpression":{"pattern":"^x","options":"i"}},{"$timestamp":{"t":1,"i":1}},
{"$binary":{"base64":"AAEC","subType":"00"}},{"$code":"x"},{"$symbol":"s"},"\u0000","é😀"]`

// NewPool reads the cases of files of data-driven tests: each line, or block, that is a value. wanted says which are
// bred as a whole; the others only have parts.
func NewPool(t testing.TB, wanted func(v any) bool, globs ...string) *Pool {
	t.Helper()
	p := &Pool{}
	names := map[string]bool{}
	for _, glob := range globs {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", glob, len(files), err)
		}
		for _, file := range files {
			if filepath.Base(file) == "fuzz" { // what a fuzz target has found
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range strings.Split(string(text), "\n\n") {
				_, input, _ := strings.Cut(block, "\n")
				input, _, _ = strings.Cut(input, "\n----")
				p.read(input, wanted, names)
			}
		}
	}
	if p.read(odd, func(any) bool { return false }, names); len(p.whole) < 10 {
		t.Fatalf("only %d cases", len(p.whole))
	}
	return p
}

// read adds the values of a block.
func (p *Pool) read(input string, wanted func(v any) bool, names map[string]bool) {
	texts := []string{strings.ReplaceAll(input, "\n", "")}
	if _, ok := parsed(texts[0]); !ok {
		texts = Lines(input)
	}
	for _, text := range texts {
		v, ok := parsed(text)
		if !ok {
			continue
		}
		if wanted(v) {
			p.whole = append(p.whole, v)
		}
		p.add(v, names)
	}
}

func parsed(text string) (any, bool) {
	var d bson.D
	err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &d)
	if err != nil || len(d) != 1 {
		return nil, false
	}
	return d[0].Value, true
}

func (p *Pool) add(v any, names map[string]bool) {
	p.parts = append(p.parts, v)
	switch v := v.(type) {
	case bson.A:
		for _, x := range v {
			p.add(x, names)
		}
	case bson.D:
		for _, e := range v {
			if !names[e.Key] {
				names[e.Key] = true
				p.names = append(p.names, e.Key)
			}
			p.add(e.Value, names)
		}
	}
}

// dice takes numbers from the bytes of a fuzz target. After the last byte they are zeros.
type dice []byte

func (d *dice) below(n int) int {
	if n < 2 {
		return 0
	}
	x := 0
	for range 2 {
		x <<= 8
		if len(*d) > 0 {
			x, *d = x|int((*d)[0]), (*d)[1:]
		}
		if n <= 256 {
			break
		}
	}
	return x % n
}

// Breed makes a value of the bytes of a fuzz target. Equal bytes make equal values. ok is false if it is no BSON.
func (p *Pool) Breed(data []byte) (v value.Value, ok bool) {
	d := dice(data)
	x := p.whole[d.below(len(p.whole))]
	for range d.below(5) {
		x = p.change(&d, x, 0)
	}
	b, err := bson.Marshal(bson.D{{Key: "v", Value: x}})
	if err != nil || !Valid(b) {
		return v, false
	}
	return value.ObjectOf(b).Get("v"), true
}

// change returns x with one change somewhere in it. x itself isn't changed.
func (p *Pool) change(d *dice, x any, depth int) any {
	at := -1
	switch v := x.(type) {
	case bson.A:
		if len(v) > 0 && depth < 8 && d.below(4) > 0 {
			at = d.below(len(v))
			out := append(bson.A{}, v...)
			out[at] = p.change(d, v[at], depth+1)
			return out
		}
	case bson.D:
		if len(v) > 0 && depth < 8 && d.below(4) > 0 {
			at = d.below(len(v))
			out := append(bson.D{}, v...)
			out[at].Value = p.change(d, v[at].Value, depth+1)
			return out
		}
	}
	part := func() any { return p.parts[d.below(len(p.parts))] }
	name := func() string { return p.names[d.below(len(p.names))] }
	switch op := d.below(8); {
	case op == 0:
		return bson.A{x, part()}
	case op == 1:
		return bson.D{{Key: name(), Value: x}}
	case op < 4 || depth == 0:
		switch v := x.(type) {
		case bson.A: // one element less, or one more
			if op == 2 && len(v) > 0 {
				at = d.below(len(v))
				return append(append(bson.A{}, v[:at]...), v[at+1:]...)
			}
			at = d.below(len(v) + 1)
			return append(append(append(bson.A{}, v[:at]...), part()), v[at:]...)
		case bson.D: // one name less, another, or one more
			if op == 2 && len(v) > 0 {
				at = d.below(len(v))
				return append(append(bson.D{}, v[:at]...), v[at+1:]...)
			}
			if op == 3 && len(v) > 0 {
				out := append(bson.D{}, v...)
				out[d.below(len(v))].Key = name()
				return out
			}
			return append(append(bson.D{}, v...), bson.E{Key: name(), Value: part()})
		}
	}
	return part()
}
