package mongoapi

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// The calls of a collection go to the command's transaction, or to the snapshot that it reads, if it has one. What a
// transaction keeps until its end must not point into the message of the command, so it is copied.

// Read reads a document.
func (k *coll) Read(ctx context.Context, pk core.PartitionKey, id value.Value) (*core.Item, error) {
	if k.tx == nil {
		return k.Container.Read(ctx, pk, id)
	}
	return k.tx.Read(ctx, k.Container, clonePK(pk), id.Clone())
}

// readInto does what Read does, but the document is valid only until the next use of p. In a transaction it has memory
// of its own, because the transaction keeps what it has written.
func (k *coll) readInto(ctx context.Context, p *pointRead, pk core.PartitionKey, id value.Value) (*core.Item, error) {
	if k.tx != nil {
		return k.Read(ctx, pk, id)
	}
	_, err := k.Container.ReadInto(ctx, &p.it, &p.mem, pk, id)
	if err != nil {
		return nil, err
	}
	return &p.it, nil
}

// Query starts a query.
func (k *coll) Query(ctx context.Context, q *exec.Query) (*exec.Rows, error) {
	if k.tx == nil {
		return k.Container.Query(ctx, q)
	}
	return k.tx.Query(ctx, k.Container, q)
}

// Write does one write.
func (k *coll) Write(ctx context.Context, w core.Write) (core.Result, error) {
	if k.tx == nil {
		return k.Container.Write(ctx, w)
	}
	if k.Spec().Capped != nil {
		return core.Result{}, merr.New(merr.OperationNotInTransaction, "Collection '%s' is a capped collection. "+
			"Writes in transactions are not allowed on capped collections.", k.namespace())
	}
	w.Doc, w.PK, w.With, w.Mark = bytes.Clone(w.Doc), clonePK(w.PK), nil, nil
	if w.ID.IsDefined() {
		w.ID = w.ID.Clone()
	}
	if len(w.PK) == 0 {
		w.PK = nil
	}
	kept := writtenSize // by the transaction
	if f := w.Update; f != nil {
		w.Update = func(old *core.Item) (core.Change, error) {
			if old != nil {
				kept += len(old.Doc)
			}
			c, err := f(old)
			c.Doc = bytes.Clone(c.Doc)
			return c, err
		}
	}
	res, err := k.tx.Write(ctx, k.Container, w)
	if err != nil {
		return res, err
	}
	if res.Item != nil {
		kept += len(res.Item.Doc)
	}
	return res, k.of.hold(ctx, k.Budget(), int64(kept))
}

// WriteMany does several writes. In a transaction it stops at the first error, which aborts the transaction.
func (k *coll) WriteMany(ctx context.Context, ws []core.Write, ordered bool) []core.Outcome {
	if k.tx == nil {
		return k.Container.WriteMany(ctx, ws, ordered)
	}
	out := make([]core.Outcome, 0, len(ws))
	if err := k.tx.Fetch(ctx, k.Container, ws); err != nil {
		return append(out, core.Outcome{Err: err})
	}
	for i := range ws {
		res, err := k.Write(ctx, ws[i])
		out = append(out, core.Outcome{Result: res, Err: err})
		if err != nil {
			break
		}
	}
	return out
}
