package index

import (
	"encoding/json"
	"slices"

	"github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
)

// Indexes over texts at paths. Each rule of the policy's textIndexes names a path and a language. A string there gets
// an entry for each of its terms, as if the item had an array of them at TextPath, and one for the number of its words
// at LengthPath. No field has such names. So a condition on a term is an ordinary condition on an element of TextPath,
// and the sum of all lengths is that of the values at LengthPath.
//
// Example: the rule {path: ["title"], language: "english"} gives {title: "The coffees, the tea"} the entries
// TextPath/title = "coffe", "tea" and LengthPath/title = 2.

// The names before the path of a text: of its terms, and of its length.
const (
	TextPath   = "\x00text"
	LengthPath = "\x00textlength"
)

// TextJSON is a rule in the policy.
type TextJSON struct {
	Path     []string `json:"path"` // names of stored fields
	Language string   `json:"language"`
	// Common says that common words have entries, too.
	Common bool `json:"common,omitempty"`
}

// textRule is a compiled rule.
type textRule struct {
	segs          []string
	language      *text.Language
	options       text.Options
	terms, length uint64 // ids of the two paths
}

// addTexts compiles the policy's textIndexes. A malformed rule is ignored, like a malformed spatial index.
func (p *Policy) addTexts(list []json.RawMessage) {
	for _, raw := range list {
		var j TextJSON
		if json.Unmarshal(raw, &j) != nil || len(j.Path) == 0 {
			continue
		}
		if l, ok := text.LanguageOf(j.Language); ok {
			p.texts = append(p.texts, textRule{segs: j.Path, language: l, options: text.Options{Common: j.Common},
				terms:  p.PathID(append([]string{TextPath}, j.Path...)),
				length: p.PathID(append([]string{LengthPath}, j.Path...))})
		}
	}
}

// hasText reports whether the policy has a rule for the path of a text.
func (p *Policy) hasText(segs []string) bool {
	return slices.ContainsFunc(p.texts, func(r textRule) bool { return slices.Equal(r.segs, segs) })
}

// texts emits the entries of the texts of a document.
func (w *walker) texts(doc value.Value) {
	for _, r := range w.p.texts {
		v := lookup(doc, r.segs)
		if v.Kind() != value.String {
			continue
		}
		n := int64(0)
		r.language.Terms(v.Str(), r.options, func(t text.Term) bool {
			w.emit(r.terms, Term(t.Text), true)
			n++
			return true
		})
		w.emit(r.length, value.IntOf(n), false)
	}
}
