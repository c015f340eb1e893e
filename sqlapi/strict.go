package sqlapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// This file has the checks of Options.Strict. They refuse what the service's gateway, index and account limits refuse
// and this server could do.

// msgNotServable begins with the words that clients test for. Clients that can merge then request the plan.
const msgNotServable = "The provided cross partition query can not be directly served by the gateway: its rows have " +
	"to be merged over partitions by the client. " +
	"Clients that can do so ask for the query plan now; others have to bind the query to one partition key."

// strict reports whether the checks of this file apply to the request. Orrery's own tools turn them off with
// "x-orrery-strict: none", because they can't merge.
func (c *call) strict() bool { return c.s.opt.Strict && header(c.In, hStrict) != "none" }

// isCross reports whether a query can reach several partitions. It can't with a full key, with a range, or with a
// prefix of a key whose items are all in one partition.
func (c *call) isCross(ct *core.Container, s *scope) (bool, error) {
	def := ct.Spec().PartitionKey
	switch {
	case s.ranged || len(s.pk) == len(def.Paths):
		return false, nil
	case s.pk == nil:
		return true, nil
	}
	parts, err := ct.Partitions(c.Ctx())
	r, n := core.EPKRange(def, s.pk), 0
	for _, p := range parts {
		if p.Min < r.Max && r.Min < p.Max {
			n++
		}
	}
	return n > 1, err
}

// asksForPlans is the version of the protocol from which on clients ask for a query's plan, and say what they can
// merge. Clients of an earlier version merge by the plan that comes with the refusal. They ignore the parts of it that
// are newer than they are, and would show wrong rows: each partition's rows of OFFSET and LIMIT, or each partition's
// distinct ones.
const asksForPlans = "2018-12-31"

// mergedByAll is what clients of before asksForPlans can merge.
var mergedByAll = []string{"Aggregate", "OrderBy", "MultipleOrderBy", "Top"}

// msgNotValue has the words by which clients know that they need the plan of a query whose aggregates are members of
// its rows.
const msgNotValue = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates."

// refuseMerge answers 400/1004 with the query's plan. If the query has no plan, or the client can't merge by it, it
// answers the reason. As from the service, the answer to a query with aggregates and without VALUE has no plan and no
// sub-status: clients that can merge it ask for the plan, and those that can't fail.
func (c *call) refuseMerge(ct *core.Container, spec querySpec, plan *sql.Plan) error {
	var features []string // nil: any
	if v := header(c.In, hVersion); v != "" && v < asksForPlans {
		features = mergedByAll
	}
	text, err := sql.QueryPlanOf(c.s.computed.of(ct), spec.text, spec.params, features, ct.Spec().PartitionKey, false,
		true)
	if err != nil {
		return err
	}
	if plan.NamesAggregates() {
		return status.New(status.BadRequest, msgNotValue)
	}
	c.sub = subNotServable
	extra := cjson.AppendString([]byte(`,"additionalErrorInfo":`), string(text))
	_, name := httpStatus(status.BadRequest)
	c.errorBody(name, msgNotServable, extra)
	return c.send(http.StatusBadRequest)
}

// subNotServable is the sub-status CrossPartitionQueryNotServable.
const subNotServable = 1004

var (
	errNoComposite = status.New(status.BadRequest, "The order by query does not have a corresponding composite "+
		"index that it can be served from.")
	errOrderExcluded = status.New(status.BadRequest, "The index path corresponding to the specified order-by item "+
		"is excluded.")
	errNoScan = status.New(status.BadRequest, "An invalid query has been specified with filters against path(s) "+
		"excluded from indexing. Consider adding allow scan header in the request.")
)

// checkIndexed refuses queries for which the service has no index: ORDER BY a path that the policy excludes, ORDER BY
// several paths without their composite index, and a filter on a container without an index, unless the request allows
// scans. A filter on an excluded path is allowed, because the service scans for it too.
func (c *call) checkIndexed(ct *core.Container, plan *sql.Plan) error {
	if isTable(ct) { // the policy's paths differ from the paths that this API shows
		return nil
	}
	spec := ct.Spec()
	none := bytes.HasPrefix(spec.IndexingPolicy, []byte(`{"indexingMode":"none"`)) // as normalIndexing writes it
	orders := plan.Orders()
	for _, o := range orders {
		if none || !orderIndexed(ct, o) {
			return errOrderExcluded
		}
	}
	if len(orders) > 1 && !hasComposite(ct, orders) {
		return errNoComposite
	}
	if none && !isTrue(c.In, hEnableScan) && !isTrue(c.In, hForceScan) && !readsKeysOnly(ct, plan) {
		return errNoScan
	}
	return nil
}

