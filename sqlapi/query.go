package sqlapi

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql"
)

const msgCrossPartition = "Cross partition query is required but disabled. Please set " +
	"x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query " +
	"to avoid this exception."

// querySpec is the body of a query: {"query": text, "parameters": [{"name": "@p", "value": any}], "resumeFilter":
// {"value": [any], "rid": text, "exclude": bool}}.
type querySpec struct {
	text   string
	params []sql.Param
	from   *exec.Place
}

// readQuery parses the body of a query request. A body that is no JSON object is the query text itself: old clients
// send it that way, with the content type application/sql.
func (c *call) readQuery() (q querySpec, err error) {
	if err := c.ReadBody(maxBody); err != nil {
		return q, err
	}
	return parseQuery(c.Body)
}

// parseQuery parses the body of a query.
func parseQuery(body []byte) (q querySpec, err error) {
	seen := false
	err = json.EachMember(body, func(name string, raw []byte) error {
		switch name {
		case "query":
			q.text, seen = json.String(raw)
			if !seen {
				return status.New(status.BadRequest, "The member query of the request body is not a string.")
			}
		case "parameters":
			if string(raw) == "null" {
				return nil
			}
			return json.EachElement(raw, func(raw []byte) error {
				p, err := readParam(raw)
				if slices.ContainsFunc(q.params, func(o sql.Param) bool { return o.Name == p.Name }) {
					return status.New(status.BadRequest, "Specified duplicate parameter name '%s'.", p.Name)
				}
				q.params = append(q.params, p)
				return err
			})
		case "resumeFilter":
			var err error
			q.from, err = readPlace(raw)
			return err
		}
		return nil
	})
	if err == nil && !seen {
		err = missing("query")
	}
	return q, err
}

// readPlace parses where .NET's client goes on in the order of a query; nil when raw is null. Other clients write it
// into the text, in place of the filter of the rewritten query.
//
// Example: a query has stopped at a row with n = 5. Of the partition of that row, and of those whose turn is later
// among equal rows, the client wants the rows from 5 on. Of the others it has had those with 5, so exclude is true. It
// drops the first rows of the row's own partition by their resource ids itself, so the member rid isn't needed.
//
// An undefined value is []. An array or object is known by a hash, which tells no place in the order.
func readPlace(raw []byte) (*exec.Place, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	p := &exec.Place{}
	rid := false
	err := json.EachMember(raw, func(name string, raw []byte) error {
		switch name {
		case "value":
			return json.EachElement(raw, func(raw []byte) error {
				v, err := doc.ValueFromJSON(raw)
				switch v.Kind() {
				case value.Array:
					if v.Len() > 0 {
						return errPlace
					}
					v = value.Value{}
				case value.Object:
					return errPlace
				}
				p.Keys = append(p.Keys, v)
				return err
			})
		case "rid":
			rid = string(raw) != "null"
		case "exclude":
			p.Behind = string(raw) == "true"
		}
		return nil
	})
	if err == nil && rid && p.Behind {
		err = errPlace
	}
	return p, err
}

// errPlace refuses a place in an order that can't be gone to.
var errPlace = status.New(status.NotSupported, "The query can't be resumed at this row. Go on with the iterator that "+
	"has returned it.")

func readParam(raw []byte) (p sql.Param, err error) {
	err = json.EachMember(raw, func(name string, raw []byte) error {
		switch name {
		case "name":
			s, ok := json.String(raw)
			if !ok {
				return status.New(status.BadRequest, "The name of a query parameter is not a string.")
			}
			p.Name = s
		case "value":
			v, err := doc.ValueFromJSON(raw)
			p.Value = v
			return err
		}
		return nil
	})
	if err == nil && (len(p.Name) < 2 || p.Name[0] != '@') {
		err = status.New(status.BadRequest, "Parameter names should be in the format of symbol '@' followed by a "+
			"valid identifier")
	}
	return p, err
}

// env returns what package sql needs from this API for the items of a container.
func (s *Server) env(ctx context.Context, ct *core.Container) *sql.Env {
	coll := ct.RID()
	d := &doorEnv{fns: containerFunctions{ctx: ctx, s: s, ct: ct}}
	e := &d.env
	*e = sql.Env{
		ItemJSON:   func(dst []byte, it *core.Item) []byte { return appendShown(dst, ct, it) },
		SystemJSON: func(dst []byte, it *core.Item) []byte { return appendItemSystem(dst, coll, it) },
		Clock:      s.clock,
		Computed:   s.computed.of(ct),
		Planar:     isPlanar(ct.Spec()),
	}
	if isTable(ct) {
		e.Form, e.Pred = tableForm, tablePred
	}
	if s.opt.Scripts != nil {
		e.Functions = &d.fns
	}
	return e
}

