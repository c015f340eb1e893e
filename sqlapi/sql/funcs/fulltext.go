package funcs

import (
	"bytes"
	"strings"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
)

// Full-text functions. Texts and phrases are divided into words, which are reduced to their stems by the rules of the
// text's language: that of the container's full-text policy for the path, English elsewhere. A phrase is found where
// its words follow one another.
//
// Example: FullTextContains("Two red bicycles", "Red bicycle") is true. FullTextContainsAny of the same text and
// {"term": "bycicle", "distance": 2}, "car" is true: the first term allows two letters to differ.
//
// _FullTextScore and _FullTextWordCount are in the texts that a query plan gives to clients: these compute the order of
// FullTextScore from them.
func init() {
	for _, f := range textFuncs {
		own := f.in(english)
		own.In = f.in
		register(own)
	}
	register(
		&Func{Name: "FullTextScore", Types: "**+",
			Refused: "The FullTextScore function is only allowed in the ORDER BY RANK clause."},
		&Func{Name: "RRF", Types: "*+", Refused: "'RRF' is not a recognized built-in function name."},
	)
}

var english, _ = text.LanguageOf("english")

// textFunc is a function on a text.
type textFunc struct {
	name, types string
	eval        func(s *search, words text.Words) value.Value
	corpus      bool // the arguments behind the second one describe all texts (search.corpus)
}

var textFuncs = []textFunc{
	{name: "FullTextContains", types: "s*+", eval: hasAll},
	{name: "FullTextContainsAll", types: "s*+", eval: hasAll},
	{name: "FullTextContainsAny", types: "s*+", eval: hasAny},
	{name: "_FullTextScore", types: "s*nna", eval: scoreOf, corpus: true},
	{name: "_FullTextWordCount", types: "s", eval: func(_ *search, words text.Words) value.Value {
		return value.IntOf(int64(words.Len()))
	}},
}

func hasAll(s *search, words text.Words) value.Value {
	for _, p := range s.phrases {
		if !words.Has(p) {
			return value.BoolOf(false)
		}
	}
	return value.BoolOf(true)
}

func hasAny(s *search, words text.Words) value.Value {
	for _, p := range s.phrases {
		if words.Has(p) {
			return value.BoolOf(true)
		}
	}
	return value.BoolOf(false)
}

func scoreOf(s *search, words text.Words) value.Value {
	return Num(s.score(words))
}

// in returns the function for the texts of a language.
func (t textFunc) in(l *text.Language) *Func {
	f := &Func{Name: t.name, Types: t.types}
	f.Eval = func(c *Context, a []value.Value) value.Value { return t.call(l, &searchSite{}, c, a) }
	f.Prepare = func(_ []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		site := &searchSite{fixed: true}
		for _, is := range isConst[min(1, len(isConst)):] {
			site.fixed = site.fixed && is
		}
		return func(c *Context, a []value.Value) value.Value { return t.call(l, site, c, a) }
	}
	f.parseTypes()
	return f
}

func (t textFunc) call(l *text.Language, site *searchSite, c *Context, a []value.Value) value.Value {
	s := c.search(l, site, a[1:], t.corpus)
	if s.bad {
		return value.Value{}
	}
	return t.eval(s, s.reader.Read(a[0].Bytes()))
}

// searchSite is the place of a call in the query. fixed is true if the phrases are the same for all items.
type searchSite struct{ fixed bool }

// search is what one call searches for: its phrases, and for a score what is known of all texts.
type search struct {
	reader  *text.Reader
	phrases []text.Phrase
	corpus  text.Corpus
	counts  []int
	bad     bool // the arguments are no phrases

	key    []value.Value // copies of the arguments
	misses int
}

