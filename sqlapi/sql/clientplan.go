package sql

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/sqlapi/sql/expand"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"
)

// QueryPlan answers the gateway's query-plan request: the JSON that tells a client how to run the query over the
// partitions. features are those that the client lists; a feature that the query needs and the client lacks is refused.
// nil features are not checked.
func QueryPlan(text string, params []Param, features []string, def core.PartitionKeyDef) ([]byte, error) {
	return queryPlan(nil, text, params, features, def, false)
}

// QueryPlanOf is QueryPlan for a container with computed properties or embeddings. bound says that the request names
// one whole partition key: one partition gives all rows, whatever the filter says. The ranges are the filter's all the
// same.
func QueryPlanOf(comp *expand.Computed, text string, params []Param, features []string, def core.PartitionKeyDef,
	bound bool) ([]byte, error) {
	return queryPlan(comp.OnlyEmbeddings(), text, params, features, def, bound)
}

func queryPlan(comp *expand.Computed, text string, params []Param, features []string, def core.PartitionKeyDef,
	bound bool) ([]byte, error) {
	pl, err := Compile(text, params, &Env{Computed: comp})
	if err != nil {
		return nil, err
	}
	offset, limit, err := pl.window()
	if err != nil {
		return nil, err
	}
	return gateway.AppendPlan(nil, &gateway.Request{Query: pl.p.q, Offset: offset, Limit: limit, Where: pl.predicate(),
		Key: def, Bound: bound, Features: features})
}

// NeedsMerge reports whether the rows that partitions give apart are not the query's answer put one after another.
func (pl *Plan) NeedsMerge() bool { return gateway.NeedsMerge(pl.p.q) }

// window returns what OFFSET skips and what TOP or LIMIT gives at most, -1 without limit.
func (pl *Plan) window() (offset, limit int64, err error) {
	f := pl.p.frame(pl.vals)
	defer pl.p.release(f)
	st, err := pl.p.begin(f)
	return st.skip, st.left, err
}

// predicate returns what items must satisfy for WHERE to be true, as far as an index can tell; nil when nothing is
// known. Its paths are those of the items that the language sees (Env.Form).
func (pl *Plan) predicate() *access.Pred {
	if pl.p.pred == nil {
		return nil
	}
	f := pl.p.frame(pl.vals)
	defer pl.p.release(f)
	f.env = pl.env
	return pl.p.pred(f)
}
