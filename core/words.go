package core

import (
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// WordsPath is the name of the path at which an item has the terms of its texts, if the indexing policy has a rule for
// them. Only conditions on terms use it.
const WordsPath = index.WordsPath

// WordTerm returns a term as it is at WordsPath.
func WordTerm(s string) value.Value { return index.Term(s) }

// TextTerms is the path of the terms of the text at a path, if the indexing policy has a rule for it.
func TextTerms(p access.Path) access.Path {
	return access.NewPath(append([]string{index.TextPath}, p.Segs...)...).Element()
}

// TextLength is the path of the number of words of the text at a path, if the indexing policy has a rule for it.
func TextLength(p access.Path) access.Path {
	return access.NewPath(append([]string{index.LengthPath}, p.Segs...)...)
}

// CollatedPath returns the name before the paths of conditions and orders that an index under a collation answers. The
// values of such conditions are sort keys.
func CollatedPath(o collate.Options) string { return index.CollatedPath(o) }