// orderIndexed reports whether the policy indexes an ORDER BY expression. A computed property needs an included path
// with its name; the root doesn't cover it.
func orderIndexed(ct *core.Container, o sql.OrderPath) bool {
	if o.Computed == "" {
		if len(o.Path.Segs) == 1 && o.Path.Segs[0] == "_etag" { // each policy excludes it (checkPaths)
			return false
		}
		return slices.Equal(o.Path.Segs, access.ID.Segs) || slices.Equal(o.Path.Segs, access.TS.Segs) ||
			ct.OrderServed([]exec.Order{{Path: o.Path}}, nil) == access.OrderServed
	}
	var p indexingJSON
	if json.Unmarshal(ct.Spec().IndexingPolicy, &p) != nil {
		return false
	}
	for _, e := range p.Included {
		path, err := pathOf(e)
		if err != nil || !validIndexPath(path) || isRoot(path) {
			continue
		}
		if segs, err := core.ParsePath(path[:len(path)-2]); err == nil && len(segs) == 1 && segs[0] == o.Computed {
			return true
		}
	}
	return false
}

// hasComposite reports whether a policy has the composite index of an ORDER BY: exactly its paths, in the same
// directions or all in the opposite ones. As in the service, paths that the filter fixes can't be left out.
func hasComposite(ct *core.Container, orders []sql.OrderPath) bool {
	by := make([]exec.Order, len(orders))
	for i, o := range orders {
		by[i] = exec.Order{Path: o.Path, Desc: o.Desc}
		if o.Computed != "" {
			by[i].Path = access.NewPath(o.Computed)
		}
	}
	return ct.OrderServed(by, nil) == access.OrderServed
}

// readsKeysOnly reports whether WHERE reads nothing but the id and the partition key.
func readsKeysOnly(ct *core.Container, plan *sql.Plan) bool {
	paths, whole := plan.FilterPaths()
	if !whole {
		return false
	}
	for _, p := range paths {
		isKey := func(segs []string) bool { return slices.Equal(segs, p.Segs) }
		if !isKey(access.ID.Segs) && !slices.ContainsFunc(ct.KeyPaths(), isKey) {
			return false
		}
	}
	return true
}

// Limits of an account and of keys in the service.
const (
	maxResources   = 500  // databases and containers together
	maxShared      = 25   // containers that share their database's throughput
	maxKeyValue    = 2048 // bytes of a string in a partition key
	subProvision   = 1005
	subSharedCount = 1019
)

// checkRoom refuses a database or container above the account's limits. d is the database of the new container, nil for
// a new database. shared is true when the container has no throughput of its own.
func (s *Server) checkRoom(ctx context.Context, d *core.Database, shared bool) error {
	if !s.opt.Strict {
		return nil
	}
	total, sharing := 0, 0
	dbs, err := s.core.Databases(ctx)
	if err != nil {
		return err
	}
	for _, db := range dbs {
		n, err := s.core.ContainerCount(ctx, db.ID)
		if err != nil {
			return err
		}
		total += 1 + n
		if d == nil || db.ID != d.ID {
			continue
		}
		for ct, err := range s.core.Definitions(ctx, db.ID, 0) {
			if status.Is(err, status.NotFound) {
				break // dropped in the meantime
			}
			if err != nil {
				return err
			}
			if ct.Spec().Throughput.Max() == 0 {
				sharing++
			}
		}
	}
	if total >= maxResources {
		return status.WithSub(status.Forbidden, subProvision, "The account has %d databases and containers, which "+
			"is the most that it may have.", total)
	}
	if shared && sharing >= maxShared {
		return status.WithSub(status.Forbidden, subSharedCount, "The database has %d containers that share its "+
			"throughput, which is the most that it may have. Give the container throughput of its own.", sharing)
	}
	return nil
}

// checkKeySize refuses a partition key with a value longer than the service allows.
func (s *Server) checkKeySize(pk core.PartitionKey) error {
	if !s.opt.Strict {
		return nil
	}
	for i := range pk {
		if pk[i].Kind() == value.String && len(pk[i].Bytes()) > maxKeyValue {
			return status.New(status.BadRequest, "The partition key has a value of %d bytes; at most %d are allowed.",
				len(pk[i].Bytes()), maxKeyValue)
		}
	}
	return nil
}
