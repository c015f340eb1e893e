package core

import (
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/value"
)

// WordsPath is the name of the path at which an item has the terms of its texts, if the indexing policy has a rule for
// them. Only conditions on terms use it.
const WordsPath = index.WordsPath

// WordTerm returns a term as it is at WordsPath.
func WordTerm(s string) value.Value { return index.Term(s) }

// CollatedPath returns the name before the paths of conditions and orders that an index under a collation answers. The
// values of such conditions are sort keys.
func CollatedPath(o collate.Options) string { return index.CollatedPath(o) }
