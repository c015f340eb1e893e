package json

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuoted(t *testing.T) {
	for _, s := range []string{"", "plain", "eight by", "a\"b", `back\slash`, "tab\tnew\nline\b\f",
		"\x00\x1f\x7f", "é", "日本語テキスト", "😀 mixed \" é", "12345678\"", "1234567é"} {
		got := AppendText([]byte("x"), []byte(s))[1:]
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != s {
			t.Errorf("%q is written as %s (%v)", s, got, err)
		}
		if str := string(AppendString(nil, s)); str != string(got) {
			t.Errorf("%q: %s as a string, %s as bytes", s, str, got)
		}
		if name := string(AppendName(nil, []byte(s))); name != string(got)+":" {
			t.Errorf("%q: the name %s", s, name)
		}
		ascii := AppendASCII(nil, got)
		other := strings.ContainsFunc(string(ascii), func(r rune) bool { return r >= utf8.RuneSelf })
		if err := json.Unmarshal(ascii, &back); err != nil || back != s || other {
			t.Errorf("%q in ASCII is %s (%v)", s, ascii, err)
		}
	}
	if got := string(AppendString(nil, "a\xffb\xe3\x81é")); got != "\"a\uFFFDb\uFFFD\uFFFDé\"" {
		t.Errorf("bytes that aren't UTF-8: %s", got)
	}
}

