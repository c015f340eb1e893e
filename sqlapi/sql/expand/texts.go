package expand

import (
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// A container's full-text policy names the language of the texts at each path, and of texts at other paths. It is
// recorded in the calls of full-text functions before the query is compiled.
//
// Example: the policy says that /abstract is "french".
//
//	input:  FullTextContains(c.abstract, "chat")
//	output: FullTextContains(c.abstract, "chat") with Language "french"

const english = "english"

// TextPath is a path that has texts, split into its segments, and the English name of their language.
type TextPath struct {
	Path     []string
	Language string
}

// WithTexts returns a copy of c with the languages of a container's texts; language is that of texts at other paths. c
// may be nil. When all texts are English it returns c itself.
func (c *Computed) WithTexts(language string, list []TextPath) *Computed {
	out := Computed{}
	if c != nil {
		out = *c
	}
	out.language, out.languages = language, map[string]string{}
	foreign := language != english
	for _, p := range list {
		foreign = foreign || p.Language != english
		if p.Language != language {
			out.languages[strings.Join(p.Path, "\x00")] = p.Language
		}
	}
	if !foreign {
		return c
	}
	out.Key += "\x00" + language + "\x00"
	for _, p := range slices.Sorted(maps.Keys(out.languages)) {
		out.Key += p + "\x00" + out.languages[p] + "\x00"
	}
	out.Hash = xxhash.Sum64String(out.Key)
	return &out
}

// text records the language of the text that a full-text function reads.
func (x *expander) text(call *syntax.Call) {
	if x.comp == nil || x.comp.language == "" || call.UDF || len(call.Args) == 0 || !funcs.IsFullText(call.Name) {
		return
	}
	call.Language = x.comp.language
	if path, ok := x.path(call.Args[0]); ok && x.comp.languages[path] != "" {
		call.Language = x.comp.languages[path]
	}
}
