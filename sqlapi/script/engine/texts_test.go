package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"

	"github.com/orrerydb/orrery/sqlapi/script/wire"
)

// A text has the value that JSON.parse gives it, whether it is read here or by the engine.
func TestTextsAreJSON(t *testing.T) {
	w := &worker{programs: newPrograms(), watch: &watch{}}
	texts := w.newMachine(wire.Setting{Time: time.Minute}, &source{}).newTexts()
	for _, text := range []string{
		`1`, `-0`, `0.1e-7`, `1e21`, `123456789012345678901`, `1e400`, `true`, `false`, `null`, `""`, `"a"`,
		`"\u00e9\n\"\ud83d\ude00"`, `"é😀"`, `"\ud800"`, `[]`, `{}`, ` [ 1 , [ ] , { } ] `,
		`{"a":1,"b":{"c":[1,"x",null]}}`,
		`{"2":"two","1":"one","x":0}`, `{"a":1,"a":2}`, `{"":1}`, `{"\u0061":1}`, `{"__proto__":{"x":1},"y":2}`,
		`{"a":{"__proto__":null}}`, `{"constructor":1,"toString":2}`,
		strings.Repeat("[", 150) + strings.Repeat("]", 150),
		strings.Repeat(`{"a":`, 240) + "1" + strings.Repeat("}", 240),
		`{`, `[1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `tru`, `"a`, `01`, `1 2`, `{"a":1}}`, `{a:1}`,
	} {
		v, err := texts.value([]byte(text))
		parsed, want := texts.parse(goja.Undefined(), texts.m.rt.ToValue(text))
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v, JSON.parse: %v", text, err, want)
			continue
		}
		if err != nil {
			continue
		}
		got, _ := texts.stringify(goja.Undefined(), v)
		expected, _ := texts.stringify(goja.Undefined(), parsed)
		if !got.SameAs(expected) {
			t.Errorf("%s: %v, JSON.parse: %v", text, got, expected)
		}
	}
}

// The list of a call's arguments may have the word undefined, and only there.
func TestArgumentsOfACall(t *testing.T) {
	w := &worker{programs: newPrograms(), watch: &watch{}}
	m := w.newMachine(wire.Setting{Time: time.Minute}, &source{})
	texts := m.newTexts()
	for _, tc := range []struct{ list, want string }{
		{`[]`, ``}, {`[1,"a"]`, `1 "a"`}, {` [ undefined , 2 ] `, `undefined 2`}, {`[{"__proto__":1},{"a":[]}]`,
			`{"__proto__":1} {"a":[]}`},
		{`[1`, `error`}, {`[1] 2`, `error`}, {`1`, `error`}, {`[undefine]`, `error`}, {``, `error`},
	} {
		args, fault := texts.arguments(nil, []byte(tc.list))
		var got []string
		for _, v := range args {
			text, err := texts.json(v)
			if err != nil {
				t.Fatal(err)
			}
			if text == nil {
				text = []byte("undefined")
			}
			got = append(got, string(text))
		}
		if fault != nil {
			got = []string{"error"}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %s, want %s", tc.list, s, tc.want)
		}
	}
}
