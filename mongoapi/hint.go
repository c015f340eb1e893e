package mongoapi

import (
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// checkHint refuses the hint of an index that doesn't exist, is hidden, or isn't in the Stable API that the command
// keeps to. An existing one has no effect: the store indexes every path, and chooses by itself. k is nil for a
// collection that doesn't exist; then any hint is allowed.
func checkHint(k *coll, h value.Value) error {
	if k == nil || !h.IsDefined() || h.Kind() == value.Object && h.Len() == 0 {
		return nil
	}
	if n := h.Get("$natural"); n.IsDefined() {
		if d, ok := num.ToInt64(n, false); !ok || d != 1 && d != -1 || h.Len() != 1 {
			return merr.New(merr.BadValue, "$natural hint must be 1 or -1, and alone")
		}
		return nil
	}
	for _, s := range append([]value.Value{indexes.OnID()}, k.indexSpecs()...) {
		if s.Get("hidden").IsDefined() || k.stable && unstableIndex(s) {
			continue
		}
		byName := h.Kind() == value.String && s.Get("name").Str() == h.Str()
		if byName || h.Kind() == value.Object && value.CompareBSON(s.Get("key"), h) == 0 {
			return nil
		}
	}
	return merr.New(merr.BadValue, "error processing query: ns=%s: planner returned error :: caused by :: "+
		"hint provided does not correspond to an existing index", k.namespace())
}
