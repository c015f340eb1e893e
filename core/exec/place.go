package exec

import (
	"math"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// Place is a place in the order of a query which needn't be that of a row: before the first row with these sort keys,
// or behind the last one. Rows with other keys are before or behind it as their keys are. A continuation is the place
// behind one row of an earlier page; a Place is what others know of the order.
//
// Example: ORDER BY n. The rows from n = 5 on begin at {Keys: [5]}, and those with a greater n at {Keys: [5], Behind:
// true}, whether there is a row with n = 5 or not.
type Place struct {
	Keys   []value.Value // one for each key of the order
	Behind bool
}

// begin returns the position where the query begins: that of its continuation or of From, whichever comes later.
func (q *Query) begin(from *position, layout keys.Entries) (*position, error) {
	if q.From == nil {
		return from, nil
	}
	if len(q.OrderBy) == 0 || len(q.From.Keys) != len(q.OrderBy) {
		return nil, status.New(status.BadRequest, "The query can't begin at %d values, because it is in the order "+
			"of %d.", len(q.From.Keys), len(q.OrderBy))
	}
	if from != nil && (from.cut || from.kind != posSort || !q.before(from.keys)) {
		return from, nil
	}
	p := &position{kind: posSort, keys: q.From.Keys}
	if q.From.Behind != q.OrderBy[0].Desc { // numbers have the direction of the first key
		p.number = layout.Order(math.MaxUint64)
	}
	return p, nil
}

// before reports whether rows with these sort keys come before From.
func (q *Query) before(ks []value.Value) bool {
	for i := range q.OrderBy {
		if c := q.Compare(ks[i], q.From.Keys[i]); c != 0 {
			return c < 0 != q.OrderBy[i].Desc
		}
	}
	return q.From.Behind
}