func TestUnquoted(t *testing.T) {
	const all = Surrogates | RawBytes
	for _, c := range []struct {
		in    string
		l     Lenient
		want  string
		end   int
		fault Fault
	}{
		{`""`, Strict, "", 2, ""},
		{`"abc"x`, Strict, "abc", 5, ""},
		{`"\"\\\/\b\f\n\r\t"`, Strict, "\"\\/\b\f\n\r\t", 18, ""},
		{`"\u00e9\u0000"`, Strict, "é\x00", 14, ""},
		{`"\uD83D\uDE00"`, Strict, "😀", 14, ""},
		{`"long enough \u0041nd 8 bytes more"`, Strict, "long enough And 8 bytes more", 35, ""},
		{`"\ud83d"`, Strict, "", 1, LoneSurrogate},
		{`"\ud83d"`, all, "\uFFFD", 8, ""},
		{`"\ud83d\u0041"`, Surrogates, "\uFFFDA", 14, ""},
		{`"\ude00\ud83d"`, Surrogates, "\uFFFD\uFFFD", 14, ""},
		{"\"a\xffb\"", Strict, "", 1, NotUTF8},
		{"\"a\xffb\"", RawBytes, "a\uFFFDb", 5, ""},
		{"\"é\xe3\\n\"", all, "é\uFFFD\n", 7, ""},
		{``, all, "", 0, NoString},
		{`a`, all, "", 0, NoString},
		{`"`, all, "", 1, NoEnd},
		{`"abc\`, all, "abc", 4, NoEnd},
		{"\"ab\n\"", all, "ab", 3, ControlChar},
		{`"\x41"`, all, "", 1, UnknownEscape},
		{`"\u12"`, all, "", 1, BadHex},
		{`"\u12g4"`, all, "", 1, BadHex},
		{`"\u+123"`, all, "", 1, BadHex},
	} {
		got, end, fault := AppendUnquoted([]byte("x"), []byte(c.in), 0, c.l)
		if string(got) != "x"+c.want || end != c.end || fault != c.fault {
			t.Errorf("%q: %q, %d, %v; want %q, %d, %v", c.in, got[1:], end, fault, c.want, c.end, c.fault)
		}
	}
}

func TestPlainEnd(t *testing.T) {
	for _, in := range []string{`"abc"x`, `""`, `"long enough for words"`} {
		if end := PlainEnd([]byte(in), 1); end < 1 || in[end] != '"' {
			t.Errorf("%s ends at %d", in, end)
		}
		if a, b := PlainEnd([]byte(in), 1), UnescapedEnd([]byte(in), 1); a != b {
			t.Errorf("%s ends at %d and %d", in, a, b)
		}
	}
	if end := UnescapedEnd([]byte(`"é"`), 1); end != 3 {
		t.Errorf("é ends at %d", end)
	}
	for _, in := range []string{`"`, `"a`, `"a\n"`, "\"\n\"", `"é"`} {
		if end := PlainEnd([]byte(in), 1); end != 0 {
			t.Errorf("%s ends at %d", in, end)
		}
	}
}

// TestIsPlain compares with what AppendString writes: plain text is written as it is.
func TestIsPlain(t *testing.T) {
	for _, in := range []string{"", "a", "eight888", "more than eight bytes", "\x7f", `"`, `more than eight bytes"`,
		`back\slash`, "tab\t", "\x00", "é", "eight888é", "\xff"} {
		if got, want := IsPlain(in), string(AppendString(nil, in)) == `"`+in+`"` && isASCII(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]any{
		"0": int64(0), "-1": int64(-1), "9223372036854775807": int64(math.MaxInt64),
		"-9223372036854775808": int64(math.MinInt64),
		"9223372036854775808":  9223372036854775808.0, "-0": math.Copysign(0, -1), "1.0": 1.0,
		"-0.0": math.Copysign(0, -1), "1e2": 100.0,
		"1E-2": 0.01, "1e+2": 100.0, "123456789012345678901234567890": 1.2345678901234568e29,
		"1e999": math.Inf(1), "4.35": 4.35,
		"0.1e-400": 0.0, "18446744073709551616": 18446744073709551616.0, "1e99999999999999999999": math.Inf(1),
	} {
		n, end, ok := ScanNumber([]byte(in+",1"), 0)
		if !ok || end != len(in) {
			t.Errorf("%s ends at %d, %v", in, end, ok)
		}
		if i, isInt := n.Int(); isInt {
			if any(i) != want {
				t.Errorf("%s is %d", in, i)
			}
			continue
		}
		f, ok := n.Float([]byte(in))
		w, isFloat := want.(float64)
		if !isFloat || ok == math.IsInf(w, 0) || ok && math.Float64bits(f) != math.Float64bits(w) {
			t.Errorf("%s is %v %v, want %v", in, f, ok, want)
		}
	}
	for _, in := range []string{"", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "e1", "a", "-a", "1.e2"} {
		if n, end, ok := ScanNumber([]byte(in), 0); ok {
			t.Errorf("%q is a number: %+v up to %d", in, n, end)
		}
	}
}

// FuzzScalar: strings and numbers are read as encoding/json reads them.
func FuzzScalar(f *testing.F) {
	for _, s := range []string{`"a\ud83d\ude00\ud83d\n"`, "\"\xff\x80é\"", "-12.5e-3", "12345678901234567890",
		`"\u00`, "0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || strings.TrimSpace(s) != s {
			return
		}
		if s[0] == '"' {
			var want string
			valid := json.Unmarshal([]byte(s), &want) == nil
			got, ok := String([]byte(s))
			if ok != valid || ok && got != want {
				t.Fatalf("%q: %q %v, want %q %v", s, got, ok, want, valid)
			}
			return
		}
		var want json.Number
		valid := json.Unmarshal([]byte(s), &want) == nil && s != "null"
		n, end, ok := ScanNumber([]byte(s), 0)
		if ok = ok && end == len(s); ok != valid {
			t.Fatalf("%q: %v, want %v", s, ok, valid)
		}
		if !ok {
			return
		}
		i, isInt := n.Int()
		if w, err := strconv.ParseInt(s, 10, 64); isInt != (err == nil && s != "-0") || isInt && i != w {
			t.Fatalf("%q: %d %v, want %d", s, i, isInt, w)
		}
		x, ok := n.Float([]byte(s))
		if w, err := strconv.ParseFloat(s, 64); ok != (err == nil) || ok && math.Float64bits(x) != math.Float64bits(w) {
			t.Fatalf("%q: %v %v, want %v", s, x, ok, w)
		}
	})
}
