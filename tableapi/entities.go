package tableapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// opKind is the kind of a write of one entity.
type opKind uint8

const (
	opInsert opKind = iota
	opReplace
	opMerge
	opDelete
)

// permissions are the SAS permissions (letters) that each kind needs. Replace and merge without If-Match may also
// insert.
var permissions = [...]string{opInsert: "a", opReplace: "u", opMerge: "u", opDelete: "d"}

// operation is one write of one entity, alone or in a batch.
type operation struct {
	kind   opKind
	pk, rk string
	cond   condition
	ent    *edm.Entity // nil for opDelete
}

// permission returns the SAS permissions (letters) that the operation needs.
func (o *operation) permission() string {
	if (o.kind == opReplace || o.kind == opMerge) && !o.cond.present {
		return "au"
	}
	return permissions[o.kind]
}

// condition is an If-Match header.
type condition struct {
	present bool
	any     bool  // *
	ticks   int64 // of the ETag; -1 = an ETag that no entity has
}

// ifMatch reads the conditional headers: `*` or a single ETag. If-None-Match is refused.
func ifMatch(match, noneMatch string) (condition, error) {
	if noneMatch != "" {
		return condition{}, newError("InvalidInput")
	}
	switch {
	case match == "":
		return condition{}, nil
	case match == "*":
		return condition{present: true, any: true}, nil
	}
	tag := strings.TrimPrefix(match, "W/")
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return condition{}, newError("InvalidInput")
	}
	c := condition{present: true, ticks: -1}
	if text, ok := strings.CutPrefix(tag[1:len(tag)-1], "datetime'"); ok && strings.HasSuffix(text, "'") {
		if text, err := url.PathUnescape(text[:len(text)-1]); err == nil {
			if v, err := edm.ParseDateTime(text); err == nil {
				c.ticks = v.DateMS()*10_000 + int64(v.Ticks())
			}
		}
	}
	return c, nil
}

// check checks the condition for an item. The caller handles an absent item.
func (c condition) check(old *core.Item) error {
	if old != nil && c.present && !c.any && old.Ticks != c.ticks {
		return newError("UpdateConditionNotSatisfied")
	}
	return nil
}

// write returns the core's write for an operation. b's bytes must stay valid until the write is done. The write's
// functions may run more than once.
func (v *view) write(b *doc.Builder, o *operation, k key) (core.Write, error) {
	w := core.Write{PK: k.pk, ID: k.id}
	if o.cond.present && !o.cond.any {
		w.Check = o.cond.check
	}
	var err error
	switch {
	case o.kind == opDelete:
		w.Kind = core.Delete
	case o.kind == opInsert:
		w.Kind = core.Create
		w.Doc, err = v.appendNew(b, k, o.ent)
	default:
		w.Kind = core.Update
		w.Update = func(old *core.Item) (core.Change, error) { return v.update(b, o, k, old) }
	}
	return w, err
}

// update is the read-modify-write of a merge or replace. A replace needs the old item too: a value that the Table API
// shows read-only keeps its kind if it is sent back unchanged.
func (v *view) update(b *doc.Builder, o *operation, k key, old *core.Item) (core.Change, error) {
	if old == nil {
		if o.cond.present {
			return core.Change{}, newError("ResourceNotFound")
		}
		d, err := v.appendNew(b, k, o.ent)
		return core.Change{Doc: d}, err
	}
	if o.kind == opReplace && v.native && !readOnly(old.Doc) {
		d, err := v.appendNew(b, k, o.ent)
		return core.Change{Doc: d}, err
	}
	d, err := v.appendMerged(b, old.Doc, o.ent, o.kind == opReplace, k)
	return core.Change{Doc: d}, err
}

// keyOf returns the stored key of an operation. Only other APIs store keys that aren't strings. An insertion looks for
// them too: an entity that is shown with its keys exists.
func (v *view) keyOf(c *call, o *operation) (key, error) {
	if v.native && !core.HasOtherIdentity(o.rk) {
		return v.key(o.pk, o.rk)
	}
	return v.locate(c, o.pk, o.rk)
}

// apply validates and executes one operation, and sets its ETag in the reply's headers.
func (c *call) apply(v *view, o *operation) (*core.Item, error) {
	if err := c.permit(v, o); err != nil {
		return nil, err
	}
	k, err := v.keyOf(c, o)
	if err != nil {
		return nil, err
	}
	w, err := v.write(&c.build, o, k)
	if err != nil {
		return nil, err
	}
	res, err := v.Write(c.Ctx(), w)
	if err != nil {
		return nil, err
	}
	c.Charge = res.Charge
	if o.kind != opDelete {
		c.setETag(res.Item)
	}
	return res.Item, nil
}

// setETag sets the reply's ETag.
func (c *call) setETag(it *core.Item) {
	c.BeginLine("Etag")
	c.Lines = edm.AppendETag(c.Lines, it.Ticks)
	c.EndLine()
}

