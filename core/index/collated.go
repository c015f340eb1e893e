package index

import (
	"encoding/json"
	"slices"

	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Indexes under a collation. A rule of the policy's collatedIndexes makes a composite index, of one path or more, whose
// entries hold the sort keys of strings instead of the strings. So the bytes of its entries are in the order of the
// collation, and strings that the collation equates have the same bytes.
//
// Columns and conditions meet by their paths. The path of a column begins with a name that stands for the collation,
// which no field has. A query under that collation puts the same name in front of the paths of its order and of its
// conditions on strings, and gives these conditions the sort keys. A query under another collation, or without one, has
// other paths, so it never uses the index. Other values than strings are stored as they are: a condition on a number
// needs no collation.
//
// Example: the rule {paths: [{path: "/name"}], collation: {locale: "en", strength: 2}} gives {name: "Zoë"} the entry
// "key of zoë". The condition name = "ZOË" becomes CollatedPath(o)/name = "key of zoë".

// CollatedJSON is a rule in the policy.
type CollatedJSON struct {
	Paths     []ColumnJSON    `json:"paths"`
	Collation collate.Options `json:"collation"`
}

// CollatedPath returns the name before the paths of columns, conditions and orders under a collation.
func CollatedPath(o collate.Options) string {
	b, _ := json.Marshal(o) // it has no values that can't be marshalled
	return "\x00collated" + string(b)
}

// addCollated compiles the policy's collatedIndexes. A rule that is malformed or one too many is ignored, like a
// malformed spatial index.
func (p *Policy) addCollated(list []json.RawMessage) {
	for _, raw := range list {
		var j CollatedJSON
		if json.Unmarshal(raw, &j) != nil || len(j.Paths) == 0 || len(j.Paths) > MaxColumns ||
			len(p.composites) >= 2*MaxComposites {
			continue
		}
		c := &Composite{Cut: keys.CollatedCut(len(j.Paths)), Coll: collate.New(j.Collation)}
		if c.Coll == nil || !c.addColumns(j.Paths, CollatedPath(j.Collation)) {
			continue
		}
		p.addComposite(c)
	}
}

// Stored returns the value that a column stores of v.
func (c *Composite) Stored(v value.Value) value.Value {
	if c.Coll == nil || !collate.Affects(v) {
		return v
	}
	return c.Coll.Key(v)
}

// Holds reports whether the conditions on a path are conditions on the column. plain says that they concern no strings,
// so that every collation stores what they look for.
func (c *Column) Holds(segs []string, plain bool) bool {
	if slices.Equal(segs, c.Segs) {
		return true
	}
	return plain && len(c.Field) < len(c.Segs) && slices.Equal(segs, c.Field)
}
