package sqlapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/json"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// maxBatch is the largest number of operations in one batch.
const maxBatch = 100

// batchKind is the operationType of a batch's operation.
type batchKind uint8

const (
	opCreate batchKind = iota
	opUpsert
	opRead
	opReplace
	opDelete
	opPatch
)

var batchKinds = map[string]batchKind{"Create": opCreate, "Upsert": opUpsert, "Read": opRead, "Replace": opReplace,
	"Delete": opDelete, "Patch": opPatch}

var writeKinds = [...]core.WriteKind{opCreate: core.Create, opUpsert: core.Upsert, opReplace: core.Replace,
	opDelete: core.Delete}

// batchOp is one operation of a batch and its result.
type batchOp struct {
	kind               batchKind
	id                 string
	body               []byte
	match, noneMatch   string
	key                string // partition key as header text, for bulk
	indexing           string // as in the header x-ms-indexing-directive
	write              core.Write
	err                error
	code               int
	charge             float64
	item               *core.Item
	created, minimized bool        // minimized: the result is without the item
	kept               bool        // nothing was written
	was                value.Value // the id of the item that is replaced by one with another id; undefined: none
}

// batch answers a transactional batch or a bulk. A transactional batch is atomic: it does all operations or none, on
// one logical partition. The operations of a bulk are independent. A body is JSON, or rows as .NET sends them; its
// results have the same form.
//
// Example: a transactional batch [create id 1, create id 1] answers 207 with the statuses 424 and 409, and writes
// nothing. The same two operations as a bulk answer 207 with 201 and 409, and id 1 is created.
func batch(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	if err := c.ReadBody(maxBody); err != nil {
		return err
	}
	ops, err := c.batchOps()
	if err != nil {
		return err
	}
	if isTrue(c.In, hBatchAtomic) {
		return c.atomicBatch(ct, ops)
	}
	return c.bulk(ct, ops)
}

// batchOps reads the operations of the body.
func (c *call) batchOps() ([]batchOp, error) {
	ops := make([]batchOp, 0, 16)
	minimal := c.minimal()
	add := func(op batchOp) error {
		if len(ops) == maxBatch {
			return status.New(status.BadRequest,
				"Batch request has more operations than what is supported. At most %d are allowed.", maxBatch)
		}
		op.minimized = op.minimized || minimal && op.kind != opRead
		ops = append(ops, op)
		return nil
	}
	var err error
	switch i := json.Space(c.Body, 0); {
	case i < len(c.Body) && c.Body[i] == '[':
		err = json.EachElement(c.Body, func(raw []byte) error {
			var op batchOp
			if err := op.parse(raw); err != nil {
				return err
			}
			return add(op)
		})
	case wire.IsRows(c.Body):
		err = c.eachRow(add)
	default:
		err = status.New(status.BadRequest, "A batch is a JSON array of operations; other encodings are not "+
			"supported by this server.")
	}
	if err == nil && len(ops) == 0 {
		err = status.New(status.BadRequest, "Batch request has no operations.")
	}
	return ops, err
}

func (o *batchOp) parse(raw []byte) error {
	seen := false
	err := json.EachMember(raw, func(name string, raw []byte) error {
		switch name {
		case "resourceBody":
			o.body = raw
			return nil
		case "minimalReturnPreference":
			o.minimized = string(raw) == "true"
			return nil
		case "operationType", "id", "ifMatch", "ifNoneMatch", "partitionKey", "indexingDirective":
		default:
			return nil
		}
		if string(raw) == "null" {
			return nil
		}
		s, ok := json.String(raw)
		if !ok {
			return json.ErrShape
		}
		switch name {
		case "operationType":
			if o.kind, seen = batchKinds[s]; !seen {
				return status.New(status.BadRequest, "The batch operation type '%s' is not supported.", clip(s))
			}
		case "id":
			o.id = s
		case "ifMatch":
			o.match = s
		case "ifNoneMatch":
			o.noneMatch = s
		case "partitionKey":
			o.key = s
		case "indexingDirective":
			o.indexing = s
		}
		return nil
	})
	if err == nil && !seen {
		err = missing("operationType")
	}
	return err
}

