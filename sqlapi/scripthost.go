package sqlapi

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	cjson "github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/script"
	"github.com/orrerydb/orrery/sqlapi/sql"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// scriptHost answers the calls of one run of a program: operations on the items of one logical partition, in one
// transaction. It implements script.Host.
//
// A new item has no resource id and no etag before the commit. So a program sees provisional ones, by which it can
// address the item. In what the program leaves for the client they are replaced by the final ones (final).
type scriptHost struct {
	s    *Server
	ct   *core.Container
	tx   *core.Tx
	pk   core.PartitionKey
	made []provisional
	// charge is the cost in RU of the queries; the transaction knows that of everything else.
	charge float64
	log    string // of the transaction's programs
	sizes  []byte // members of info about the container, as it was at the first operation; nil: not read yet
}

var _ script.Host = (*scriptHost)(nil)

// provisional is a version of an item that a program has written.
type provisional struct {
	item   *core.Item // final after the commit if it is the last version
	number uint64
	etag   string
}

// scriptPage is the number of documents of a page when a program names none.
const scriptPage = 100

var (
	errForeignLink = "Function is not allowed to operate on resources outside current collection. Make sure that the " +
		"link provided, \"%s\", belongs to current collection."
	errForeignKey = status.New(status.BadRequest, "Requests originating from scripts cannot reference partition keys "+
		"other than the one for which client request was submitted.")
	errAttachments = status.New(status.NotSupported, "Attachments are not supported by this server.")
)

// scriptOptions are the options of a call of the collection object.
type scriptOptions struct {
	ETag         string  `json:"etag"`
	IfNoneMatch  string  `json:"ifNoneMatch"`
	IndexAction  string  `json:"indexAction"`
	PageSize     float64 `json:"pageSize"`
	Continuation string  `json:"continuation"`
}

// scriptCall is one call in progress.
type scriptCall struct {
	*scriptHost
	ctx context.Context
	op  *script.Op
	opt scriptOptions
	id  value.Value // of the item that the link names
}

// scriptOp is an operation of the collection object.
type scriptOp struct {
	item bool // the link names an item
	run  func(c *scriptCall) (script.Reply, error)
}

var scriptOps = map[string]scriptOp{
	"createDocument":  {false, func(c *scriptCall) (script.Reply, error) { return c.write(core.Create) }},
	"upsertDocument":  {false, func(c *scriptCall) (script.Reply, error) { return c.write(core.Upsert) }},
	"replaceDocument": {true, func(c *scriptCall) (script.Reply, error) { return c.write(core.Replace) }},
	"deleteDocument":  {true, (*scriptCall).delete},
	"readDocument":    {true, (*scriptCall).read},
	"readDocuments": {false, func(c *scriptCall) (script.Reply, error) {
		return c.query(querySpec{text: "SELECT * FROM c"})
	}},
	"queryDocuments": {false, (*scriptCall).queryText},
}

// Do implements script.Host.
func (h *scriptHost) Do(ctx context.Context, op script.Op) (script.Reply, *script.Error) {
	r, err := h.do(ctx, &op)
	if err == nil {
		return r, nil
	}
	e := rest.Status(err)
	code, _ := httpStatus(e.Code)
	sub, _ := refusal(e)
	return script.Reply{}, &script.Error{Status: code, Sub: sub, Body: message(e)}
}

func (h *scriptHost) do(ctx context.Context, op *script.Op) (script.Reply, error) {
	o, ok := scriptOps[op.Name]
	if !ok {
		if strings.Contains(op.Name, "ttachment") {
			return script.Reply{}, errAttachments
		}
		return script.Reply{}, status.New(status.NotSupported, "The function %s is not supported by this server.",
			clip(op.Name))
	}
	c := &scriptCall{scriptHost: h, ctx: ctx, op: op}
	if len(op.Options) > 0 {
		if err := json.Unmarshal(op.Options, &c.opt); err != nil {
			return script.Reply{}, status.New(status.BadRequest, "The options of %s are malformed.", op.Name)
		}
	}
	if err := c.locate(o.item); err != nil {
		return script.Reply{}, err
	}
	return o.run(c)
}

// locate checks the link. It must name the program's container, or an item of it. It is no URL: nothing in it is
// percent-encoded, because programs put ids into it as they are.
func (c *scriptCall) locate(item bool) error {
	link := strings.Split(strings.TrimSuffix(c.op.Link, "/"), "/")
	want, what := 4, "collection"
	if item {
		want, what = 6, "document"
	}
	if len(link) != want || link[0] != "dbs" || link[2] != "colls" || item && link[4] != "docs" {
		return status.New(status.BadRequest, "Invalid %s link: \"%s\".", what, clip(c.op.Link))
	}
	rid := c.ct.RID()
	db, coll := string(wire.AppendRID(nil, rid[:4])), string(wire.AppendRID(nil, rid[:]))
	if link[1] != c.ct.Database() && link[1] != db || link[3] != c.ct.ID() && link[3] != coll {
		return status.New(status.BadRequest, errForeignLink, clip(c.op.Link))
	}
	if !item {
		return nil
	}
	if link[3] == coll {
		if of, number, ok := wire.ParseItemRID(link[5]); ok && of == rid {
			id, ok, err := c.tx.ByNumber(number)
			if err == nil && !ok {
				err = errNotFound
			}
			c.id = id
			return err
		}
	}
	pk, id, err := resolve(c.ctx, c.ct, c.pk, link[5])
	if err == nil && !sameKey(pk, c.pk) {
		err = errForeignKey
	}
	c.id = id
	return err
}

