package text

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Want is a word or phrase to search for. The words of a phrase must follow one another in the text. Distance is the
// number of letters by which each of them may differ: letters that are exchanged, left out or added.
type Want struct {
	Text     string
	Distance int
}

// Phrase is a Want as a Reader knows it: its words, by their numbers. An empty one has no words, and no text has it.
type Phrase []int32

// Reader finds phrases in texts of one language. It determines the stem of each word that it meets only once, and
// remembers whether it is one of the words that are searched for. So a search through many texts costs little more than
// finding where words begin and end. A Reader isn't safe for concurrent use.
//
// Example: with the phrases "red bicycle" and "bikes", a Reader knows the words red (0), bicycl (1) and bike (2). The
// text "Two red bicycles" is the list of kinds [nothing, 0, 1]. The first phrase begins at its second word.
type Reader struct {
	l *Language
	o Options

	wanted []wanted
	kinds  [][]int32        // what a word can be: numbers of wanted words; the first one has none
	known  map[string]int32 // the kind of a word as it is written; -1: it is too common to be a word

	texts [2]read // the last ones
	next  int     // the one of texts to replace next
}

// wanted is a word that is searched for.
type wanted struct {
	term     string
	distance int
}

// read is a text whose words are known.
type read struct {
	text  []byte
	kinds []int32
	ok    bool
}

// Bounds of what a Reader remembers.
const (
	mostKnown   = 1 << 16 // words
	longestWord = 64      // bytes of a word that is remembered
)

// NewReader returns a Reader without phrases.
func (l *Language) NewReader(o Options) *Reader {
	return &Reader{l: l, o: o, kinds: [][]int32{nil}, known: map[string]int32{}}
}

// Phrase adds a phrase to those that the reader can find. What it has read before, it reads again.
func (r *Reader) Phrase(w Want) Phrase {
	var p Phrase
	r.l.Terms(w.Text, r.o, func(t Term) bool {
		x := wanted{t.Text, w.Distance}
		i := slices.Index(r.wanted, x)
		if i < 0 {
			i = len(r.wanted)
			r.wanted = append(r.wanted, x)
			clear(r.known)
			r.kinds = r.kinds[:1]
			r.texts = [2]read{}
		}
		p = append(p, int32(i))
		return true
	})
	return p
}

// Terms returns the words of a phrase, and whether a text must have exactly these.
func (r *Reader) Terms(p Phrase) (terms []string, exact bool) {
	exact = true
	for _, i := range p {
		terms = append(terms, r.wanted[i].term)
		exact = exact && r.wanted[i].distance == 0
	}
	return terms, exact
}

// Words are the words of a text. They are valid until the Reader has read two further texts.
type Words struct {
	r     *Reader
	kinds []int32
}

// Read returns the words of a text.
func (r *Reader) Read(text []byte) Words {
	for i := range r.texts {
		if t := &r.texts[i]; t.ok && bytes.Equal(t.text, text) {
			return Words{r, t.kinds}
		}
	}
	t := &r.texts[r.next]
	r.next = (r.next + 1) % len(r.texts)
	t.text, t.kinds, t.ok = append(t.text[:0], text...), t.kinds[:0], true
	r.l.words(string(text), func(raw string) bool {
		if k := r.kind(raw); k >= 0 {
			t.kinds = append(t.kinds, k)
		}
		return true
	})
	return Words{r, t.kinds}
}

// kind returns the kind of a word as it is written, -1 for one that is too common to be a word.
func (r *Reader) kind(raw string) int32 {
	if k, ok := r.known[raw]; ok {
		return k
	}
	k := int32(-1)
	if term := r.l.term(raw, r.o); term != "" {
		k = r.kindOf(term)
	}
	if len(r.known) < mostKnown && len(raw) <= longestWord {
		r.known[strings.Clone(raw)] = k // not raw: it keeps its whole text
	}
	return k
}

// kindOf returns the kind of a term.
func (r *Reader) kindOf(term string) int32 {
	var is []int32
	for i, w := range r.wanted {
		if w.term == term || w.distance > 0 && within(w.term, term, w.distance) {
			is = append(is, int32(i))
		}
	}
	if is == nil {
		return 0
	}
	for k := range r.kinds {
		if slices.Equal(r.kinds[k], is) {
			return int32(k)
		}
	}
	r.kinds = append(r.kinds, is)
	return int32(len(r.kinds) - 1)
}

// Len returns the number of words.
func (w Words) Len() int { return len(w.kinds) }

// Count returns how often a phrase occurs. Two occurrences may overlap.
func (w Words) Count(p Phrase) int {
	n := 0
	for at := w.find(p, 0); at >= 0; at = w.find(p, at+1) {
		n++
	}
	return n
}

// Has reports whether a phrase occurs.
func (w Words) Has(p Phrase) bool { return w.find(p, 0) >= 0 }

// find returns the first position from at on where a phrase begins, -1 if there is none.
func (w Words) find(p Phrase, at int) int {
	if len(p) == 0 {
		return -1
	}
next:
	for ; at+len(p) <= len(w.kinds); at++ {
		for i, word := range p {
			if k := w.kinds[at+i]; k == 0 || !slices.Contains(w.r.kinds[k], word) {
				continue next
			}
		}
		return at
	}
	return -1
}

// within reports whether two words differ by at most n letters: the Levenshtein distance, which counts letters that are
// exchanged, left out and added.
func within(a, b string, n int) bool {
	if d := utf8.RuneCountInString(a) - utf8.RuneCountInString(b); d > n || -d > n {
		return false
	}
	x, y := []rune(a), []rune(b)
	if len(x) > longestStem || len(y) > longestStem {
		return a == b
	}
	row := make([]int, len(y)+1) // distances between the first letters of x and those of y
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range y {
			d := diagonal
			if x[i] != y[j] {
				d = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], d
			least = min(least, d)
		}
		if least > n {
			return false
		}
	}
	return row[len(y)] <= n
}
