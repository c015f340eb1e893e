package core

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
)

// OrderServed says whether the container's newest indexing policy supports an order over the items that a filter
// selects, by the service's rules: a single path must be indexed, several paths must be a composite index. A query is
// sorted in any case, also while the index is rebuilt for that policy. OrderServed is for APIs that refuse what the
// service refuses.
func (c *Container) OrderServed(orders []exec.Order, filter *access.Pred) access.OrderSupport {
	by := make([]access.By, len(orders))
	for i := range orders {
		by[i] = access.By{Path: orders[i].Path, Desc: orders[i].Desc}
	}
	return access.ServesOrder(c.rt.NewestPolicy(), by, filter)
}
