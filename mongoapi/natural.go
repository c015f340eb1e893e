package mongoapi

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// naturalOrder returns what {$natural: 1} or {$natural: -1} in a sort or a hint asks for: the order in which the
// documents were made, or its reverse; otherwise is for specifications without it. A sort decides before a hint does.
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
