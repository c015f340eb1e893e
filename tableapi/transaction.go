package tableapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/batch"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// An entity group transaction is parsed completely before it runs as one core transaction. If an operation fails, the
// reply has the operation's index, and nothing is written.
//
// Example: a change set inserts r1 and r2, and r2 exists already. The core transaction fails at operation 1, so r1
// isn't stored either. The reply is 202 with one part: 409, error code EntityAlreadyExists, message beginning with
// "1:".

// groupOp is one operation of a change set, with the data for its reply.
type groupOp struct {
	operation
	id        string // Content-ID
	noContent bool
	level     edm.Level
	build     doc.Builder
	entity    edm.Entity
	item      *core.Item
}

// transaction handles POST /$batch.
func (c *call) transaction() error {
	if err := c.readBody(); err != nil {
		return err
	}
	req, err := batch.Parse(c.In.Get("Content-Type"), c.Body)
	if err != nil {
		return err
	}
	var w batch.Writer
	w.Begin(string(c.ID[:]), !req.IsQuery)
	if req.IsQuery {
		c.groupQuery(&w, &req.Ops[0])
	} else if err := c.group(&w, req.Ops); err != nil {
		e := translate(err)
		if e.status() >= 500 || e.Code == "TooManyRequests" || e.XML {
			return err
		}
		w = batch.Writer{}
		w.Begin(string(c.ID[:]), true)
		id := ""
		if e.Index >= 0 && e.Index < len(req.Ops) {
			id = req.Ops[e.Index].ContentID
		}
		c.groupError(&w, id, e)
	}
	w.End()
	c.Out = append(c.Out[:0], w.Buf...)
	c.send(http.StatusAccepted, []string{w.ContentType()})
	return nil
}

// group executes a change set.
func (c *call) group(w *batch.Writer, reqs []batch.Op) error {
	ops := make([]groupOp, len(reqs))
	table := ""
	seen := make(map[string]bool, len(reqs))
	for i := range reqs {
		t, err := c.groupOp(&ops[i], &reqs[i])
		if err != nil {
			return at(err, i)
		}
		o := &ops[i]
		switch {
		case i == 0:
			table = t
		case !strings.EqualFold(t, table):
			return at(errorMsg("InvalidInput", "All operations of a batch must be on one table."), i)
		case o.pk != ops[0].pk:
			return at(newError("CommandsInBatchActOnDifferentPartitions"), i)
		}
		if seen[o.rk] {
			return at(errorMsg("InvalidDuplicateRow", "A command with RowKey '"+o.rk+"' is already present in the "+
				"batch. An entity can appear only once in a batch."), i)
		}
		seen[o.rk] = true
	}
	v, err := c.s.view(c.Ctx(), table)
	if err != nil {
		return at(err, 0)
	}
	for i := range ops {
		if err := c.permit(v, &ops[i].operation); err != nil {
			return at(err, i)
		}
	}
	if err := c.commit(v, ops); err != nil {
		return err
	}
	for i := range ops {
		c.groupAnswer(w, v, &ops[i])
	}
	return nil
}

// commit executes the operations in one transaction on their logical partition.
func (c *call) commit(v *view, ops []groupOp) error {
	keys := make([]key, len(ops))
	for i := range ops {
		k, err := v.keyOf(c, &ops[i].operation)
		if err != nil {
			return at(err, i)
		}
		keys[i] = k
	}
	done, err := v.WithTx(c.Ctx(), keys[0].pk, func(tx *core.Tx) error {
		tx.Eager() // the reply names the operation that takes another item's unique value
		if err := tx.Fetch(len(keys), func(i int) value.Value { return keys[i].id }); err != nil {
			return err
		}
		for i := range ops {
			o := &ops[i]
			w, err := v.write(&o.build, &o.operation, keys[i])
			if err != nil {
				return at(err, i)
			}
			res, err := tx.Write(&w)
			if err != nil {
				return at(err, i)
			}
			o.item = res.Item
		}
		return nil
	})
	c.Charge = done.Charge
	return err
}

