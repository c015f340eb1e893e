package json

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEachMember(t *testing.T) {
	got := ""
	err := EachMember([]byte(" { \"a\" : [1,{\"x\":\"]}\\\"\"}] ,\"b\":null,\"c\":\"d\\\\\" } "),
		func(n string, raw []byte) error {
			got += n + "=" + string(raw) + ";"
			return nil
		})
	if want := `a=[1,{"x":"]}\""}];b=null;c="d\\";`; err != nil || got != want {
		t.Fatalf("%q %v, want %q", got, err, want)
	}
}

// A name may contain escapes, like any string.
func TestEachMemberEscapedName(t *testing.T) {
	got := ""
	err := EachMember([]byte(`{"\u0071uery":1,"\"":2}`), func(n string, raw []byte) error {
		got += n + "=" + string(raw) + ";"
		return nil
	})
	if want := `query=1;"=2;`; err != nil || got != want {
		t.Fatalf("%q %v, want %q", got, err, want)
	}
}

func TestString(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"a b"`: "a b", `"\u00e9\n"`: "é\n", `"é"`: "é",
		"\"\xff\"": "\uFFFD", `"\ud800"`: "\uFFFD"} {
		if got, ok := String([]byte(in)); !ok || got != want {
			t.Errorf("%s is %q %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", `"`, "1", `"a" `, `"a"b`, ` "a"`, "\"\n\"", `"\x"`, "null"} {
		if got, ok := String([]byte(in)); ok {
			t.Errorf("%s is %q", in, got)
		}
	}
}

func TestEnvelopeRefused(t *testing.T) {
	for _, in := range []string{"", "[", "{", "[1", "[1,", "[1 2]", "[]x", "[1]]", `["a]`, "null",
		strings.Repeat("[", 300)} {
		if err := EachElement([]byte(in), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q accepted", in)
		}
	}
	for _, in := range []string{"{a:1}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}}`, `{"a" 1}`, `{"a`} {
		if err := EachMember([]byte(in), func(string, []byte) error { return nil }); err == nil {
			t.Errorf("%q accepted", in)
		}
	}
}

// Each JSON array that encoding/json accepts is cut into the same elements.
func FuzzEachElement(f *testing.F) {
	for _, s := range []string{`[]`, `[1,"a",{"b":[null,true]}]`, ` [ "\"" , -1e5 ] `, `[[[]]]`, `[1`,
		`[{"operationType":"Create"}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want []json.RawMessage
		valid := json.Unmarshal([]byte(s), &want) == nil && want != nil
		var got []string
		err := EachElement([]byte(s), func(raw []byte) error {
			got = append(got, string(raw))
			return nil
		})
		if !valid || strings.Count(s, "[")+strings.Count(s, "{") > maxSkipDepth {
			return
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %v, %d elements, want %d", s, err, len(got), len(want))
		}
		for i := range want {
			if strings.TrimSpace(string(want[i])) != got[i] {
				t.Fatalf("%q: element %d is %q, want %q", s, i, got[i], want[i])
			}
		}
	})
}

// The end of a string is found wherever its quote and its escapes stand among the bytes that are looked at together.
func TestSkipStringOfEveryLength(t *testing.T) {
	for n := range 40 {
		text := strings.Repeat("a", n)
		for at := range n + 1 {
			for _, mark := range []string{"", `\"`, `\\`, "é", "\xa2\xdc"} {
				in := `"` + text[:at] + mark + text[at:] + `"`
				if got := Skip([]byte(in+`,"b"`), 0); got != len(in) {
					t.Fatalf("%s ends at %d, want %d", in, got, len(in))
				}
				if got := Skip([]byte(in[:len(in)-1]), 0); got != -1 {
					t.Fatalf("%s without its quote ends at %d", in, got)
				}
			}
		}
	}
}