// write creates, replaces or upserts the document in the call's body.
func (c *scriptCall) write(kind core.WriteKind) (script.Reply, error) {
	if len(c.op.Body) > maxBody {
		return script.Reply{}, errTooLarge
	}
	var room []byte
	w, err := itemWrite(c.ctx, c.ct, kind, c.pk, c.op.Body, &room)
	if err == errPKMismatch {
		err = errForeignKey
	}
	if err != nil {
		return script.Reply{}, err
	}
	if kind == core.Replace && !value.Identical(w.ID, c.id) {
		return script.Reply{}, errInvalid
	}
	if w.NoIndex, err = noIndex(c.opt.IndexAction); err != nil {
		return script.Reply{}, err
	}
	w.Check = conditions(c.opt.ETag, "")
	res, err := c.tx.Write(&w)
	if err != nil {
		return script.Reply{}, err
	}
	c.note(res.Item)
	code := 200
	if res.Created {
		code = 201
	}
	return c.done(code, res.Item)
}

// note records a version of an item that the transaction has written.
func (h *scriptHost) note(it *core.Item) {
	h.made = append(h.made, provisional{it, it.Number, it.ETag()})
}

func (c *scriptCall) delete() (script.Reply, error) {
	w := core.Write{Kind: core.Delete, ID: c.id, Check: conditions(c.opt.ETag, "")}
	if _, err := c.tx.Write(&w); err != nil {
		return script.Reply{}, err
	}
	return c.done(204, nil)
}

func (c *scriptCall) read() (script.Reply, error) {
	it, err := c.tx.Read(c.id)
	if err != nil {
		return script.Reply{}, err
	}
	if v := c.opt.IfNoneMatch; v != "" && etagListed(v, it.ETag()) {
		return c.done(304, nil)
	}
	return c.done(200, it)
}

// done answers with an item; nil: without one.
func (c *scriptCall) done(code int, it *core.Item) (r script.Reply, err error) {
	if it != nil {
		r.Body, r.ETag = appendShown(nil, c.ct, it), `"`+it.ETag()+`"`
	}
	r.Options, err = c.info(code, "")
	return r, err
}

// info returns the object that a callback gets about an operation.
func (c *scriptCall) info(code int, continuation string) ([]byte, error) {
	if c.sizes == nil {
		size, parts := int64(0), c.ct.Known()
		for _, p := range parts {
			size += p.Bytes
		}
		c.sizes = strconv.AppendInt([]byte(`,"currentCollectionSizeInMB":`), size>>20, 10)
		c.sizes = append(c.sizes, `,"maxCollectionSizeInMB":`...)
		c.sizes = strconv.AppendInt(c.sizes, int64(quotaKB/1024*len(parts)), 10)
	}
	b := append([]byte(nil), `{"statusCode":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, c.sizes...)
	b = append(b, `,"notModified":`...)
	b = strconv.AppendBool(b, code == 304)
	if continuation != "" {
		b = append(b, `,"continuation":`...)
		b = cjson.AppendString(b, continuation)
	}
	return append(b, '}'), nil
}

// queryText runs the query of the call.
func (c *scriptCall) queryText() (script.Reply, error) {
	spec, err := parseQuery(c.op.Query)
	if err != nil {
		return script.Reply{}, err
	}
	return c.query(spec)
}

// query answers with one page of a query over the logical partition as the transaction sees it.
func (c *scriptCall) query(spec querySpec) (script.Reply, error) {
	plan, err := sql.Compile(spec.text, spec.params, c.s.env(c.ctx, c.ct))
	if err != nil {
		return script.Reply{}, err
	}
	size := scriptPage
	switch n := c.opt.PageSize; {
	case n < 0:
		size = largestPage
	case n >= 1:
		size = int(min(n, largestPage))
	}
	page := sql.Page{Body: []byte{'['}}
	req := sql.Request{PK: c.pk, Tx: c.tx, PageSize: size, MaxBytes: maxReply, Continuation: c.opt.Continuation}
	if err := plan.Execute(c.ctx, c.ct, req, &page); err != nil {
		return script.Reply{}, err
	}
	c.charge += page.Charge
	info, err := c.info(200, page.Continuation)
	return script.Reply{Body: append(page.Body, ']'), Options: info}, err
}

// final replaces the provisional resource ids and etags in a text by those that the commit has given.
func (h *scriptHost) final(text []byte) []byte {
	if len(text) == 0 || len(h.made) == 0 {
		return text
	}
	numbers, coll := map[uint64]uint64{}, h.ct.RID()
	for _, p := range h.made {
		if p.item.LSN != 0 && p.item.Number != p.number {
			numbers[p.number] = p.item.Number
		}
	}
	for was, is := range numbers {
		text = bytes.ReplaceAll(text, wire.AppendChildRID(nil, coll, was, wire.RIDItem),
			wire.AppendChildRID(nil, coll, is, wire.RIDItem))
	}
	for _, p := range h.made {
		if p.item.LSN != 0 {
			text = bytes.ReplaceAll(text, []byte(p.etag), p.item.AppendETag(nil))
		}
	}
	return text
}

// last returns the last version of an item that the transaction has written.
func (h *scriptHost) last(it *core.Item, number uint64) *core.Item {
	for _, p := range h.made {
		if p.number == number && p.item.LSN != 0 {
			return p.item
		}
	}
	return it
}