// prepare builds the operation's write. The parsed document is appended to room. pk is the batch's partition key.
func (o *batchOp) prepare(ctx context.Context, s *Server, ct *core.Container, pk core.PartitionKey,
	room *[]byte) error {
	switch o.kind {
	case opRead, opDelete, opPatch:
		if o.id == "" {
			return missing("id")
		}
		key, id, err := resolve(ctx, ct, pk, o.id)
		if err != nil {
			return err
		}
		if o.kind == opPatch {
			p, err := s.parsePatch(ctx, ct, o.body)
			if err != nil {
				return err
			}
			o.write = p.write(ctx, key, id, conditions(o.match, o.noneMatch))
			return nil
		}
		o.write = core.Write{Kind: core.Delete, PK: key, ID: id}
	default:
		if len(o.body) == 0 {
			return missing("resourceBody")
		}
		w, err := itemWrite(ctx, ct, writeKinds[o.kind], pk, o.body, room)
		if err != nil {
			return err
		}
		if o.kind == opReplace && o.id != "" && core.IdentityText(w.ID) != o.id {
			if _, o.was, err = resolve(ctx, ct, pk, o.id); err != nil {
				return err
			}
		}
		o.write = w
	}
	o.write.Check = conditions(o.match, o.noneMatch)
	var err error
	o.write.NoIndex, err = noIndex(o.indexing)
	return err
}

// done records the result of a write.
func (o *batchOp) done(res core.Result, err error) {
	if o.err = err; err != nil {
		o.code, _ = httpStatus(rest.Status(err).Code)
		o.charge, o.item = minCharge, nil
		return
	}
	o.item, o.charge, o.created, o.kept = res.Item, res.Charge, res.Created, res.Kept
	switch {
	case o.kind == opDelete:
		o.code, o.item = http.StatusNoContent, nil
	case res.Created:
		o.code = http.StatusCreated
	default:
		o.code = http.StatusOK
	}
}

func (o *batchOp) read(it *core.Item, err error) {
	if err == nil && o.noneMatch != "" && etagListed(o.noneMatch, it.ETag()) {
		err = errNotModified
	}
	if err == nil && o.match != "" && !etagListed(o.match, it.ETag()) {
		err = errEtag
	}
	o.done(core.Result{Item: it}, err)
	if err == nil {
		o.charge = ru.Read(len(it.Doc))
	}
}

// shown returns how much memory the operation's reply takes: the document and its JSON.
func (o *batchOp) shown() int {
	if o.item == nil || o.minimized {
		return 0
	}
	return 2 * len(o.item.Doc)
}

// atomicBatch runs all operations in one transaction. The first that fails keeps its own status, every other one gets
// 424, and nothing is written.
func (c *call) atomicBatch(ct *core.Container, ops []batchOp) error {
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &ct.Spec().PartitionKey, keyFull)
	if err != nil {
		if e := status.From(err); e.Sub == status.SubPartitionKeyMismatch {
			return errBatchKey
		}
		return err
	}
	for i := range ops {
		if err := ops[i].inPartition(ct, pk); err != nil {
			return err
		}
	}
	docs := make([]byte, 0, len(c.Body)+len(c.Body)/4)
	failed := -1
	for i := range ops {
		if err := ops[i].prepare(c.Ctx(), c.s, ct, pk, &docs); err != nil {
			ops[i].done(core.Result{}, err)
			failed = i
			break
		}
	}
	if failed < 0 {
		if failed, err = c.runBatch(ct, pk, ops); err != nil {
			return err
		}
	}
	c.setSession(ct, pk)
	code := http.StatusOK
	if failed >= 0 {
		code = http.StatusMultiStatus
		for i := range ops {
			if i != failed {
				ops[i].done(core.Result{}, errDependency)
			}
			ops[i].charge = minCharge
		}
	}
	return c.sendBatch(ct, ops, code)
}

// inPartition refuses an operation of a transactional batch that names another partition key than the batch: it is
// meant for another item. Most clients name none.
func (o *batchOp) inPartition(ct *core.Container, pk core.PartitionKey) error {
	if o.key == "" {
		return nil
	}
	var room [maxKeyPaths]value.Value
	own, err := keyOf(room[:0], o.key, &ct.Spec().PartitionKey, keyFull)
	if err != nil || !sameKey(own, pk) {
		return errOtherKey
	}
	return nil
}