// search returns the search of a call. args are its arguments behind the text. Usually they are the same for all items.
// If they are not, the readers of their own keep the shared one from growing with each item.
func (c *Context) search(l *text.Language, site *searchSite, args []value.Value, corpus bool) *search {
	s := c.searches[site]
	if s == nil {
		if c.searches == nil {
			c.searches = map[*searchSite]*search{}
		}
		s = &search{}
		c.searches[site] = s
	} else if site.fixed || s.same(args) {
		return s
	}
	s.reader = c.Reader(l)
	if s.misses++; s.misses > maxMisses {
		s.reader = NewReader(l)
	}
	s.key, s.phrases, s.bad = s.key[:0], s.phrases[:0], false
	for _, v := range args {
		s.key = append(s.key, v.Clone())
	}
	terms := args
	if corpus {
		terms = args[:1]
		s.corpus = text.Corpus{Texts: args[1].Float(), Words: args[2].Float()}
		for it := args[3].Iter(); it.Next(); {
			s.corpus.With = append(s.corpus.With, it.Value().Float())
		}
	}
	wants, err := Wants(nil, terms, corpus)
	if err != nil {
		s.bad = true
		if err != errNoWant && c.Fail != nil {
			c.Fail(err)
		}
	}
	for _, w := range wants {
		s.phrases = append(s.phrases, s.reader.Phrase(w))
	}
	return s
}

// same reports whether the arguments are those of the last call.
func (s *search) same(args []value.Value) bool {
	if len(args) != len(s.key) {
		return false
	}
	for i := range args {
		if args[i].Kind() != s.key[i].Kind() || args[i].IsNumber() && args[i].Float() != s.key[i].Float() ||
			!bytes.Equal(args[i].Bytes(), s.key[i].Bytes()) {
			return false
		}
	}
	return true
}

func (s *search) score(words text.Words) float64 {
	s.counts = s.counts[:0]
	for _, p := range s.phrases {
		s.counts = append(s.counts, words.Count(p))
	}
	return s.corpus.Score(s.counts, words.Len())
}

// TextOptions returns how texts of a language are divided into words. Common words aren't words in English only, as in
// the service.
func TextOptions(l *text.Language) text.Options { return text.Options{Common: l != english} }

// NewReader returns a reader of texts of a language.
func NewReader(l *text.Language) *text.Reader { return l.NewReader(TextOptions(l)) }

// Reader returns the reader that all functions of an execution share for the texts of a language; nil is English.
func (c *Context) Reader(l *text.Language) *text.Reader {
	if l == nil {
		l = english
	}
	r := c.readers[l]
	if r == nil {
		if c.readers == nil {
			c.readers = map[*text.Language]*text.Reader{}
		}
		r = NewReader(l)
		c.readers[l] = r
	}
	return r
}

// errNoWant says that an argument is no phrase.
var errNoWant error = status.New(status.BadRequest, "The argument is no phrase.")

// IsNoWant reports whether an error of Wants says that an argument is no phrase.
func IsNoWant(err error) bool { return err == errNoWant }

// Wants appends the phrases of arguments: strings, objects {"term": phrase, "distance": 0 to 2}, and with lists arrays
// of these. An argument of another kind is errNoWant.
func Wants(dst []text.Want, args []value.Value, lists bool) ([]text.Want, error) {
	for _, v := range args {
		switch v.Kind() {
		case value.String:
			dst = append(dst, text.Want{Text: v.Str()})
		case value.Object:
			term, d := v.Get("term"), v.Get("distance")
			if term.Kind() != value.String || d.IsDefined() && !d.IsNumber() {
				return dst, errNoWant
			}
			n, whole := ToInt(d)
			if d.IsDefined() && (!whole || n < 0 || n > 2) {
				return dst, status.New(status.BadRequest, "The distance of a fuzzy search must be 0, 1 or 2.")
			}
			dst = append(dst, text.Want{Text: term.Str(), Distance: n})
		case value.Array:
			if !lists {
				return dst, errNoWant
			}
			for it := v.Iter(); it.Next(); {
				var err error
				if dst, err = Wants(dst, []value.Value{it.Value()}, false); err != nil {
					return dst, err
				}
			}
		default:
			return dst, errNoWant
		}
	}
	return dst, nil
}

// IsFullText reports whether a function reads its first argument as a text of a language.
func IsFullText(name string) bool {
	if strings.EqualFold(name, "FullTextScore") {
		return true
	}
	f := Lookup(name)
	return f != nil && f.In != nil
}
