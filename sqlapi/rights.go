package sqlapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// rights are what a resource token must allow for an operation: what the operation does, and what it can reach. The
// route table declares them for each operation. dispatch checks them before the handler runs. The zero value declares
// nothing, and no token allows such an operation.
//
// Example: a token for read on the container c, bound to the partition key "a". A point read with the key "a" is
// allowed; with the key "b", as a replace, or without the key it is refused with 403.
type rights struct {
	does  does
	reach reach
	child string // for reachChild: type of the child
}

// does is the kind of access of an operation.
type does uint8

const (
	undeclared does = iota
	never           // only the master key may
	reads
	writes
)

// reach is what an operation can read or change. A token must cover it.
type reach uint8

const (
	reachAccount    reach = iota // the account document, which clients read first
	reachDefinition              // the description of a container, without items; for each token of something in it
	reachContainer               // the container and everything in it
	reachKeys                    // the items of the partition key header: a key or a prefix; without it, all
	reachKey                     // the logical partition of the header
	reachItem                    // the item of the path, in the header's partition
	reachChild                   // the child of the container that the path names, other than an item
)

var (
	masterOnly      = rights{does: never}
	readsAccount    = rights{does: reads, reach: reachAccount}
	readsDefinition = rights{does: reads, reach: reachDefinition}
	readsContainer  = rights{does: reads, reach: reachContainer}
	writesContainer = rights{does: writes, reach: reachContainer}
	readsKeys       = rights{does: reads, reach: reachKeys}
	writesKey       = rights{does: writes, reach: reachKey}
	readsItem       = rights{does: reads, reach: reachItem}
	writesItem      = rights{does: writes, reach: reachItem}
	readsConflict   = rights{reads, reachChild, "conflicts"}
	writesConflict  = rights{writes, reachChild, "conflicts"}
	readsSproc      = rights{reads, reachChild, "sprocs"}
	writesSproc     = rights{writes, reachChild, "sprocs"}
	readsTrigger    = rights{reads, reachChild, "triggers"}
	writesTrigger   = rights{writes, reachChild, "triggers"}
	readsUDF        = rights{reads, reachChild, "udfs"}
	writesUDF       = rights{writes, reachChild, "udfs"}
)

// permit refuses a request that its resource token doesn't allow. The refusal is the same whether the resource exists
// or not.
func (c *call) permit(r rights) error {
	g := c.grant
	switch {
	case r.does == undeclared || r.does == never || r.does == writes && !g.All:
		return errNoRight
	case r.reach == reachAccount:
		return nil
	}
	ct, err := c.container(0)
	if err != nil || ct.RID() != g.Coll {
		return errNoRight
	}
	switch r.reach {
	case reachDefinition:
		return nil
	case reachContainer:
		if g.Child == "" && g.Key == "" {
			return nil
		}
	case reachKeys:
		if g.Child == "" {
			return c.permitKey(ct, keyPrefix)
		}
	case reachKey:
		if g.Child == "" {
			return c.permitKey(ct, keyFull)
		}
	case reachItem:
		return c.permitItem(ct)
	case reachChild:
		if g.Child == "" || g.Child == r.child+"/"+c.Param("id") {
			return c.permitKey(ct, keyFull)
		}
	}
	return errNoRight
}

// permitKey refuses a request outside the token's partition key. It parses the header in the same way as the handler.
func (c *call) permitKey(ct *core.Container, mode keyMode) error {
	if c.grant.Key == "" {
		return nil
	}
	var room [maxKeyPaths]value.Value
	pk, err := c.partitionKey(room[:0], &ct.Spec().PartitionKey, mode)
	if err != nil {
		return errNoRight
	}
	return c.permitKeyOf(pk)
}

// permitKeyOf refuses a partition key outside the token's. The token's key may be a prefix.
func (c *call) permitKeyOf(pk core.PartitionKey) error {
	if c.grant.Key == "" {
		return nil
	}
	var room [maxKeyPaths]value.Value
	bound, err := parsePartitionKey(room[:0], c.grant.Key)
	if err != nil {
		return err
	}
	if len(pk) < len(bound) || !sameKey(pk[:len(bound)], bound) {
		return errNoRight
	}
	return nil
}

// permitItem refuses a request for an item other than the token's, or outside its partition key. It resolves the item's
// id in the same way as the handler.
func (c *call) permitItem(ct *core.Container) error {
	g := c.grant
	if g.Child == "" && g.Key == "" {
		return nil
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		if g.Child == "docs/"+c.Param("id") && g.Key == "" {
			return nil // the handler reports the error
		}
		return errNoRight
	}
	if g.Child != "" && g.Child != "docs/"+core.IdentityText(id) {
		return errNoRight
	}
	return c.permitKeyOf(pk)
}

var errNoRight = status.New(status.Forbidden, "Insufficient permissions provided in the authorization header for "+
	"the corresponding request. Please retry with another authorization header.")
