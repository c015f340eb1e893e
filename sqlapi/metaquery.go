package sqlapi

import (
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/sqlapi/sql"
)

// query answers a query over the resources of a feed: databases, containers, offers, ranges, users and so on. They are
// stored in the catalog and have no partitions, so the query runs over a list of them, and no plan or merge is needed.
func (f *feedReply) query() error {
	q, err := f.c.metaQuery()
	if err != nil {
		return err
	}
	return f.answer(q)
}

// metaQuery is a query over resources.
type metaQuery struct{ plan *sql.Plan }

// metaQuery reads the query of the request's body.
func (c *call) metaQuery() (q metaQuery, err error) {
	spec, err := c.readQuery()
	if err == nil {
		q.plan, err = sql.Compile(spec.text, spec.params, &sql.Env{Clock: c.s.clock})
	}
	return q, err
}

// answer sends a page of the rows that a query gives.
func (f *feedReply) answer(q metaQuery) (err error) {
	c := f.c
	req := sql.Request{MaxBytes: maxReply, Continuation: header(c.In, hContinuation), Hold: c.Hold}
	if req.PageSize, err = c.maxItems(0); err != nil {
		return err
	}
	page := sql.Page{Body: f.begin(c.Out[:0])}
	if err := q.plan.ExecuteList(c.Ctx(), f.name+" "+f.rid, f.rows, req, &page); err != nil {
		return err
	}
	if page.Continuation != "" {
		c.Set(rContinuation, page.Continuation)
	}
	c.Out = page.Body
	return f.end(page.Count)
}

// begin appends the beginning of the envelope.
func (f *feedReply) begin(b []byte) []byte {
	b = append(b, `{"_rid":"`...)
	b = append(b, f.rid...)
	b = append(b, `","`...)
	b = append(b, f.name...)
	return append(b, `":[`...)
}

// end appends the end of the envelope to c.Out and sends it.
func (f *feedReply) end(n int) error {
	c := f.c
	b := append(c.Out, `],"_count":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	c.Out = append(b, '}')
	c.SetInt(hItemCount, int64(n))
	return c.send(http.StatusOK)
}
