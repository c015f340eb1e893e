package text

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTerms runs testdata. "terms" has the language and options as arguments, and a text on each line. "search" has
// phrases on its lines, and on the last one a text.
func TestTerms(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l, ok := LanguageOf(d.CmdArgs[0].Key)
			if !ok {
				return "no such language\n"
			}
			o := Options{Case: d.HasArg("case"), Diacritics: d.HasArg("diacritics"), Common: d.HasArg("common")}
			var b strings.Builder
			if d.Cmd == "search" {
				search(&b, l.NewReader(o), strings.Split(d.Input, "\n"))
				return b.String()
			}
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

// search writes how often each phrase of the lines occurs in the last one. Each is read before all phrases are known,
// and again.
func search(b *strings.Builder, r *Reader, lines []string) {
	text := []byte(lines[len(lines)-1])
	for range 2 {
		b.Reset()
		for _, line := range lines[:len(lines)-1] {
			distance, phrase, _ := strings.Cut(line, ":")
			p := r.Phrase(Want{Text: phrase, Distance: int(distance[0] - '0')})
			words := r.Read(text)
			terms, exact := r.Terms(p)
			fmt.Fprintf(b, "%s: %d %v", phrase, words.Count(p), terms)
			if words.Has(p) != (words.Count(p) > 0) {
				b.WriteString(" Has is wrong")
			}
			b.WriteString(map[bool]string{true: "\n", false: "~\n"}[exact])
		}
		fmt.Fprintf(b, "%d words\n", r.Read(text).Len())
	}
}

// Scores by hand: ln(4.4) * 2.2 / 1.75, and the sum for two phrases.
func TestScore(t *testing.T) {
	c := Corpus{Texts: 10, Words: 80, With: []float64{2, 5}}
	for _, x := range []struct {
		counts []int
		words  int
		want   float64
	}{
		{[]int{1, 0}, 4, 1.862589},  // ln(1 + 8.5/2.5) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4/8))
		{[]int{0, 1}, 8, 0.693147},  // ln(1 + 5.5/5.5) * 2.2 / (1 + 1.2)
		{[]int{3, 1}, 8, 3.021383},  // 1.481605 * 3 * 2.2 / (3 + 1.2), and the line before
		{[]int{1, 0}, 40, 0.561988}, // 1.481605 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 5))
		{[]int{0, 0}, 8, 0},
	} {
		if got := c.Score(x.counts, x.words); math.Abs(got-x.want) > 1e-4 {
			t.Errorf("%v of %d words: %f, wanted %f", x.counts, x.words, got, x.want)
		}
	}
	for _, c := range []Corpus{{}, {Texts: 1, With: []float64{5}}, {Texts: 3, Words: 9}} {
		if got := c.Score([]int{2}, 3); math.IsNaN(got) || got < 0 {
			t.Errorf("%+v: %f", c, got)
		}
	}
}

// A text is read the same with a cache of words as without, and words differ by the letters that within counts.
func FuzzSearch(f *testing.F) {
	f.Add("Two red bicycles", "red bicycle", "bycicle")
	f.Add("\xff a a", "a", "")
	f.Fuzz(func(t *testing.T, s, a, b string) {
		l, _ := LanguageOf("english")
		r := l.NewReader(Options{})
		p := r.Phrase(Want{Text: a})
		r.Read([]byte(s))
		q := r.Phrase(Want{Text: b, Distance: 2})
		words := r.Read([]byte(s))
		n := 0
		l.Terms(s, Options{}, func(Term) bool { n++; return true })
		alone := l.NewReader(Options{})
		again := alone.Phrase(Want{Text: a})
		if words.Len() != n || words.Count(p) != alone.Read([]byte(s)).Count(again) {
			t.Fatalf("%q in %q: %d of %d words", a, s, words.Count(p), words.Len())
		}
		if exact := r.Phrase(Want{Text: b}); r.Read([]byte(s)).Has(exact) && !r.Read([]byte(s)).Has(q) {
			t.Fatalf("%q in %q exactly, but not nearly", b, s)
		}
		if within(a, b, 2) != within(b, a, 2) || !within(a, a, 0) {
			t.Fatalf("%q and %q", a, b)
		}
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
