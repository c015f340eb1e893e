package filter

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// Text is the condition $text. What it searches, and in which language, follows from the collection's text index: Bind
// must be called before the filter is used.
//
// Example: {$search: "\"ssl certificate\" authority -key"} has the words ssl, certif and author, of which a document
// needs one, the phrase "ssl certificate", which it needs, and the word key, which it must not have.
type Text struct {
	search   string
	language string // "": that of the index
	opts     text.Options

	index    *TextIndex
	words    map[string]bool
	not      map[string]bool
	phrases  []string
	notThese []string
	terms    []value.Value // of words, as the index has them
}

// TextIndex is what a collection's text index says.
type TextIndex struct {
	Words *core.Words
	// Weights are those of Words.Paths; Other is that of all other texts.
	Weights []float64
	Other   float64
}

// Text returns the $text of the filter, nil if it has none.
func (f *Filter) Text() *Text { return f.text }

func (c *compiler) text(v value.Value) (node, error) {
	if v.Kind() != value.Object {
		return nil, merr.New(merr.BadValue, "$text expects an object")
	}
	t := &Text{}
	wrong := func(name, want string, v value.Value) error {
		return merr.New(merr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name, want,
			expr.TypeName(v))
	}
	for it := v.Iter(); it.Next(); {
		name, x := string(it.Key()), it.Value()
		switch name {
		case "$search", "$language":
			if x.Kind() != value.String {
				return nil, wrong(name, "string", x)
			}
			if name == "$search" {
				t.search = x.Str()
			} else if t.language = x.Str(); t.language != "" {
				if _, ok := text.LanguageOf(t.language); !ok {
					return nil, merr.New(merr.BadValue, "unsupported language: \"%s\" for text index version 3",
						t.language)
				}
			}
		case "$caseSensitive", "$diacriticSensitive":
			if x.Kind() != value.Bool {
				return nil, wrong(name, "bool", x)
			}
			if name == "$caseSensitive" {
				t.opts.Case = x.Bool()
			} else {
				t.opts.Diacritics = x.Bool()
			}
		default:
			return nil, merr.New(merr.BadValue, "extra fields in $text")
		}
	}
	switch {
	case !v.Get("$search").IsDefined():
		return nil, merr.New(merr.NoSuchKey, "Missing expected field \"$search\"")
	case c.opts.NoText:
		return nil, merr.New(17313, "$match with $text is only allowed as the first pipeline stage")
	case c.within > 0:
		return nil, merr.New(merr.BadValue, "$text can only be applied to the top level of a query, and not in $nor "+
			"or $elemMatch")
	case c.txt != nil:
		return nil, merr.New(merr.BadValue, "Too many text expressions")
	}
	c.txt = t
	return textNode{t}, nil
}

// Bind gives the condition its index.
func (t *Text) Bind(x *TextIndex) {
	t.index, t.words, t.not = x, map[string]bool{}, map[string]bool{}
	t.phrases, t.notThese, t.terms = nil, nil, nil
	l := x.Words.Language
	if t.language != "" {
		l, _ = text.LanguageOf(t.language)
	}
	for _, p := range parseSearch(t.search) {
		into := t.words
		if p.not {
			into = t.not
		}
		if p.phrase {
			if plain := t.opts.Plain(p.text); p.not {
				t.notThese = append(t.notThese, plain)
				continue // its words may occur alone
			} else if strings.TrimSpace(plain) != "" {
				t.phrases = append(t.phrases, plain)
			}
		}
		l.Terms(p.text, t.opts, func(w text.Term) bool {
			into[w.Text] = true
			return true
		})
		if !p.not {
			l.Terms(p.text, text.Options{}, func(w text.Term) bool {
				t.terms = append(t.terms, core.WordTerm(w.Text))
				return true
			})
		}
	}
}

// part is a piece of a search: words, or a phrase.
type part struct {
	text        string
	phrase, not bool
}

