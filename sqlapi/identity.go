package sqlapi

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// An id of this API is a string. An item that another API has written may have an id of another type. This API shows
// such an id as its canonical Extended JSON text, and the item must be found by that text.
//
// Example: MongoDB inserts {_id: 5}. The item is shown with the id {"$numberInt":"5"}. A point read of that text
// returns the item, unless another item has the same text as its string id. A point read of "5" doesn't return it.
//
// Few texts can stand for two ids (core.HasOtherIdentity). All other ids need one look-up only.

// resolve returns the partition key and the id of the stored item whose shown id is text. It is the string id, unless
// no item has it and an item has the id of the other type. If the id is part of the partition key, the key is changed
// with it.
func resolve(ctx context.Context, ct *core.Container, pk core.PartitionKey, text string) (
	core.PartitionKey, value.Value, error) {
	if !core.HasOtherIdentity(text) {
		return pk, value.StringOf(text), nil
	}
	ids := core.IdentityFromText(text)
	for _, id := range ids[1:] {
		key := keyWithID(ct, pk, id)
		_, err := ct.Read(ctx, key, id)
		if err == nil {
			if _, err := ct.Read(ctx, pk, ids[0]); status.Is(err, status.NotFound) {
				return key, id, nil
			}
		} else if !status.Is(err, status.NotFound) {
			return nil, value.Value{}, err
		}
	}
	return pk, ids[0], nil
}

// keyWithID returns a copy of pk in which the components whose path is the id have the given value.
func keyWithID(ct *core.Container, pk core.PartitionKey, id value.Value) core.PartitionKey {
	out := append(core.PartitionKey(nil), pk...)
	for i, segs := range ct.KeyPaths() {
		if i < len(out) && len(segs) == 1 && segs[0] == "_id" {
			out[i] = id
		}
	}
	return out
}
