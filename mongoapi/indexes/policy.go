package indexes

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/collation"
)

// The core indexes every path, so most declared indexes need nothing. A compound index becomes a composite index of the
// container's indexing policy, if a policy can express its paths. One with a collation becomes an index under it.

// columns returns the paths of a declared index as a policy has them, nil if it can't express one of them.
func columns(spec value.Value) (out []core.ColumnJSON) {
	for it := spec.Get("key").Iter(); it.Next(); {
		path, ok := policyPath(string(it.Key()))
		n, number := value.Number(it.Value())
		if !ok || !number {
			return nil
		}
		c := core.ColumnJSON{Path: path, Order: "ascending"}
		if n < 0 {
			c.Order = "descending"
		}
		out = append(out, c)
	}
	return out
}

// Composite returns the composite index for a declared index, nil if it needs none or can have none.
func Composite(spec value.Value) []core.ColumnJSON {
	out := columns(spec)
	if len(out) < 2 || len(out) > core.MaxCompositePaths || spec.Get("collation").IsDefined() {
		return nil
	}
	return out
}

// policyPath converts a dotted path to the form of an indexing policy. ok is false for names that are ambiguous in a
// policy.
func policyPath(dotted string) (string, bool) {
	var b strings.Builder
	for i, name := range strings.Split(dotted, ".") {
		switch {
		case name == "" || strings.ContainsAny(name, "\"*?[\x00\x01") || i == 0 && (name == "id" || name == "_ts"):
			return "", false
		case i == 0 && name == "_id":
			name = "id"
		}
		b.WriteByte('/')
		if strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			name = `"` + name + `"`
		}
		b.WriteString(name)
	}
	return b.String(), true
}

// Policy returns the indexing policy of a collection after its declared indexes changed from old to specs. Composite
// and spatial indexes from other sources stay. A policy that can't be parsed, or that indexes nothing, is returned
// unchanged.
func Policy(policy []byte, old, specs []value.Value) []byte {
	text := policy
	if len(text) == 0 {
		text = []byte(core.DefaultIndexing)
	}
	var all map[string]json.RawMessage
	var mode string
	if json.Unmarshal(text, &all) != nil || all["indexingMode"] != nil &&
		json.Unmarshal(all["indexingMode"], &mode) != nil || strings.EqualFold(mode, "none") {
		return policy
	}
	composites := listed[[]core.ColumnJSON]{
		of: func(s value.Value) [][]core.ColumnJSON {
			if c := Composite(s); c != nil {
				return [][]core.ColumnJSON{c}
			}
			return nil
		},
		same: func(a, b []core.ColumnJSON) bool { return slices.Equal(a, b) },
		most: core.MaxCompositeIndexes,
	}
	shapes := listed[spatialJSON]{of: spatial, same: spatialJSON.same, most: Max}
	a, okA := composites.change(all, "compositeIndexes", old, specs)
	b, okB := shapes.change(all, "spatialIndexes", old, specs)
	c, okC := listed[core.WordsJSON]{of: Words, same: sameWords, most: 1}.change(all, "wordIndexes", old, specs)
	d, okD := listed[core.CollatedJSON]{of: Collated, same: sameCollated, most: core.MaxCompositeIndexes}.change(all,
		"collatedIndexes", old, specs)
	whole := all["includedPaths"] == nil && all["excludedPaths"] == nil // then all paths are indexed
	e, okE := listed[excludedJSON]{of: unindexed, same: func(a, b excludedJSON) bool { return a == b },
		most: Max}.change(all, "excludedPaths", old, specs)
	if !okA || !okB || !okC || !okD || !okE || !a && !b && !c && !d && !e {
		return policy
	}
	if e && whole {
		all["includedPaths"] = json.RawMessage(`[{"path":"/*"}]`)
	}
	out, err := json.Marshal(all)
	if err != nil {
		return policy
	}
	return out
}

// listed is a list of a policy that follows from declared indexes.
type listed[T any] struct {
	of   func(spec value.Value) []T
	same func(a, b T) bool
	most int
}

// change changes the list with a name in a policy. ok is false if the list can't be parsed.
func (l listed[T]) change(policy map[string]json.RawMessage, name string, old, specs []value.Value) (changed, ok bool) {
	var has, gone, want []T
	if policy[name] != nil && json.Unmarshal(policy[name], &has) != nil {
		return false, false
	}
	in := func(list []T, x T) bool {
		return slices.ContainsFunc(list, func(y T) bool { return l.same(x, y) })
	}
	for _, s := range specs {
		want = append(want, l.of(s)...)
	}
	for _, s := range old {
		for _, x := range l.of(s) {
			if !in(want, x) {
				gone = append(gone, x)
			}
		}
	}
	before := len(has)
	has = slices.DeleteFunc(has, func(x T) bool { return in(gone, x) })
	changed = len(has) != before
	for _, x := range want {
		if len(has) < l.most && !in(has, x) {
			has, changed = append(has, x), true
		}
	}
	if !changed {
		return false, true
	}
	if policy[name], _ = json.Marshal(has); len(has) == 0 { // they can always be marshalled
		delete(policy, name)
	}
	return true, true
}

// Collated returns the rules of the policy for a declared index under a collation: one, or none.
func Collated(spec value.Value) []core.CollatedJSON {
	c, err := collation.Parse(spec.Get("collation"))
	cols := columns(spec)
	if c == nil || err != nil || len(cols) == 0 || len(cols) > core.MaxCompositePaths {
		return nil
	}
	return []core.CollatedJSON{{Paths: cols, Collation: c.Options()}}
}

func sameCollated(a, b core.CollatedJSON) bool { return reflect.DeepEqual(a, b) }