// parseSearch splits a search. A hyphen negates only behind a space or at the beginning.
func parseSearch(s string) (out []part) {
	for s = strings.TrimLeft(s, " \t\n"); s != ""; s = strings.TrimLeft(s, " \t\n") {
		p := part{}
		if s[0] == '-' {
			p.not, s = true, s[1:]
		}
		if s != "" && s[0] == '"' {
			end := strings.IndexByte(s[1:], '"')
			if end < 0 {
				end = len(s) - 1
			}
			p.phrase, p.text = true, s[1:1+end]
			s = s[min(len(s), end+2):]
		} else {
			end := strings.IndexAny(s, " \t\n\"")
			if end < 0 {
				end = len(s)
			}
			p.text, s = s[:end], s[end:]
		}
		if p.text != "" {
			out = append(out, p)
		}
	}
	return out
}

// textNode is the condition as a part of a filter.
type textNode struct{ *Text }

func (n textNode) match(_ *expr.Env, doc value.Value) (bool, error) {
	if n.index == nil {
		return false, errNoTextIndex()
	}
	return n.matches(doc), nil
}

func errNoTextIndex() error {
	return merr.New(merr.IndexNotFound, "text index required for $text query")
}

func (n textNode) pred() *access.Pred {
	if n.index == nil {
		return access.All()
	}
	if len(n.terms) == 0 {
		return access.None()
	}
	return access.In(access.NewPath(core.WordsPath).Element(), n.terms...)
}

func (t *Text) matches(doc value.Value) bool {
	found, refused, missing := false, false, len(t.phrases)
	var seen []bool
	if missing > 0 {
		seen = make([]bool, missing)
	}
	t.index.Words.Texts(doc, func(_ int, b []byte, l *text.Language) bool {
		s := string(b)
		if !found || len(t.not) > 0 {
			l.Terms(s, t.opts, func(w text.Term) bool {
				found = found || t.words[w.Text]
				refused = refused || t.not[w.Text]
				return !refused && (!found || len(t.not) > 0)
			})
		}
		if len(t.phrases)+len(t.notThese) > 0 && !refused {
			plain := t.opts.Plain(s)
			for i, p := range t.phrases {
				if !seen[i] && strings.Contains(plain, p) {
					seen[i] = true
					missing--
				}
			}
			for _, p := range t.notThese {
				refused = refused || strings.Contains(plain, p)
			}
		}
		return !refused
	})
	return found && !refused && missing == 0
}

// Score returns how well a document matches: the sum over the words of the search. A word counts more in a text with
// few others and in a field of more weight, and each repetition counts half of the one before.
//
// Example: "coffee" in the title "Coffee Shopping" with weight 1. The word is one of two: 1 * (0.5 * 1/2 + 0.5) = 0.75.
func (t *Text) Score(doc value.Value) float64 {
	if t.index == nil {
		return 0
	}
	type use struct{ n, sum, next float64 }
	score := 0.0
	t.index.Words.Texts(doc, func(path int, b []byte, l *text.Language) bool {
		weight := t.index.Other
		if path >= 0 {
			weight = t.index.Weights[path]
		}
		uses, total := map[string]*use{}, 0.0
		l.Terms(string(b), text.Options{Case: t.opts.Case, Diacritics: t.opts.Diacritics}, func(w text.Term) bool {
			total++
			if t.words[w.Text] {
				u := uses[w.Text]
				if u == nil {
					u = &use{next: 1}
					uses[w.Text] = u
				}
				u.n++
				u.sum += u.next
				u.next /= 2
			}
			return true
		})
		for word, u := range uses {
			boost := 1.0
			if len(word) == len(b) && strings.EqualFold(word, string(b)) {
				boost = 1.1
			}
			score += weight * u.sum * (0.5*u.n/total + 0.5) * boost
		}
		return true
	})
	return math.Min(score, math.MaxFloat64)
}
