package sqlapi

import (
	"net/http"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// msgNotServable begins with the words that clients look for: those that can plan then ask for the plan.
const msgNotServable = "The provided cross partition query can not be directly served by the gateway: its rows have to be merged over partitions by the client. " +
	"Clients that can do so ask for the query plan now; others have to bind the query to one partition key."

// isCross reports whether a query may reach several partitions: neither a full key nor a range binds it, nor is all that a
// key's prefix covers in one partition.
func (c *call) isCross(ct *core.Container, s *scope) bool {
	def := ct.Spec().PartitionKey
	switch {
	case s.ranged || len(s.pk) == len(def.Paths):
		return false
	case s.pk == nil:
		return true
	}
	r, n := core.EPKRange(def, s.pk), 0
	for _, p := range ct.Partitions() {
		if p.Min < r.Max && r.Min < p.Max {
			n++
		}
	}
	return n > 1
}

// refuseMerge answers 400/1004 with the query's plan. Where there is no plan either, the answer is why.
func (c *call) refuseMerge(ct *core.Container, spec querySpec) error {
	plan, err := sql.QueryPlan(spec.text, spec.params, nil, ct.Spec().PartitionKey)
	if err != nil {
		return err
	}
	c.sub = subNotServable
	extra := appendJSONString([]byte(`,"additionalErrorInfo":`), string(plan))
	_, name := httpStatus(status.BadRequest)
	c.errorBody(name, msgNotServable, extra)
	return c.send(http.StatusBadRequest)
}

// subNotServable is the sub-status CrossPartitionQueryNotServable.
const subNotServable = 1004