// groupOp reads one request of a change set and returns its table.
func (c *call) groupOp(o *groupOp, r *batch.Op) (table string, err error) {
	addr, _, err := c.groupAddress(r)
	if err != nil {
		return "", err
	}
	var override []string
	// Java's 8.x client repeats the method MERGE in the header.
	if m := r.Get("X-HTTP-Method"); m != "" && m != r.Method {
		override = []string{m}
	}
	method, err := c.method(r.Method, override)
	if err != nil {
		return "", err
	}
	o.id, o.level = r.ContentID, c.level
	o.noContent = r.Get("Prefer") == "return-no-content"
	if a := r.Get("Accept"); strings.Contains(a, "odata=nometadata") {
		o.level = edm.NoMetadata
	} else if strings.Contains(a, "odata=fullmetadata") {
		o.level = edm.Full
	}
	switch method {
	case "POST":
		if addr.Kind != odata.Entities {
			return "", newError("InvalidInput")
		}
		if err := o.entity.Parse(r.Body); err != nil {
			return "", err
		}
		o.operation, err = insertion(&o.entity)
		return addr.Table, err
	case "PUT":
		o.kind = opReplace
	case "MERGE", "PATCH":
		o.kind = opMerge
	case "DELETE":
		o.kind = opDelete
	default:
		return "", errorMsg("InvalidInput", "A change set can't hold this method.")
	}
	if addr.Kind != odata.OneEntity {
		return "", newError("InvalidInput")
	}
	if o.kind != opDelete {
		if err := o.entity.Parse(r.Body); err != nil {
			return "", err
		}
		o.ent = &o.entity
	}
	return addr.Table, o.address(&addr, r.Get("If-Match"), r.Get("If-None-Match"))
}

// groupAddress reads the address of a request in a batch. Scheme, host and port are ignored, because clients behind a
// port mapping send different ones.
func (c *call) groupAddress(r *batch.Op) (odata.Address, string, error) {
	path, query := target(r.URI)
	res, _ := c.s.resourceOf(path, query)
	seg, err := url.PathUnescape(res)
	if err != nil {
		return odata.Address{}, "", newError("InvalidUri")
	}
	addr, err := odata.ParseAddress(seg)
	return addr, query, err
}

// groupAnswer appends the reply to one operation.
func (c *call) groupAnswer(w *batch.Writer, v *view, o *groupOp) {
	insertBody := o.kind == opInsert && !o.noContent
	if insertBody {
		w.Part("201 Created", o.id)
		w.Header("Content-Type", o.level.ContentType())
	} else {
		w.Part("204 No Content", o.id)
	}
	w.Header("X-Content-Type-Options", "nosniff")
	w.Header("Cache-Control", "no-cache")
	if o.noContent && o.kind == opInsert {
		w.Header("Preference-Applied", "return-no-content")
	}
	w.Header("DataServiceVersion", "3.0;")
	if o.kind != opDelete {
		loc := c.location(v.table, o.pk, o.rk)
		if o.kind == opInsert {
			w.Header("Location", loc)
		}
		w.Header("DataServiceId", loc)
		w.Header("ETag", string(edm.AppendETag(nil, o.item.Ticks)))
	}
	var body []byte
	if insertBody {
		level := c.level
		c.level = o.level
		body = c.appendOne(nil, v, o.item, nil)
		c.level = level
	}
	w.Body(body)
}

// groupError appends the only part in the reply to a failed change set.
func (c *call) groupError(w *batch.Writer, id string, e *apiError) {
	c.Set("X-Ms-Error-Code", e.Code)
	w.Part(strconv.Itoa(e.status())+" "+http.StatusText(e.status()), id)
	w.Header("X-Content-Type-Options", "nosniff")
	w.Header("Cache-Control", "no-cache")
	w.Header("DataServiceVersion", "3.0;")
	w.Header("Content-Type", c.level.ContentType())
	w.Body(c.appendError(nil, e))
}

// groupQuery replies to a batch with a single query instead of a change set.
func (c *call) groupQuery(w *batch.Writer, r *batch.Op) {
	body, err := c.queryAlone(r)
	if err != nil {
		c.groupError(w, r.ContentID, translate(err))
		return
	}
	w.Part("200 OK", r.ContentID)
	w.Header("X-Content-Type-Options", "nosniff")
	w.Header("Cache-Control", "no-cache")
	w.Header("DataServiceVersion", "3.0;")
	w.Header("Content-Type", c.level.ContentType())
	for _, name := range [][2]string{
		{"ETag", "Etag"},
		{"x-ms-continuation-NextPartitionKey", "X-Ms-Continuation-Nextpartitionkey"},
		{"x-ms-continuation-NextRowKey", "X-Ms-Continuation-Nextrowkey"},
	} {
		if v := c.Take(name[1]); v != "" {
			w.Header(name[0], v)
		}
	}
	w.Body(body)
}

// queryAlone executes a GET of a batch like its handler would, and returns the body.
func (c *call) queryAlone(r *batch.Op) ([]byte, error) {
	addr, query, err := c.groupAddress(r)
	if err != nil {
		return nil, err
	}
	if addr.Kind != odata.Entities && addr.Kind != odata.OneEntity {
		return nil, newError("InvalidInput")
	}
	c.addr, c.params = addr, parseQuery(nil, query)
	if a := r.Get("Accept"); a != "" {
		if err := c.accept(a); err != nil {
			return nil, err
		}
	}
	c.part = true
	defer func() { c.part = false }()
	if err := handlers[addr.Kind]["GET"].serve(c); err != nil {
		return nil, err
	}
	return c.Out, nil
}