// queryItems answers a query over a container. The answer covers all partitions that the request is restricted to:
// order, groups and limits apply to all of them together. So clients that can't use a query plan get whole answers too.
// With Options.Strict, queries that the service's gateway leaves to the client are refused.
func queryItems(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	spec, err := c.readQuery()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	s, err := c.scopeOf(ct, room[:0])
	if err != nil {
		return err
	}
	began := c.s.clock.Now()
	plan, err := sql.Compile(spec.text, spec.params, c.s.env(c.Ctx(), ct))
	if err != nil {
		return err
	}
	if merge, err := c.admitQuery(ct, spec, plan, &s); err != nil {
		return err
	} else if merge {
		return c.refuseMerge(ct, spec, plan)
	}
	compiled := c.s.clock.Now()
	req, err := c.queryRequest(&s)
	if err != nil {
		return err
	}
	req.From = spec.from
	page := sql.Page{Body: c.startDocuments(ct.RID())}
	if c.s.opt.Observe != nil {
		c.Explain = func() string { return planText(spec.text, &page) }
	}
	start := len(page.Body)
	if err := plan.Execute(c.Ctx(), ct, req, &page); err != nil {
		return err
	}
	c.Out = page.Body
	c.Charge = page.Charge
	if req.Times {
		c.setMetrics(&page, len(c.Out)-start, compiled.Sub(began), c.s.clock.Now().Sub(compiled))
	}
	return c.endQuery(ct, plan, &req, &page, &s)
}

// admitQuery returns the error for a query over more partitions than its request allows. With Options.Strict it also
// refuses one for which the service wants an index, and reports one that the service's gateway leaves to the client.
func (c *call) admitQuery(ct *core.Container, spec querySpec, plan *sql.Plan, s *scope) (merge bool, err error) {
	if s.pk == nil && !s.ranged && !isTrue(c.In, hCrossPartition) && !onePartition(ct, spec) && !c.knowsNoKey(ct) {
		return false, status.New(status.BadRequest, msgCrossPartition)
	}
	if !c.strict() {
		return false, nil
	}
	if err := plan.Inner(); err != nil {
		return false, err
	}
	if plan.NeedsMerge() {
		cross, err := c.isCross(ct, s)
		if err != nil || cross && !onePartition(ct, spec) {
			return true, err
		}
	}
	return false, c.checkIndexed(ct, plan)
}

// queryRequest reads the headers that say what is wanted of a query. size is the number of items of a page.
func (c *call) queryRequest(s *scope) (req sql.Request, err error) {
	explain := isTrue(c.In, hExplain)
	req = sql.Request{
		PK: s.pk, PageSize: s.page, MaxBytes: maxReply, Hold: c.Hold, Owner: c.grant.Owner(),
		Continuation: header(c.In, hContinuation),
		Explain:      explain || isTrue(c.In, hIndexMetrics) || isTrue(c.In, hIndexMetrics2),
		Steps:        explain,
		Times:        isTrue(c.In, hQueryMetrics),
	}
	if c.grant != nil && c.grant.Key != "" { // a token for one partition learns nothing of the texts of others
		req.Statistics = s.pk
	}
	if s.ranged {
		req.Ranges = []sql.Range{{Min: s.span.min, Max: s.span.max}}
	}
	req.MaxToken, err = c.tokenLimit()
	return req, err
}

// endQuery sets the headers of a query's answer and completes its body.
func (c *call) endQuery(ct *core.Container, plan *sql.Plan, req *sql.Request, page *sql.Page, s *scope) error {
	if page.Continuation != "" {
		c.Set(rContinuation, page.Continuation)
	}
	if req.Explain {
		if err := c.setExplain(page); err != nil {
			return err
		}
	}
	if plan.Descends() {
		c.Set(hExecutionInfo, backward)
	} else {
		c.Set(hExecutionInfo, forward)
	}
	c.setScope(ct, s)
	return c.endDocuments(page.Count)
}
