package sqlapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/rest"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// rowKinds are the operations of a batch as .NET's client numbers them.
var rowKinds = map[int32]batchKind{0: opCreate, 1: opPatch, 2: opRead, 4: opDelete, 5: opReplace, 20: opUpsert}

// eachRow calls add for each operation of a body that consists of rows. Items in them may be in the binary form of
// JSON. Their texts together may be as long as a body, and are held beside it.
func (c *call) eachRow(add func(batchOp) error) error {
	texts := 0
	return wire.EachOperation(c.Body, func(row *wire.RowOperation) (err error) {
		if wire.IsBinaryJSON(row.Body) {
			if row.Body, err = wire.TextOfBinaryJSON(row.Body, maxBody-texts); err != nil {
				return err
			}
			texts += len(row.Body)
			if err := c.Hold(texts); err != nil {
				return err
			}
		}
		op, err := batchRow(row)
		if err != nil {
			return err
		}
		return add(op)
	})
}

// batchRow returns the operation that a row has.
func batchRow(row *wire.RowOperation) (batchOp, error) {
	kind, ok := rowKinds[row.Type]
	if !ok {
		return batchOp{}, status.New(status.BadRequest, "The batch operation type %d is not supported.", row.Type)
	}
	return batchOp{kind: kind, id: row.ID, body: row.Body, match: row.IfMatch, noneMatch: row.IfNoneMatch,
		key: row.PartitionKey, indexing: row.Indexing, minimized: row.Minimal}, nil
}

// appendRows appends the results as rows. They have no place for the text of an error.
func appendRows(b []byte, ct *core.Container, ops []batchOp) []byte {
	b = wire.AppendRowSegment(b)
	var etag, body []byte
	for i := range ops {
		o := &ops[i]
		r := wire.RowResult{Status: o.code, Charge: o.charge}
		if o.err != nil && o.err != errDependency {
			r.SubStatus, r.RetryAfter = refusal(rest.Status(o.err))
		}
		if o.item != nil {
			etag = append(o.item.AppendETag(append(etag[:0], '"')), '"')
			r.ETag = etag
			if !o.minimized {
				body = appendShown(body[:0], ct, o.item)
				r.Body = body
			}
		}
		b = r.Append(b)
	}
	return b
}