var errOtherKey = status.New(status.BadRequest, "One or more operations within the batch request have a different "+
	"partition key value than the request.")

// errDependency is the status of operations that were not executed because another one failed. It is answered as 424.
var errDependency = status.New(status.Internal, "The operation was not executed because another operation of the "+
	"batch failed.")

// errBatchKey refuses a key that hasn't one value for each path.
var errBatchKey = status.WithSub(status.BadRequest, status.SubPartitionKeyMismatch, "Partition key provided either "+
	"doesn't correspond to definition in the collection or doesn't match partition key field values specified in the "+
	"document.")

// runBatch runs the operations. failed is the index of the operation that failed, -1 when all succeeded.
func (c *call) runBatch(ct *core.Container, pk core.PartitionKey, ops []batchOp) (failed int, err error) {
	failed = -1
	done, err := ct.WithTx(c.Ctx(), pk, func(tx *core.Tx) error {
		tx.Eager() // the reply names the operation that takes another item's unique value
		failed = -1
		if err := tx.Fetch(len(ops), func(i int) value.Value { return ops[i].write.ID }); err != nil {
			return err
		}
		held := 0
		for i := range ops {
			o := &ops[i]
			switch {
			case o.kind == opRead:
				it, err := tx.Read(o.write.ID)
				o.read(it, err)
			case o.was.IsDefined():
				o.done(renameIn(tx, o.was, o.write))
			default:
				o.done(tx.Write(&o.write))
			}
			if o.err != nil && !status.Is(o.err, status.NotModified) {
				failed = i
				return o.err
			}
			held += o.shown()
			if err := c.Hold(held); err != nil {
				return err
			}
		}
		return nil
	})
	if failed >= 0 && status.CodeOf(ops[failed].err) != status.Internal {
		return failed, nil
	}
	if e := status.From(err); e != nil && e.Index >= 0 && e.Index < len(ops) { // found at commit, e.g. a unique key
		ops[e.Index].done(core.Result{}, err)
		return e.Index, nil
	}
	for i := range ops {
		if o := &ops[i]; o.kind != opRead && !o.kept && len(done.Writes) > 0 {
			o.charge, done.Writes = done.Writes[0], done.Writes[1:]
			if o.was.IsDefined() && len(done.Writes) > 0 {
				o.charge, done.Writes = o.charge+done.Writes[0], done.Writes[1:]
			}
		}
	}
	return -1, err
}

// bulk runs independent operations: one that fails doesn't undo the others. If the client has turned off "continue on
// error", the operations behind a failed one aren't run and get 424. The reply is 207 when an operation failed or the
// statuses differ.
func (c *call) bulk(ct *core.Container, ops []batchOp) error {
	goOn := isTrue(c.In, hBatchContinue) || header(c.In, hBatchContinue) == ""
	if id := header(c.In, hRangeID); id != "" {
		if _, err := c.rangeByID(ct, id); err != nil {
			return err
		}
	}
	// The replies contain the documents, so the parsed documents must stay in memory until the reply is written.
	docs := make([]byte, 0, len(c.Body)+len(c.Body)/4)
	held := 0
	for from := 0; from < len(ops); {
		to := c.bulkRun(ct, ops[from:], &docs, &held, goOn)
		if from += to; !goOn && ops[from-1].err != nil {
			for i := from; i < len(ops); i++ {
				ops[i].done(core.Result{}, errDependency)
			}
			break
		}
	}
	c.setContainer(ct)
	c.setContainerSession(ct)
	code := http.StatusOK
	for i := range ops {
		if ops[i].code != ops[0].code || ops[i].err != nil {
			code = http.StatusMultiStatus
		}
	}
	return c.sendBatch(ct, ops, code)
}

