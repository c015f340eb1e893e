package tableapi

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// maxExamined limits the items read for one page. A page that finds nothing in this many items ends empty, with a
// continuation.
const maxExamined = 200_000

// maxPageBytes is the size in bytes after which a page ends, so that large rows don't fill the memory.
const maxPageBytes = 8 << 20

// queryEntities handles GET /t: a page of the entities that $filter selects, in the order of PartitionKey and RowKey.
// Rows of a container that isn't a table come in the order of their creation if that isn't too expensive.
func (c *call) queryEntities() error {
	v, err := c.s.view(c.Ctx(), c.addr.Table)
	if err != nil {
		return err
	}
	if err := c.need(v, "r"); err != nil {
		return err
	}
	if c.param("$orderby") != "" || c.param("$skip") != "" || c.param("$inlinecount") != "" ||
		c.param("$expand") != "" {
		return newError("NotImplemented")
	}
	filter, err := odata.Parse(c.param("$filter"))
	if err != nil {
		return err
	}
	top, err := c.top()
	if err != nil {
		return err
	}
	rows, err := c.open(v, filter, top)
	if err != nil {
		return err
	}
	defer rows.Close()
	f := c.format(v, odata.ParseSelect(c.param("$select")))
	c.Out, err = c.appendPage(c.Out[:0], v, &f, rows, top)
	c.Charge = rows.Stats().Charge()
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK)
}

// rows is a running query. sorted says that the core sorts it; its continuations must record this.
type rows struct {
	*exec.Rows
	sorted bool
}

// The first byte of a continuation, followed by the core's token.
const (
	markNatural = 'n'
	markSorted  = 's'
)

// open starts or continues the query of a filter.
//
// For one PartitionKey: if the core scans the logical partition, the rows come in RowKey order. If the core answers
// from the index, there are few rows, and the query is opened again with a sort. For several PartitionKeys the core
// sorts. A continuation of an older version continues in storage order.
func (c *call) open(v *view, filter *odata.Node, top int) (rows, error) {
	token, err := joinToken(c.param("NextPartitionKey"), c.param("NextRowKey"))
	if err != nil {
		return rows{}, err
	}
	p := v.plan(filter)
	q := c.queryOf(v, filter, p)
	sorted := false
	if token != "" {
		if sorted = token[0] == markSorted; len(token) < 2 || !sorted && token[0] != markNatural {
			return rows{}, errToken
		}
		q.Continuation = token[1:]
	}
	if p.pk == nil && v.native {
		if sorted = sorted || token == ""; sorted {
			q.OrderBy = []exec.Order{{Path: access.NewPath(edm.PartitionField)}, {Path: access.ID}}
			q.Compare, q.Page = value.CompareCosmos, top
		}
		r, err := v.Query(c.Ctx(), q)
		return rows{r, sorted}, err
	}
	if !v.native {
		q.Shown = exec.Creation
	}
	byRowKey := func() { q.OrderBy, q.Compare = []exec.Order{{Path: access.ID}}, value.CompareCosmos }
	if sorted {
		byRowKey()
	}
	r, err := v.Query(c.Ctx(), q)
	if err != nil || token != "" || p.pk == nil || p.natural || r.Stats().Plan.Kind == access.Scan {
		return rows{r, sorted}, err
	}
	r.Close()
	byRowKey()
	r, err = v.Query(c.Ctx(), q)
	return rows{r, true}, err
}

// queryOf returns the core's query of a filter, without order and continuation.
func (c *call) queryOf(v *view, filter *odata.Node, p plan) *exec.Query {
	q := &exec.Query{PK: p.pk, Pred: p.pred, MaxRead: maxExamined, PlanHash: xxhash.Sum64String(c.param("$filter"))}
	if filter != nil {
		match := v.match(filter)
		q.Match = func(it *core.Item) (bool, error) { return match(it), nil }
	}
	if c.grant.sas && c.grant.ranged() {
		inner, g := q.Match, c.grant
		q.Match = func(it *core.Item) (bool, error) {
			var r edm.Row
			v.row(&r, it)
			if !g.covers(string(r.PartitionKey), string(r.RowKey)) {
				return false, nil
			}
			return inner == nil || inner2(inner, it), nil
		}
	}
	return q
}

func inner2(match func(*core.Item) (bool, error), it *core.Item) bool {
	ok, _ := match(it) // our filters return no errors
	return ok
}

// appendPage appends a page and sets the headers of its continuation.
func (c *call) appendPage(dst []byte, v *view, f *edm.Format, rows rows, top int) ([]byte, error) {
	dst = append(dst, '{')
	if c.level != edm.NoMetadata {
		dst = append(dst, `"odata.metadata":`...)
		dst = append(json.AppendString(dst, c.base()+"/$metadata#"+v.table), ',')
	}
	dst = append(dst, `"value":[`...)
	var r edm.Row
	n := 0
	for n < top && len(dst) < maxPageBytes && rows.Next() {
		if n > 0 {
			dst = append(dst, ',')
		}
		v.row(&r, rows.Item())
		dst = f.Append(dst, &r)
		n++
		if err := c.Hold(len(dst)); err != nil {
			return dst, err
		}
	}
	if err := rows.Err(); err != nil {
		return dst, err
	}
	if token := rows.Continuation(); token != "" && !rows.Exhausted() {
		mark := markNatural
		if rows.sorted {
			mark = markSorted
		}
		pk, rk := splitToken(string(mark) + token)
		c.Set("X-Ms-Continuation-Nextpartitionkey", pk)
		c.Set("X-Ms-Continuation-Nextrowkey", rk)
	}
	return append(dst, "]}"...), nil
}

// A continuation is sent as two texts, because clients return NextPartitionKey and NextRowKey. Each text is one half of
// the core's token in the service's form `1!<length>!<base64>`, in an alphabet that headers and query strings don't
// change.

func splitToken(token string) (pk, rk string) {
	half := (len(token) + 1) / 2
	return tokenPart(token[:half]), tokenPart(token[half:])
}

func tokenPart(s string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(s))
	return "1!" + strconv.Itoa(len(text)) + "!" + text
}

var errToken = errorMsg("InvalidInput", "The continuation token is malformed.")

func joinToken(pk, rk string) (string, error) {
	if pk == "" && rk == "" {
		return "", nil
	}
	a, ok1 := partOf(pk)
	b, ok2 := partOf(rk)
	if !ok1 || !ok2 {
		return "", errToken
	}
	return a + b, nil
}

// partOf decodes a text of tokenPart. A part that the client omitted is "".
func partOf(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	if len(s) > 4096 || len(s) < 2 || s[:2] != "1!" {
		return "", false
	}
	for i := 2; i < len(s); i++ {
		if s[i] == '!' {
			b, err := base64.RawURLEncoding.DecodeString(s[i+1:])
			return string(b), err == nil && s[2:i] == strconv.Itoa(len(s)-i-1)
		}
	}
	return "", false
}
