package index

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
)

// Entries of words. The policy's wordIndexes have at most one rule. It says which strings of an item are texts; each
// term of them gets an entry, as if the item had an array of all terms at the path WordsPath. No field has such a name.
// So a condition on terms is an ordinary condition on that path.
//
// Example: the rule {paths: ["title"], language: "english"} gives {title: "The coffees"} the entry WordsPath = "coffe".

// WordsPath is the name of the path of an item's terms.
const WordsPath = "\x00words"

// Words is a compiled rule: which texts an item has.
type Words struct {
	Paths    [][]string // with dots split; names of stored fields. An array on the path stands for its elements
	All      bool       // all strings are texts
	Language *text.Language
	Override string // the field of an object that names the language of the object's texts; "": none
}

// WordsJSON is a rule in the policy.
type WordsJSON struct {
	Paths    [][]string `json:"paths,omitempty"`
	All      bool       `json:"all,omitempty"`
	Language string     `json:"language"`
	Override string     `json:"override,omitempty"`
}

// Compile returns the compiled rule, nil if its language is unknown.
func (j *WordsJSON) Compile() *Words {
	l, ok := text.LanguageOf(j.Language)
	if !ok {
		return nil
	}
	return &Words{Paths: j.Paths, All: j.All, Language: l, Override: j.Override}
}

// addWords compiles the policy's wordIndexes. A malformed rule is ignored, like a malformed spatial index.
func (p *Policy) addWords(list []json.RawMessage) {
	for _, raw := range list {
		var j WordsJSON
		if json.Unmarshal(raw, &j) == nil {
			p.words = j.Compile()
		}
	}
}

// Texts calls f with each text of a document and its language, until f returns false. path is the index in Paths, -1
// for a text that is one only because all are.
func (w *Words) Texts(doc value.Value, f func(path int, s []byte, l *text.Language) bool) bool {
	x := texts{w: w, f: f}
	at := make([]int, len(w.Paths))
	for i := range at {
		at[i] = i
	}
	return x.object(doc, at, 0, w.Language, 0)
}

type texts struct {
	w *Words
	f func(path int, s []byte, l *text.Language) bool
}

// object visits the fields of an object, of which the paths at go through it; depth segments of these are done.
func (x *texts) object(v value.Value, at []int, depth int, l *text.Language, nested int) bool {
	if nested > maxDepth {
		return true
	}
	if x.w.Override != "" {
		if name := v.Get(x.w.Override); name.Kind() == value.String {
			if own, ok := text.LanguageOf(name.Str()); ok {
				l = own
			}
		}
	}
	for it := v.Iter(); it.Next(); {
		var below []int
		for _, i := range at {
			if p := x.w.Paths[i]; len(p) > depth && p[depth] == string(it.Key()) {
				below = append(below, i)
			}
		}
		if len(below) == 0 && (!x.w.All || x.w.Override != "" && bytes.Equal(it.Key(), []byte(x.w.Override))) {
			continue
		}
		if !x.value(it.Value(), below, depth+1, l, nested+1) {
			return false
		}
	}
	return true
}

// value visits a value at the end of depth segments of the paths at.
func (x *texts) value(v value.Value, at []int, depth int, l *text.Language, nested int) bool {
	switch v.Kind() {
	case value.String:
		here := slices.IndexFunc(at, func(i int) bool { return len(x.w.Paths[i]) == depth })
		switch {
		case here >= 0:
			return x.f(at[here], v.Bytes(), l)
		case x.w.All:
			return x.f(-1, v.Bytes(), l)
		}
	case value.Object:
		return x.object(v, at, depth, l, nested)
	case value.Array:
		if nested > maxDepth {
			return true
		}
		for it := v.Iter(); it.Next(); {
			if !x.value(it.Value(), at, depth, l, nested+1) {
				return false
			}
		}
	}
	return true
}

// longestTerm is the length in bytes up to which terms are kept whole. Longer words differ at their beginning, too.
const longestTerm = 64

// Term returns a term as entries have it.
func Term(s string) value.Value { return value.StringOf(s[:min(len(s), longestTerm)]) }

// words emits the entries of a document's terms.
func (w *walker) words(doc value.Value) {
	id := child(w.p.Seed, []byte(WordsPath))
	w.p.words.Texts(doc, func(_ int, s []byte, l *text.Language) bool {
		l.Terms(string(s), text.Options{}, func(t text.Term) bool {
			w.emit(id, Term(t.Text), true)
			return true
		})
		return true
	})
}
