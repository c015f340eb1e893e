package collate

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/value"
)

// TestSort compares with ICU. The argument of "sort" is the name of a list of words and options; the words are those of
// the expected output.
func TestSort(t *testing.T) {
	words := map[string][]string{}
	datadriven.RunTest(t, "testdata/icu", func(t *testing.T, d *datadriven.TestData) string {
		name := d.CmdArgs[0].Key
		if words[name] == nil {
			words[name] = wordsIn(t, d.Expected)
		}
		c := New(options(t, d))
		if c == nil {
			t.Fatalf("%s: unknown locale", d.CmdArgs[1])
		}
		list := slices.Clone(words[name])
		slices.SortFunc(list, func(a, b string) int {
			if r := c.CompareStrings([]byte(a), []byte(b)); r != 0 {
				return r
			}
			return compareUTF16(a, b)
		})
		return lines(list, func(a, b string) bool { return c.CompareStrings([]byte(a), []byte(b)) == 0 })
	})
}

// options reads the arguments of a case: words, locale, strength, others.
func options(t *testing.T, d *datadriven.TestData) Options {
	locale := d.CmdArgs[1].Key
	if len(d.CmdArgs[1].Vals) > 0 {
		locale += "=" + d.CmdArgs[1].Vals[0]
	}
	o, ok := Defaults(locale)
	if !ok {
		t.Fatalf("%s: unknown locale", locale)
	}
	o.Strength, _ = strconv.Atoi(d.CmdArgs[2].Key)
	for _, a := range d.CmdArgs[3:] {
		switch a.Key {
		case "caseLevel":
			o.CaseLevel = true
		case "upper", "lower":
			o.CaseFirst = a.Key
		case "numeric":
			o.Numeric = true
		case "shifted":
			o.Shifted = true
		case "space":
			o.SpaceOnly = true
		case "backwards":
			o.Backwards = true
		}
	}
	return o
}

func wordsIn(t *testing.T, s string) (out []string) {
	for s = strings.TrimSpace(s); s != ""; {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		w, err := strconv.Unquote(q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, w)
		s = strings.TrimLeft(s[len(q):], " =<\n")
	}
	return out
}

// compareUTF16 is Java's order of strings.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// lines writes a sorted list as the cases have it.
func lines(list []string, equal func(a, b string) bool) string {
	var out, line strings.Builder
	for i, w := range list {
		w = `"` + strings.NewReplacer("\u00a0", `\u00a0`, "\u0378", `\u0378`, "\uffff", `\uffff`).Replace(w) + `"`
		if width(line.String())+width(w) > 100 {
			out.WriteString(strings.TrimSpace(line.String()) + "\n")
			line.Reset()
		}
		switch {
		case i == 0:
		case equal(list[i-1], list[i]):
			line.WriteString(" = ")
		default:
			line.WriteString(" < ")
		}
		line.WriteString(w)
	}
	return out.String() + strings.TrimSpace(line.String()) + "\n"
}

// width is the length of a string in Java.
func width(s string) int { return len(utf16.Encode([]rune(s))) }

// TestEveryLocale opens all locales, so that all of the data is read.
func TestEveryLocale(t *testing.T) {
	for name := range load().locales {
		o, _ := Defaults(name)
		c := New(o)
		if c.CompareStrings([]byte("a"), []byte("b")) >= 0 {
			t.Errorf("%s: a isn't before b", name)
		}
	}
}

func TestValues(t *testing.T) {
	c := New(Options{Locale: "en", Strength: 2})
	lower := value.MakeArray([]value.Value{value.StringOf("x"), value.Int32Of(1)})
	upper := value.MakeArray([]value.Value{value.StringOf("X"), value.DoubleOf(1)})
	if c.Compare(lower, upper) != 0 || c.Hash(lower) != c.Hash(upper) {
		t.Error("arrays of equal strings differ")
	}
	if (*Collation)(nil).Compare(lower, upper) == 0 {
		t.Error("without a collation they are equal")
	}
	if New(Options{Locale: "xx"}) != nil {
		t.Error("an unknown locale was opened")
	}
}

func BenchmarkCompare(b *testing.B) {
	c := New(Options{Locale: "en", Strength: 2})
	x, y := []byte("a sentence of six short words"), []byte("A sentence of six short Words")
	b.ReportAllocs()
	for b.Loop() {
		c.CompareStrings(x, y)
	}
}

// FuzzKey: the keys of any two texts compare as the texts do, and no text makes the code panic.
func FuzzKey(f *testing.F) {
	f.Add([]byte("côte"), []byte("Cote"))
	f.Add([]byte("a\u0323\u030a"), []byte("\xff10"))
	c := New(Options{Locale: "da", Strength: 5, Numeric: true, Shifted: true, CaseLevel: true})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := value.StringBytes(c.AppendKey(nil, a)), value.StringBytes(c.AppendKey(nil, b))
		if value.CompareBSON(x, y) != c.CompareStrings(a, b) && string(a) != string(b) {
			t.Errorf("%q %q", a, b)
		}
	})
}
