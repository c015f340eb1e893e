package mongoapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// The core indexes every path, so most declared indexes need nothing. A compound index becomes a composite index of the
// container's indexing policy, if a policy can express its paths.

// columnJSON is a path of a composite index.
type columnJSON struct {
	Path  string `json:"path"`
	Order string `json:"order"`
}

// composite returns the composite index for a declared index, nil if it needs none or can have none.
func composite(spec value.Value) []columnJSON {
	var out []columnJSON
	for it := spec.Get("key").Iter(); it.Next(); {
		path, ok := policyPath(string(it.Key()))
		n, number := value.Number(it.Value())
		if !ok || !number {
			return nil
		}
		c := columnJSON{path, "ascending"}
		if n < 0 {
			c.Order = "descending"
		}
		out = append(out, c)
	}
	if len(out) < 2 || len(out) > core.MaxCompositePaths {
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

// policyFor returns the indexing policy of a collection after its declared indexes changed from old to specs. Composite
// indexes from other sources stay. A policy that can't be parsed, or that indexes nothing, is returned unchanged.
func policyFor(policy []byte, old, specs []value.Value) []byte {
	text := policy
	if len(text) == 0 {
		text = []byte(core.DefaultIndexing)
	}
	var all map[string]json.RawMessage
	var mode string
	var has [][]columnJSON
	if json.Unmarshal(text, &all) != nil || all["indexingMode"] != nil &&
		json.Unmarshal(all["indexingMode"], &mode) != nil || strings.EqualFold(mode, "none") {
		return policy
	}
	if all["compositeIndexes"] != nil && json.Unmarshal(all["compositeIndexes"], &has) != nil {
		return policy
	}
	before := len(has)
	same := func(c []columnJSON) func([]columnJSON) bool {
		return func(d []columnJSON) bool { return slices.Equal(c, d) }
	}
	var gone, want [][]columnJSON
	for _, s := range specs {
		if c := composite(s); c != nil {
			want = append(want, c)
		}
	}
	for _, s := range old {
		if c := composite(s); c != nil && !slices.ContainsFunc(want, same(c)) {
			gone = append(gone, c)
		}
	}
	has = slices.DeleteFunc(has, func(c []columnJSON) bool { return slices.ContainsFunc(gone, same(c)) })
	changed := len(has) != before
	for _, c := range want {
		if len(has) < core.MaxCompositeIndexes && !slices.ContainsFunc(has, same(c)) {
			has, changed = append(has, c), true
		}
	}
	if !changed {
		return policy
	}
	if all["compositeIndexes"], _ = json.Marshal(has); len(has) == 0 { // columns can always be marshalled
		delete(all, "compositeIndexes")
	}
	out, err := json.Marshal(all)
	if err != nil {
		return policy
	}
	return out
}
