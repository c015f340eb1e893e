package sqlapi

import (
	"context"
	"net/http"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// deletePage is how many items of a logical partition are deleted before the disk is waited for: it bounds the memory
// that a delete by partition key takes.
const deletePage = 500

// otherOperation refuses: the service has one operation on containers that we know of.
func otherOperation(c *call) error {
	return status.New(status.NotSupported, "The operation %s on containers is not supported by this server.",
		clip(c.Param("operation")))
}

// deleteByKey deletes all items of a logical partition that are there when it begins. When it answers they are gone;
// like the service it is no transaction, and it goes on when the client does not wait for it.
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
	until := ct.LSN()
	keep := func(old *core.Item) error {
		if old != nil && old.LSN > until {
			return errEtag // written anew meanwhile
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

// outlast returns a context that goes on when the client leaves, but not beyond the request's time.
func (c *call) outlast() (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(c.Ctx())
	if at, ok := c.Ctx().Deadline(); ok {
		return context.WithDeadline(ctx, at)
	}
	return ctx, func() {}
}

// deletions makes the deletes of up to deletePage items of a logical partition, and where to go on.
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
		key.Doc = nil // the identity is all that a delete needs
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
