package core

import (
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
)

// OrderServed says whether the container's indexing policy serves an order over what a filter selects, as the service
// demands it: a single path must be indexed, several must be a composite index. A query is sorted whatever the answer
// is; this is for APIs that refuse as the service does.
func (c *Container) OrderServed(orders []exec.Order, filter *access.Pred) access.OrderSupport {
	by := make([]access.By, len(orders))
	for i := range orders {
		by[i] = access.By{Path: orders[i].Path, Desc: orders[i].Desc}
	}
	return access.ServesOrder(c.rt.Policy(), by, filter)
}
