package sqlapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// rights are what an operation needs of a resource token: what it does, and how it is bound to what the token is for.
// They are declared in the route table, one for each operation, and dispatch holds every request to them before its
// handler runs. The zero value is an operation that declares nothing: no token has a right to it.
type rights struct {
	does  does
	reach reach
	child string // type of the children that it is about, of reachChild
}

// does is what an operation does.
type does uint8

const (
	undeclared does = iota
	never           // only the master key may
	reads
	writes
)

// reach is what an operation may touch, which a token must cover.
type reach uint8

const (
	reachAccount    reach = iota // the account document, which clients read before anything else
	reachDefinition              // what describes a container, for each token of something in it: shows no items
	reachContainer               // the container and all in it
	reachKeys                    // what the partition key header restricts it to: a key, a prefix, or all without it
	reachKey                     // one logical partition: the header's
	reachItem                    // one item: the path's, in the header's partition
	reachChild                   // another child of the container: the path's
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

// permit holds a request with a resource token to what the token allows. Whatever the token does not name is refused
// alike, whether it is there or not.
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

// permitKey holds a request to the token's partition key. It reads the header as the handler does.
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

// permitKeyOf holds a partition key to the token's, which may be a prefix of it.
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

// permitItem holds a request for one item to the token's item and partition key. It finds the item's identity as the
// handler does.
func (c *call) permitItem(ct *core.Container) error {
	g := c.grant
	if g.Child == "" && g.Key == "" {
		return nil
	}
	var room [maxKeyPaths]value.Value
	pk, id, err := c.itemKey(ct, room[:0])
	if err != nil {
		if g.Child == "docs/"+c.Param("id") && g.Key == "" {
			return nil // the handler says what is wrong
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
