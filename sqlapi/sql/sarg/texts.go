package sarg

import (
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	coretext "github.com/orrerydb/orrery/core/text"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// texts translates FullTextContains, FullTextContainsAll and FullTextContainsAny. An item with a phrase has each of its
// words. A full-text index has an entry for each word of a text. Without such an index the path must have a value.
//
// Example: FullTextContains(c.text, "red bicycles") becomes
//
//	exists(/text) AND terms of /text have "red" AND terms of /text have "bicycl"
func (s Compiler[F]) texts(e *syntax.Call, path access.Path) Pred[F] {
	exists := exists[F](path)
	if path.Elements || exists == nil || len(e.Args) < 2 {
		return exists
	}
	terms := make([]Const[F], len(e.Args)-1)
	for i, a := range e.Args[1:] {
		if terms[i] = s.constant(a); terms[i] == nil {
			return exists
		}
	}
	language, ok := coretext.LanguageOf(e.Language)
	if !ok {
		language, _ = coretext.LanguageOf("english")
	}
	any := strings.EqualFold(e.Name, "FullTextContainsAny")
	return func(f F) *access.Pred {
		vals := make([]value.Value, len(terms))
		for i, t := range terms {
			vals[i] = t(f)
		}
		wants, err := funcs.Wants(nil, vals, false)
		if err != nil {
			return exists(f) // the function reports it
		}
		var of []*access.Pred
		for _, w := range wants {
			p := Phrase(path, language, w)
			if p == nil && any {
				return exists(f)
			}
			if p != nil {
				of = append(of, p)
			}
		}
		if any {
			return access.And(exists(f), access.Or(of...))
		}
		return access.And(append(of, exists(f))...)
	}
}

// Phrase returns the condition that the text at a path has the words of a phrase; nil if they need only be similar.
func Phrase(path access.Path, language *coretext.Language, w coretext.Want) *access.Pred {
	var of []*access.Pred
	seen := map[string]bool{}
	language.Terms(w.Text, funcs.TextOptions(language), func(t coretext.Term) bool {
		if !seen[t.Text] {
			seen[t.Text] = true
			of = append(of, access.In(core.TextTerms(path), core.WordTerm(t.Text)))
		}
		return true
	})
	switch {
	case len(of) == 0: // no text has a phrase without words
		return access.None()
	case w.Distance > 0:
		return nil
	case len(of) == 1:
		return of[0]
	}
	return access.And(of...)
}
