package sqlapi

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// An id of this API is a string. An item that came in through another API may have an identity of another kind, which
// is shown as its canonical Extended JSON text and must be found by it. Few texts can stand for two identities
// (core.HasOtherIdentity), so everything else costs nothing.

// resolve returns the key and id under which the item with the text as id is stored: the string's, unless there is no
// such item and there is one of the other kind. Where a path of the partition key is the id itself, the key follows.
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

// keyWithID returns a copy of pk in which the components whose path is the id are the given one.
func keyWithID(ct *core.Container, pk core.PartitionKey, id value.Value) core.PartitionKey {
	out := append(core.PartitionKey(nil), pk...)
	for i, segs := range ct.KeyPaths() {
		if i < len(out) && len(segs) == 1 && segs[0] == "_id" {
			out[i] = id
		}
	}
	return out
}
