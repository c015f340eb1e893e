package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// Indexes under a collation. A declared index with a collation becomes a rule of the policy's collatedIndexes: entries
// with sort keys. So does the index on `_id` of a collection with a default collation. Queries under the same collation
// find strings by it, and get their order from it. All other queries use the indexes that every collection has.
//
// Example: with the index {name: 1} under {locale: "en", strength: 2}, a find of {name: "zoë"} under that collation
// reads the entries with the key of "zoë", and a sort by name walks all entries.

// collatedName returns the name of a collation in paths of the core, "" if the collection has no index under it.
func (k *coll) collatedName(c *collate.Collation) string {
	if c == nil {
		return ""
	}
	o := c.Options()
	for _, s := range append(k.indexSpecs(), k.idIndex()) {
		if of := indexes.Collated(s); len(of) > 0 && of[0].Collation == o {
			return core.CollatedPath(o)
		}
	}
	return ""
}

// collate gives a query the conditions and the order that an index under its collation answers. The order's strings are
// compared by the collation in any case.
func (k *coll) collate(q *exec.Query, f *filter.Filter, o order.Order, e *expr.Env) {
	coll := e.Run.Collation()
	under := k.collatedName(coll)
	if p := f.Collated(under); under != "" && p.Op != access.OpAll {
		q.Pred = access.And(q.Pred, p)
	}
	if len(o) == 0 {
		return
	}
	q.OrderBy, q.Compare = collatedOrder(under, o.With(coll), e), order.Comparer(coll)
	if under != "" {
		q.Collation = access.BSONOrder
	}
}

// collatedOrder returns an order whose paths are those of indexes under the collation with that name. Without one they
// are paths that no index has: other entries are in the order of bytes.
func collatedOrder(under string, o order.Order, e *expr.Env) (by []exec.Order) {
	if under == "" {
		under = "\x00"
	}
	for _, c := range o {
		path := access.NewPath(append([]string{under}, c.Path...)...).Element()
		by = append(by, exec.Order{Path: path, Desc: c.Desc, Key: sortKey(o, c, e)})
	}
	return by
}
