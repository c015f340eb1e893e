package sqlapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// maxID is the greatest length of an item's id in bytes.
const maxID = 1023

// appendItem appends an item as the service shows it: its fields in stored order, then the system fields.
func appendItem(dst []byte, coll [8]byte, it *core.Item, style value.Style) []byte {
	start := len(dst)
	dst = append(dst, '{')
	dst = doc.AppendFields(dst, it.Doc, doc.NoSQL, style)
	if len(dst) > start+1 {
		dst = append(dst, ',')
	}
	return append(appendItemSystem(dst, coll, it), '}')
}

// appendItemSystem appends the system fields of an item, without braces.
func appendItemSystem(dst []byte, coll [8]byte, it *core.Item) []byte {
	dst = append(dst, `"_rid":"`...)
	dst = wire.AppendChildRID(dst, coll, it.Number, wire.RIDItem)
	dst = append(dst, `","_self":"`...)
	dst = appendContainerSelf(dst, coll)
	dst = append(dst, "docs/"...)
	dst = wire.AppendChildRID(dst, coll, it.Number, wire.RIDItem)
	dst = append(dst, `/","_etag":`...)
	dst = append(dst, `"\"`...)
	dst = it.AppendETag(dst)
	dst = append(dst, `\"","_attachments":"attachments/","_ts":`...)
	return strconv.AppendInt(dst, it.TS(), 10)
}

// setSession adds the headers of a reply that concerns one logical partition.
func (c *call) setSession(ct *core.Container, pk core.PartitionKey) {
	if slot, err := ct.SlotOf(pk); err == nil {
		c.setSlot(ct, slot)
		return
	}
	c.setContainer(ct)
}

// setSlot adds the session token, LSN and id of the physical partition of a slot, and the container's headers.
func (c *call) setSlot(ct *core.Container, slot *core.Slot) {
	id, lsn := ct.SessionOf(slot)
	c.BeginLine(rRangeID)
	c.Lines = strconv.AppendInt(c.Lines, int64(id), 10)
	c.EndLine()
	c.BeginLine(rSessionToken)
	var room [20]byte
	c.Lines = wire.AppendSessionToken(c.Lines, strconv.AppendInt(room[:0], int64(id), 10), lsn, c.simpleTokens())
	c.EndLine()
	c.SetInt(hLSN, lsn)
	c.setContainer(ct)
}

// itemKey returns the partition key and id of the item that the path names. The item may be named by its resource id if
// its container is, or if there is no partition key to find it by.
func (c *call) itemKey(ct *core.Container, room core.PartitionKey) (core.PartitionKey, value.Value, error) {
	name := c.Param("id")
	if c.namesByRID(ct) {
		if coll, number, ok := wire.ParseItemRID(name); ok && coll == ct.RID() {
			if header(c.In, hPartitionKey) != "" { // it isn't needed, but the service wants it whole
				if _, err := c.partitionKey(room, &ct.Spec().PartitionKey, keyFull); err != nil {
					return nil, value.Value{}, err
				}
			}
			return c.keyByNumber(ct, number)
		}
	}
	pk, err := c.partitionKey(room, &ct.Spec().PartitionKey, keyFull)
	if err != nil {
		return nil, value.Value{}, err
	}
	return resolve(c.Ctx(), ct, pk, name)
}

// namesByRID reports whether the path may name its item by resource id.
func (c *call) namesByRID(ct *core.Container) bool {
	return len(c.Param("id")) == wire.ItemRIDLen && (c.Param("coll") != ct.ID() || header(c.In, hPartitionKey) == "")
}

func readItem(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		return err
	}
	it := &c.item
	slot, err := ct.ReadInto(c.Ctx(), it, &c.room, pk, id)
	if v := header(c.In, hSessionToken); v != "" { // the read has shown the last commit of the slot
		if err := c.checkSession(ct, v); err != nil {
			return err
		}
	}
	if slot != nil {
		c.setSlot(ct, slot)
	} else {
		c.setContainer(ct)
	}
	if err != nil {
		return err
	}
	c.Charge = ru.Read(len(it.Doc))
	c.setItemETag(it)
	c.SetInt(hItemLSN, it.LSN)
	if v := header(c.In, hIfNoneMatch); v != "" && etagListed(v, it.ETag()) {
		return errNotModified
	}
	c.Out = appendShown(c.Out[:0], ct, it)
	return c.send(http.StatusOK)
}

// readItemBody reads the item of a request. Some clients write items in the binary form of JSON.
func (c *call) readItemBody() error {
	err := c.ReadBody(maxBody)
	if err != nil || !wire.IsBinaryJSON(c.Body) {
		return err
	}
	if c.Body, err = wire.TextOfBinaryJSON(c.Body, maxBody); err != nil {
		return err
	}
	return c.Hold(len(c.Body)) // beside the bytes that it was made from
}

func createItem(c *call) error { return c.postItem(core.Create) }

func upsertItem(c *call) error { return c.postItem(core.Upsert) }

func (c *call) postItem(kind core.WriteKind) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if err := c.readItemBody(); err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &ct.Spec().PartitionKey, keyFull)
	if err != nil {
		return err
	}
	if c.hasTriggers() {
		return c.writeTriggered(ct, kind, pk, value.Value{})
	}
	return c.writeItem(ct, kind, pk, value.Value{})
}

func replaceItem(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if err := c.readItemBody(); err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		return err
	}
	if c.hasTriggers() {
		return c.writeTriggered(ct, core.Replace, pk, id)
	}
	return c.writeItem(ct, core.Replace, pk, id)
}

