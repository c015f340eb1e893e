package mongoapi

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// naturalOrder returns the order that {$natural: 1} or {$natural: -1} in a sort or a hint requests: the order of
// creation or its reverse. Without $natural it returns otherwise. A sort has precedence over a hint.
func naturalOrder(otherwise exec.Shown, specs ...value.Value) exec.Shown {
	for _, s := range specs {
		if s.Kind() != value.Object {
			continue
		}
		n := s.Get("$natural")
		if !n.IsDefined() {
			continue
		}
		if d, _ := num.ToInt64(n, false); d < 0 {
			return exec.Newest
		}
		return exec.Oldest
	}
	return otherwise
}
