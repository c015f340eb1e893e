package sqlapi

import (
	"context"
	"net/http"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// deletePage is the number of items that a delete by partition key deletes before it waits for the disk. It bounds the
// memory of the operation.
const deletePage = 500

// otherOperation refuses an unknown operation on a container. The only known one is the delete by partition key.
func otherOperation(c *call) error {
	return status.New(status.NotSupported, "The operation %s on containers is not supported by this server.",
		clip(c.Param("operation")))
}

// deleteByKey deletes all items that a logical partition has when the operation begins. When it answers, they are
// deleted. As in the service it is not a transaction, and it continues when the client disconnects.
func deleteByKey(c *call) error {
	ct, err := c.parent()
	if err != nil {
		return err
	}
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &ct.Spec().PartitionKey, keyFull)
	if err != nil {
		return err
	}
	ctx, cancel := c.outlast()
	defer cancel()
	until, err := ct.LSNOf(ctx, pk)
	if err != nil {
		return err
	}
	keep := func(old *core.Item) error {
		if old != nil && old.LSN > until {
			return errEtag // written again in the meantime
		}
		return nil
	}
	next := ""
	for {
		writes, token, charge, err := deletions(ctx, ct, pk, until, next)
		if err != nil {
			return err
		}
		c.Charge += charge
		for i := range writes {
			writes[i].Check = keep
		}
		for _, o := range ct.WriteMany(ctx, writes, false) {
			switch status.CodeOf(o.Err) {
			case status.PreconditionFailed, status.NotFound:
			default:
				if o.Err != nil {
					return o.Err
				}
				c.Charge += o.Result.Charge
			}
		}
		if token == "" {
			break
		}
		next = token
	}
	c.setSession(ct, pk)
	return c.send(http.StatusOK)
}

// outlast returns a context that doesn't end when the client disconnects, but ends at the request's time limit.
func (c *call) outlast() (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(c.Ctx())
	if at, ok := c.Ctx().Deadline(); ok {
		return context.WithDeadline(ctx, at)
	}
	return ctx, func() {}
}

// deletions returns the deletes of up to deletePage items of a logical partition, and the position to continue from.
func deletions(ctx context.Context, ct *core.Container, pk core.PartitionKey, until int64, from string) (
	w []core.Write, next string, charge float64, err error) {
	rows, err := ct.Query(ctx, &exec.Query{PK: pk, Continuation: from, PlanHash: readFeedHash, MaxRead: maxReadPerPage})
	if err != nil {
		return nil, "", 0, err
	}
	defer rows.Close()
	for len(w) < deletePage && rows.Next() {
		it := rows.Item()
		if it.LSN > until {
			continue
		}
		key := *it
		key.Doc = nil // a delete only needs the id
		it = key.Clone()
		w = append(w, core.Write{Kind: core.Delete, PK: it.PK(), ID: it.ID()})
	}
	if err := rows.Err(); err != nil {
		return nil, "", 0, err
	}
	charge = rows.Stats().Charge()
	if !rows.Exhausted() {
		next = rows.Continuation()
	}
	return w, next, charge, nil
}