// permit validates the keys and properties of an operation, and checks that the grant permits it.
func (c *call) permit(v *view, o *operation) error {
	if err := c.need(v, o.permission()); err != nil {
		return err
	}
	if err := c.needKey(o.pk, o.rk); err != nil {
		return err
	}
	if o.ent != nil {
		return v.check(o.ent)
	}
	return nil
}

// insertEntity handles POST /t.
func (c *call) insertEntity() error {
	v, err := c.s.view(c.Ctx(), c.addr.Table)
	if err != nil {
		return err
	}
	if err := c.need(v, permissions[opInsert]); err != nil {
		return err
	}
	if err := c.readEntity(); err != nil {
		return err
	}
	o, err := insertion(&c.ent)
	if err != nil {
		return err
	}
	it, err := c.apply(v, &o)
	if err != nil {
		return err
	}
	location := c.location(v.table, o.pk, o.rk)
	c.Set("Location", location)
	if c.noContent() {
		c.Set("Dataserviceid", location)
		return c.sendNothing()
	}
	c.Out = c.appendOne(c.Out[:0], v, it, nil)
	return c.sendJSON(http.StatusCreated)
}

// insertion returns the operation for an entity that contains its keys.
func insertion(e *edm.Entity) (operation, error) {
	if !e.HasPartitionKey || !e.HasRowKey {
		return operation{}, newError("PropertiesNeedValue")
	}
	return operation{kind: opInsert, pk: e.PartitionKey, rk: e.RowKey, ent: e}, nil
}

func (c *call) location(table, pk, rk string) string {
	link := edm.AppendLink(make([]byte, 0, 128), table, []byte(pk), []byte(rk))
	return c.base() + "/" + escapeLink(string(link))
}

// escapeLink escapes characters that a header or a URL path can't contain. Quotes, commas and parentheses stay, because
// clients expect them.
func escapeLink(s string) string {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7F || s[i] == '%' {
			u := url.URL{Path: s}
			return strings.TrimPrefix(u.EscapedPath(), "./")
		}
	}
	return s
}

// appendOne appends one entity as the complete reply.
func (c *call) appendOne(dst []byte, v *view, it *core.Item, names []string) []byte {
	f := c.format(v, names)
	if c.level != edm.NoMetadata {
		f.Context = c.base() + "/$metadata#" + v.table + "/@Element"
	}
	var r edm.Row
	v.row(&r, it)
	return f.Append(dst, &r)
}

func (c *call) format(v *view, names []string) edm.Format {
	f := edm.Format{Level: c.level, Select: names, Account: c.s.o.Account, Table: v.table, Native: v.native}
	if c.level == edm.Full {
		f.Base = c.base()
	}
	return f
}

// getEntity handles GET /t(keys): a point read.
func (c *call) getEntity() error {
	v, err := c.s.view(c.Ctx(), c.addr.Table)
	if err != nil {
		return err
	}
	if err := c.need(v, "r"); err != nil {
		return err
	}
	if err := c.needKey(c.addr.PartitionKey, c.addr.RowKey); err != nil {
		return err
	}
	it, err := v.read(c, c.addr.PartitionKey, c.addr.RowKey)
	if err != nil {
		return notFound(err, "ResourceNotFound")
	}
	c.Charge = ru.Read(len(it.Doc))
	c.setETag(it)
	c.Out = c.appendOne(c.Out[:0], v, it, odata.ParseSelect(c.param("$select")))
	return c.sendJSON(http.StatusOK)
}

// replaceEntity handles PUT /t(keys): an update with If-Match, otherwise an insert or replace.
func (c *call) replaceEntity() error { return c.change(opReplace) }

// mergeEntity handles MERGE and PATCH /t(keys): an update with If-Match, otherwise an insert or merge.
func (c *call) mergeEntity() error { return c.change(opMerge) }

// deleteEntity handles DELETE /t(keys).
func (c *call) deleteEntity() error { return c.change(opDelete) }

func (c *call) change(kind opKind) error {
	v, err := c.s.view(c.Ctx(), c.addr.Table)
	if err != nil {
		return err
	}
	o := operation{kind: kind}
	if err := o.address(&c.addr, c.In.Get("If-Match"), c.In.Get("If-None-Match")); err != nil {
		return err
	}
	if err := c.need(v, o.permission()); err != nil {
		return err
	}
	if kind != opDelete {
		if err := c.readEntity(); err != nil {
			return err
		}
		o.ent = &c.ent
	}
	if _, err := c.apply(v, &o); err != nil {
		return err
	}
	return c.sendNothing()
}

// address sets keys and condition of a write from its URL and headers. Keys in the body are ignored.
func (o *operation) address(a *odata.Address, match, noneMatch string) (err error) {
	o.pk, o.rk = a.PartitionKey, a.RowKey
	if o.cond, err = ifMatch(match, noneMatch); err != nil {
		return err
	}
	if o.kind == opDelete && !o.cond.present {
		return errorMsg("InvalidInput", "The required If-Match header is missing.")
	}
	if o.kind == opDelete {
		return nil
	}
	if err := edm.CheckKey(edm.PartitionKey, o.pk); err != nil {
		return err
	}
	return edm.CheckKey(edm.RowKey, o.rk)
}
