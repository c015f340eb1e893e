// Package collate orders strings by the rules of languages: the Unicode Collation Algorithm with the tables of CLDR, as
// ICU has it. It knows no protocol. The zero Collation, nil, is the order of the strings' bytes.
//
// A string becomes a key whose bytes compare as the strings do. The key has one part for each level of the comparison:
// the letters, their accents, their case. Strength says how many of them count.
//
// Example: with {Locale: "en", Strength: 2} the strings "cote" and "Cote" have the same key, and "coté" has a greater
// one, because it differs from them at the second level.
package collate

import (
	"bytes"
	"sync"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// Options choose a collation.
type Options struct {
	Locale        string `json:"locale"`
	Strength      int    `json:"strength"` // 1 letters, 2 accents, 3 case, 4 what Shifted ignores, 5 code points
	CaseLevel     bool   `json:"caseLevel,omitempty"`
	CaseFirst     string `json:"caseFirst,omitempty"` // upper, lower; "": off
	Numeric       bool   `json:"numeric,omitempty"`   // digits are compared as numbers
	Shifted       bool   `json:"shifted,omitempty"`   // white space and punctuation count at level 4 only
	SpaceOnly     bool   `json:"spaceOnly,omitempty"` // Shifted is for white space only
	Backwards     bool   `json:"backwards,omitempty"` // accents are compared from the end
	Normalization bool   `json:"normalization,omitempty"`
}

// Collation is an order of strings. It is safe for concurrent use. A nil Collation is the order of bytes.
type Collation struct {
	o   Options
	loc *locale
}

// Defaults returns the options that a locale has by itself. ok is false for an unknown locale.
func Defaults(name string) (o Options, ok bool) {
	l := load().locales[name]
	if l == nil {
		return o, false
	}
	return l.defaults, true
}

// New returns a collation, nil if the locale is unknown.
func New(o Options) *Collation {
	l := load().locales[o.Locale]
	if l == nil {
		return nil
	}
	l.once.Do(l.expand)
	return &Collation{o, l}
}

// Options returns the options of a collation that isn't nil.
func (c *Collation) Options() Options { return c.o }

// scratch is the working memory of a comparison.
type scratch struct {
	runes []rune
	ces   []element
	keys  [2][]byte
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// AppendKey appends the key of a string.
func (c *Collation) AppendKey(dst, s []byte) []byte {
	w := pool.Get().(*scratch)
	dst = c.appendKey(dst, s, w)
	pool.Put(w)
	return dst
}

// CompareStrings compares two strings.
func (c *Collation) CompareStrings(a, b []byte) int {
	if c == nil || bytes.Equal(a, b) {
		return bytes.Compare(a, b)
	}
	w := pool.Get().(*scratch)
	for i, s := range [2][]byte{a, b} {
		w.keys[i] = c.appendKey(w.keys[i][:0], s, w)
	}
	r := bytes.Compare(w.keys[0], w.keys[1])
	pool.Put(w)
	return r
}

// Key returns a value with every string replaced by its key, also in arrays and objects. Other values are returned
// unchanged. So the keys of two values compare as the values do.
func (c *Collation) Key(v value.Value) value.Value {
	if c == nil {
		return v
	}
	switch v.Kind() {
	case value.String, value.Symbol:
		return value.StringBytes(c.AppendKey(nil, v.Bytes()))
	case value.Array, value.Object:
		at, b := bson.Begin(make([]byte, 0, 2*len(v.Bytes())))
		for it := v.Iter(); it.Next(); {
			b = value.AppendElement(b, it.Key(), c.Key(it.Value()))
		}
		b = bson.End(b, at)
		if v.Kind() == value.Array {
			return value.ArrayOf(b)
		}
		return value.ObjectOf(b)
	}
	return v
}

// Affects reports whether a value contains strings, or may do so, and thus compares differently than by bytes.
func Affects(v value.Value) bool {
	switch v.Kind() {
	case value.String, value.Symbol, value.Array, value.Object:
		return true
	}
	return false
}

// Compare is value.CompareBSON with strings compared by the collation.
func (c *Collation) Compare(a, b value.Value) int {
	if c == nil || !Affects(a) || !Affects(b) {
		return value.CompareBSON(a, b)
	}
	if text(a) && text(b) {
		return c.CompareStrings(a.Bytes(), b.Bytes())
	}
	return value.CompareBSON(c.Key(a), c.Key(b))
}

func text(v value.Value) bool { return v.Kind() == value.String || v.Kind() == value.Symbol }

// Hash is value.HashBSON with equal hashes of strings that the collation equates.
func (c *Collation) Hash(v value.Value) uint64 {
	if c == nil || !Affects(v) {
		return value.HashBSON(v)
	}
	return value.HashBSON(c.Key(v))
}
