package sqlapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/orrerydb/orrery/core"
	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

// queryPlan answers a query plan request of a client that merges the partitions itself.
func queryPlan(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	spec, err := c.readQuery()
	if err != nil {
		return err
	}
	var features []string
	if v := header(c.In, hPlanFeatures); v != "" {
		for _, f := range strings.Split(v, ",") {
			features = append(features, strings.TrimSpace(f))
		}
	}
	def := ct.Spec().PartitionKey
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &def, keyPrefix)
	if err != nil {
		return err
	}
	body, err := sql.QueryPlanOf(c.s.computed.of(ct), spec.text, spec.params, features, def, pk != nil &&
		len(pk) == len(def.Paths), c.strict())
	if err != nil {
		return err
	}
	c.Out = append(c.Out[:0], body...)
	if pk != nil {
		c.Out = withKeyRange(c.Out, def, pk)
	}
	c.setContainer(ct)
	return c.send(http.StatusOK)
}

// withKeyRange replaces the ranges of a plan by the range of the partition key that the client has sent with the
// request.
func withKeyRange(plan []byte, def core.PartitionKeyDef, pk core.PartitionKey) []byte {
	const member = `"queryRanges":`
	at := bytes.LastIndex(plan, []byte(member))
	if at < 0 {
		return plan
	}
	from := at + len(member)
	to := cjson.Skip(plan, from)
	if to < 0 {
		return plan
	}
	tail := string(plan[to:])
	plan = append(plan[:from], `[{"min":`...)
	if len(pk) == len(def.Paths) {
		text := core.EPKText(def, pk)
		plan = cjson.AppendString(plan, text)
		plan = append(plan, `,"max":`...)
		plan = cjson.AppendString(plan, text)
		plan = append(plan, `,"isMinInclusive":true,"isMaxInclusive":true}]`...)
	} else {
		r := core.EPKRange(def, pk)
		plan = cjson.AppendString(plan, r.Min)
		plan = append(plan, `,"max":`...)
		plan = cjson.AppendString(plan, r.Max)
		plan = append(plan, `,"isMinInclusive":true,"isMaxInclusive":false}]`...)
	}
	return append(plan, tail...)
}

// onePartition reports whether a query's filter restricts it to a single logical partition. It then isn't a
// cross-partition query.
func onePartition(ct *core.Container, spec querySpec) bool {
	b, err := sql.QueryPlan(spec.text, spec.params, nil, ct.Spec().PartitionKey)
	if err != nil {
		return false
	}
	var p struct {
		QueryRanges []struct{ Min, Max string } `json:"queryRanges"`
	}
	return json.Unmarshal(b, &p) == nil && len(p.QueryRanges) == 1 && p.QueryRanges[0].Min == p.QueryRanges[0].Max
}
