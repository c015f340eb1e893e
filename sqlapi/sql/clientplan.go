package sql

import (
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// QueryPlan returns the JSON of a query plan, which tells a client how to run the query over the partitions (package
// gateway). features are those that the client supports. The plan is refused when the query needs another one. nil
// features are not checked.
func QueryPlan(text string, params []Param, features []string, def core.PartitionKeyDef) ([]byte, error) {
	return queryPlan(nil, text, params, features, def, false, false)
}

// QueryPlanOf is QueryPlan for a container with computed properties or embeddings. bound is true when the request names
// a whole partition key. One partition then gives all rows, whatever the filter is. The ranges of the plan still come
// from the filter.
func QueryPlanOf(comp *expand.Computed, text string, params []Param, features []string, def core.PartitionKeyDef,
	bound, strict bool) ([]byte, error) {
	return queryPlan(comp.OnlyEmbeddings(), text, params, features, def, bound, strict)
}

func queryPlan(comp *expand.Computed, text string, params []Param, features []string, def core.PartitionKeyDef,
	bound, strict bool) ([]byte, error) {
	pl, err := compileFor(text, params, &Env{Computed: comp})
	if err != nil {
		return nil, err
	}
	if strict {
		if err := pl.Inner(); err != nil {
			return nil, err
		}
	}
	offset, limit, err := pl.window()
	if err != nil {
		return nil, err
	}
	return gateway.AppendPlan(nil, &gateway.Request{Query: pl.p.q, Offset: offset, Limit: limit, Where: pl.predicate(),
		Key: def, Bound: bound, Features: features, Param: pl.param})
}

// NeedsMerge reports whether the concatenated rows of the partitions are not yet the query's answer.
func (pl *Plan) NeedsMerge() bool { return gateway.NeedsMerge(pl.p.q) }

// NamesAggregates reports whether aggregates are members of the query's rows: SELECT without VALUE.
func (pl *Plan) NamesAggregates() bool {
	return slices.ContainsFunc(pl.p.q.Items, func(it syntax.SelectItem) bool { return shape.HasAggregate(it.Expr) })
}

// param returns the value of a parameter.
func (pl *Plan) param(name string) value.Value {
	if i := slices.Index(pl.p.params, name); i >= 0 {
		return pl.vals[i]
	}
	return value.Value{}
}

// window returns the rows that OFFSET skips and the most rows that TOP or LIMIT allows (-1: no limit).
func (pl *Plan) window() (offset, limit int64, err error) {
	f := pl.p.frame(pl.vals)
	defer pl.p.release(f)
	st, err := pl.p.begin(f)
	return st.skip, st.left, err
}

// predicate returns a predicate that all items satisfy for which WHERE is true (package sarg), nil when there is none.
// Its paths are those of the documents that the language sees (Env.Form).
func (pl *Plan) predicate() *access.Pred {
	if pl.p.pred == nil {
		return nil
	}
	f := pl.p.frame(pl.vals)
	defer pl.p.release(f)
	f.env = pl.env
	return pl.p.pred(f)
}