// bulkRun runs the first operations of a bulk and returns their number. These are one read, one replace that changes
// the id, or one refused operation, or all writes up to the next of these. Such writes wait for the disk together,
// once. Without goOn bulkRun ends after the first write that fails. held is the memory of the replies in bytes. If
// there is no memory for a reply, a read fails. A write is done at that point, so it is answered without its document.
func (c *call) bulkRun(ct *core.Container, ops []batchOp, docs *[]byte, held *int, goOn bool) int {
	var writes []core.Write
	for i := range ops {
		o := &ops[i]
		err := c.bulkPrepare(ct, o, docs)
		if err == nil && o.kind != opRead && !o.was.IsDefined() {
			writes = append(writes, o.write)
			continue
		}
		if i > 0 { // the writes before it come first
			break
		}
		switch {
		case err != nil:
			o.done(core.Result{}, err)
		case o.was.IsDefined():
			o.done(rename(c.Ctx(), ct, o.was, o.write))
			c.holdWritten(o, held)
		default:
			it, err := ct.Read(c.Ctx(), o.write.PK, o.write.ID)
			o.read(it, err)
			if err := c.Hold(*held + o.shown()); err != nil {
				o.done(core.Result{}, err)
			}
			*held += o.shown()
		}
		return 1
	}
	outcomes := ct.WriteMany(c.Ctx(), writes, !goOn)
	for i := range outcomes {
		o := &ops[i]
		o.done(outcomes[i].Result, outcomes[i].Err)
		c.holdWritten(o, held)
	}
	return len(outcomes)
}

// holdWritten counts the memory of the reply to a write. If there is none, the reply is without the document.
func (c *call) holdWritten(o *batchOp, held *int) {
	if n := o.shown(); n > 0 && c.Hold(*held+n) != nil {
		o.minimized, o.item.Doc = true, nil
	}
	*held += o.shown()
}

// bulkPrepare builds the write of one operation. Each operation has its own partition key.
func (c *call) bulkPrepare(ct *core.Container, o *batchOp, docs *[]byte) error {
	text := o.key
	if text == "" {
		text = header(c.In, hPartitionKey)
	}
	pk, err := keyOf(nil, text, &ct.Spec().PartitionKey, keyFull)
	if err == nil {
		err = c.s.checkKeySize(pk)
	}
	if err != nil {
		return err
	}
	return o.prepare(c.Ctx(), c.s, ct, pk, docs)
}

// sendBatch writes the results. Each has a charge and, when it names an item, an etag: clients rely on both.
func (c *call) sendBatch(ct *core.Container, ops []batchOp, code int) error {
	c.Charge = 0
	for i := range ops {
		o := &ops[i]
		if o.err == errDependency {
			o.code = http.StatusFailedDependency
		}
		o.charge = max(o.charge, minCharge)
		c.Charge += o.charge
	}
	c.SetInt(hItemCount, int64(len(ops)))
	if wire.IsRows(c.Body) {
		c.Out = appendRows(c.Out[:0], ct, ops)
		return c.sendAs(code, vBytes)
	}
	b := append(c.Out[:0], '[')
	for i := range ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = ops[i].appendJSON(b, ct)
	}
	c.Out = append(b, ']')
	return c.send(code)
}

// appendJSON appends the result as JSON.
func (o *batchOp) appendJSON(b []byte, ct *core.Container) []byte {
	b = append(b, `{"statusCode":`...)
	b = strconv.AppendInt(b, int64(o.code), 10)
	b = append(b, `,"requestCharge":`...)
	b = strconv.AppendFloat(b, o.charge, 'f', 2, 64)
	if o.err != nil && o.err != errDependency {
		e := rest.Status(o.err)
		sub, retry := refusal(e)
		if sub != 0 {
			b = append(b, `,"subStatusCode":`...)
			b = strconv.AppendInt(b, int64(sub), 10)
		}
		if retry > 0 {
			b = append(b, `,"retryAfterMilliseconds":`...)
			b = strconv.AppendInt(b, retry, 10)
		}
		b = append(b, `,"message":`...)
		b = json.AppendString(b, message(e))
	}
	if o.item != nil {
		b = append(b, `,"eTag":"\"`...)
		b = o.item.AppendETag(b)
		b = append(b, `\""`...)
		if !o.minimized {
			b = append(b, `,"resourceBody":`...)
			b = appendShown(b, ct, o.item)
		}
	}
	return append(b, '}')
}
