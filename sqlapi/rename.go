package sqlapi

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// A replace whose document has another id than the path names renames the item: the old one is deleted and the new one
// created, in one transaction. The partition key stays. The service keeps the resource id; here the item has a new one,
// because a position by resource id is one by id too.

// rename replaces the item old by the document of w, which has another id.
func rename(ctx context.Context, ct *core.Container, old value.Value, w core.Write) (res core.Result, err error) {
	done, err := ct.WithTx(ctx, w.PK, func(tx *core.Tx) (err error) {
		tx.Eager()
		res, err = renameIn(tx, old, w)
		return err
	})
	if err == nil {
		res.Charge = done.Charge
	}
	return res, err
}

// renameIn is rename inside a transaction. It makes two writes.
func renameIn(tx *core.Tx, old value.Value, w core.Write) (core.Result, error) {
	if _, err := tx.Write(&core.Write{Kind: core.Delete, PK: w.PK, ID: old, Check: w.Check}); err != nil {
		return core.Result{}, err
	}
	w.Kind, w.Check = core.Create, nil
	res, err := tx.Write(&w)
	res.Created = false
	return res, err
}