// writeItem parses the body and writes the item. It refuses an item whose partition key differs from the header. id is
// that of the item that is replaced.
func (c *call) writeItem(ct *core.Container, kind core.WriteKind, pk core.PartitionKey, id value.Value) error {
	w, err := itemWrite(c.Ctx(), ct, kind, pk, c.Body, &c.Spare)
	if err != nil {
		return err
	}
	if w.NoIndex, err = noIndex(header(c.In, hIndexing)); err != nil {
		return err
	}
	w.Check = conditions(header(c.In, hIfMatch), header(c.In, hIfNoneMatch))
	var res core.Result
	if id.IsDefined() && core.IdentityText(w.ID) != core.IdentityText(id) {
		if c.grant != nil && c.grant.Child != "" { // of the old item only
			return errNoRight
		}
		res, err = rename(c.Ctx(), ct, id, w)
	} else {
		res, err = ct.Write(c.Ctx(), w)
	}
	if err != nil {
		c.setSession(ct, w.PK)
		return err
	}
	c.setSlot(ct, res.Slot)
	c.Charge = res.Charge
	c.setItemETag(res.Item)
	code := http.StatusOK
	if res.Created {
		code = http.StatusCreated
	}
	if !c.minimal() {
		c.Out = appendShown(c.Out[:0], ct, res.Item)
	}
	return c.send(code)
}

// itemWrite builds the write of an item's JSON. It refuses an item whose partition key differs from the request's. The
// document is appended to *room, and the write points into it.
func itemWrite(ctx context.Context, ct *core.Container, kind core.WriteKind, key core.PartitionKey, body []byte,
	room *[]byte) (core.Write, error) {
	start := len(*room)
	d, err := doc.FromJSON(*room, body, doc.JSONOptions{Names: doc.NoSQL, Extended: isExtended(ct)})
	if err != nil {
		return core.Write{}, err
	}
	*room = d
	d = d[start:]
	pk, id, err := ct.KeyOf(d)
	if err != nil {
		return core.Write{}, err
	}
	if err := checkID(id); err != nil {
		return core.Write{}, err
	}
	same, read := sameKey(key, pk), true
	if kind != core.Create && core.HasOtherIdentity(string(id.Bytes())) {
		// The id may be the text of an id of another type.
		if pk, id, err = resolve(ctx, ct, pk, id.Str()); err != nil {
			return core.Write{}, err
		}
		if read = false; id.Kind() != value.String {
			if d, err = doc.Set(d, id, "_id"); err != nil {
				return core.Write{}, err
			}
		}
	}
	if !same && !sameKey(key, pk) {
		return core.Write{}, errPKMismatch
	}
	if isTable(ct) {
		if d, err = tableStored(d); err != nil {
			return core.Write{}, err
		}
		read = false
	}
	if err := checkTTL(doc.Get(d, "ttl"), expires(ct)); err != nil {
		return core.Write{}, err
	}
	return core.Write{Kind: kind, PK: pk, ID: id, Doc: d, KeyRead: read}, nil
}

// checkID refuses an id that isn't a string of 1 to 1023 bytes or breaks another rule of the service.
func checkID(id value.Value) error {
	switch {
	case !id.IsDefined():
		return missing("id")
	case id.Kind() != value.String:
		return status.New(status.BadRequest, "The input content is invalid because the property 'id' is not a string.")
	case len(id.Bytes()) == 0 || len(id.Bytes()) > maxID:
		return status.New(status.BadRequest, "The input name '%s' is invalid. Ensure to provide a unique non-empty "+
			"string less than '%d' characters.", clip(id.Str()), maxID+1)
	}
	return nil
}

// expires reports whether items of a container may have a time to live.
func expires(ct *core.Container) bool { return ct.Spec().DefaultTTL != nil }

// checkTTL refuses an item's time to live that isn't absent, -1 or a positive int32 (in seconds). Where items have
// none, it may be null.
func checkTTL(v value.Value, expires bool) error {
	switch v.Kind() {
	case value.Undefined:
		return nil
	case value.Null:
		if !expires {
			return nil
		}
	case value.Int32, value.Int64:
		if validTTL(v.Int()) {
			return nil
		}
	case value.Double:
		if f := v.Float(); f == float64(int64(f)) && validTTL(int64(f)) {
			return nil
		}
	}
	return badTTL(string(doc.AppendJSON(nil, v)))
}

// noIndex parses the indexing directive. It reports whether the item must not be indexed.
func noIndex(v string) (bool, error) {
	switch {
	case v == "" || strings.EqualFold(v, "Default") || strings.EqualFold(v, "Include"):
		return false, nil
	case strings.EqualFold(v, "Exclude"):
		return true, nil
	}
	return false, badHeader("x-ms-indexing-directive", v)
}

// conditions returns the check of If-Match and If-None-Match, nil when there is none. The check is called under the
// item's latch.
//
//go:noinline // each caller would get its own copy of the closure
func conditions(match, noneMatch string) func(old *core.Item) error {
	if match == "" && noneMatch == "" {
		return nil
	}
	return func(old *core.Item) error {
		if old == nil {
			return nil // no such item: an upsert creates it; a replace or delete answers 404 anyway
		}
		if match != "" && !etagListed(match, old.ETag()) || noneMatch != "" && etagListed(noneMatch, old.ETag()) {
			return errEtag
		}
		return nil
	}
}

func deleteItem(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		return err
	}
	if c.hasTriggers() {
		return c.writeTriggered(ct, core.Delete, pk, id)
	}
	w := core.Write{Kind: core.Delete, PK: pk, ID: id}
	w.Check = conditions(header(c.In, hIfMatch), header(c.In, hIfNoneMatch))
	res, err := ct.Write(c.Ctx(), w)
	c.setSession(ct, pk)
	if err != nil {
		return err
	}
	c.Charge = res.Charge
	return c.send(http.StatusNoContent)
}
