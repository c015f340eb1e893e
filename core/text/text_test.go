package text

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTerms runs testdata. "terms" has the language and options as arguments, and a text on each line.
func TestTerms(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l, ok := LanguageOf(d.CmdArgs[0].Key)
			if !ok {
				return "no such language\n"
			}
			o := Options{Case: d.HasArg("case"), Diacritics: d.HasArg("diacritics")}
			var b strings.Builder
			for _, line := range strings.Split(d.Input, "\n") {
				var words []string
				l.Terms(line, o, func(t Term) bool {
					words = append(words, t.Text)
					return true
				})
				b.WriteString(strings.Join(words, " ") + "\n")
			}
			return b.String()
		})
	})
}

// FuzzTerms: every text has terms that are parts of words, in every language.
func FuzzTerms(f *testing.F) {
	f.Add("The coffees we're drinking", "en")
	f.Add("\xff\u0301é-x", "tr")
	f.Fuzz(func(t *testing.T, s, lang string) {
		l, ok := LanguageOf(lang)
		if !ok {
			l, _ = LanguageOf("english")
		}
		l.Terms(s, Options{}, func(x Term) bool {
			if x.Text == "" || !strings.Contains(s, x.Raw) {
				t.Fatalf("%q of %q", x, s)
			}
			return true
		})
	})
}
