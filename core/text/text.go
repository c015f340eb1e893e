// Package text finds the words of texts: it splits a text, drops the words that are too common to be searched for, and
// reduces the others to stems, in fifteen languages. It is the only importer of the stemmers.
//
// Example: in English "The coffees we're drinking" has the terms "coffe" and "drink". "the" and "we're" are too common.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"golang.org/x/text/unicode/norm"
)

// Language is a language with its stemmer and its common words. None, the zero value, has neither.
type Language struct {
	name   string
	stem   func(*snowballstem.Env) bool
	common map[string]bool
}

// LanguageOf returns a language by its English name or its code of ISO 639-1; "none" is one, too.
func LanguageOf(name string) (*Language, bool) {
	l, ok := languages[strings.ToLower(name)]
	return l, ok
}

// Name returns the English name of the language.
func (l *Language) Name() string { return l.name }

// Options say what differences between words count, and which words there are.
type Options struct {
	Case       bool // "Cafe" isn't "cafe"
	Diacritics bool // "café" isn't "cafe"
	Common     bool // common words are words, too
}

// Term is a word of a text.
type Term struct {
	Text string // the stem; without Options.Case in lower case, without Options.Diacritics without marks
	Raw  string // as it is written
}

// Terms calls f with each word of s, until f returns false. Words that are too common are left out, unless
// Options.Common says otherwise.
func (l *Language) Terms(s string, o Options, f func(Term) bool) {
	l.words(s, func(raw string) bool {
		word := l.term(raw, o)
		return word == "" || f(Term{word, raw})
	})
}

// words calls f with each word of s as it is written, until f returns false.
func (l *Language) words(s string, f func(raw string) bool) {
	for len(s) > 0 {
		from := strings.IndexFunc(s, func(r rune) bool { return !l.divides(r) })
		if from < 0 {
			return
		}
		s = s[from:]
		to := strings.IndexFunc(s, l.divides)
		if to < 0 {
			to = len(s)
		}
		if !f(s[:to]) {
			return
		}
		s = s[to:]
	}
}

// term returns the term of a word as it is written, "" for one that is too common.
func (l *Language) term(raw string, o Options) string {
	word := strings.ToLower(raw)
	if !o.Common && l.common[word] {
		return ""
	}
	if o.Case {
		word = raw
	}
	if word = l.Stem(word); !o.Diacritics {
		word = Fold(word)
	}
	return word
}

// divides reports whether a character isn't part of a word.
func (l *Language) divides(r rune) bool {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return false
		case r == '\'':
			return l.name != "english"
		}
		return true
	}
	return !unicode.In(r, unicode.L, unicode.N, unicode.M)
}

// longestStem is the length in bytes of the longest word that is reduced to a stem.
const longestStem = 256

// Stem returns the stem of a word.
func (l *Language) Stem(word string) string {
	if l.stem == nil || len(word) > longestStem {
		return word
	}
	env := snowballstem.NewEnv(word)
	l.stem(env)
	return env.Current()
}

// Fold removes the marks of letters: "é" becomes "e".
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return fold(s)
		}
	}
	return s
}

func fold(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Plain returns s in the form in which phrases are compared.
func (o Options) Plain(s string) string {
	if !o.Case {
		s = strings.ToLower(s)
	}
	if !o.Diacritics {
		s = Fold(s)
	}
	return s
}
