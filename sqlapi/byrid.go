package sqlapi

import (
	"context"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/sqlapi/wire"
)

// namedByRIDs reports whether each id of a link is the resource id of an existing resource, or one that nothing has any
// more. If a resource has that id as its name, the id counts as a name and the result is false. It fails if the names
// can't be read.
func (s *Server) namedByRIDs(ctx context.Context, segs []string) (bool, error) {
	if len(segs) == 2 && segs[0] == "offers" { // offers have no names
		_, ok := wire.ParseRID(segs[1], 3)
		return ok, nil
	}
	if len(segs) < 2 || segs[0] != "dbs" {
		return false, nil
	}
	d, err := s.database(ctx, segs[1], 0)
	if err != nil {
		return isGone(err, segs[1], 4)
	}
	if d.ID == segs[1] {
		return false, nil
	}
	if len(segs) == 2 {
		return true, nil
	}
	switch segs[2] {
	case "colls":
		return s.childByRIDs(ctx, d, segs[3:])
	case "users":
		return s.resourceByRIDs(ctx, users, &owner{db: d}, segs[3:])
	case "clientencryptionkeys":
		return s.resourceByRIDs(ctx, clientKeys, &owner{db: d}, segs[3:])
	}
	return false, nil
}

// isGone reports whether a look-up found nothing because its id is a resource id, with n bytes, that nothing has. A
// client that follows a _self after a delete must see that the resource is gone, and not that its signature is wrong.
// It returns other errors: clients repeat a request when the store is away, and not one whose signature is wrong.
func isGone(err error, id string, n int) (bool, error) {
	if !status.Is(err, status.NotFound) {
		return false, err
	}
	_, ok := wire.ParseRID(id, n)
	return ok, nil
}

// childByRIDs is namedByRIDs for a container and its children.
func (s *Server) childByRIDs(ctx context.Context, d *core.Database, segs []string) (bool, error) {
	ct, err := s.container(ctx, d.ID, segs[0], 0)
	if err != nil {
		return isGone(err, segs[0], 8)
	}
	if ct.ID() == segs[0] {
		return false, nil
	}
	if len(segs) == 1 {
		return true, nil
	}
	raw, ok := wire.ParseRID(segs[2], 16)
	if !ok || [8]byte(raw) != ct.RID() || len(segs) != 3 {
		return false, nil
	}
	_, _, isItem := wire.ParseItemRID(segs[2])
	return isItem || segs[1] != "docs", nil
}

// resourceByRIDs is namedByRIDs for a resource of a database and for the permissions of a user.
func (s *Server) resourceByRIDs(ctx context.Context, t *resourceType, o *owner, segs []string) (bool, error) {
	r, err := t.find(ctx, s, o, segs[0])
	if err != nil {
		n := 8
		if t == permissions {
			n = 16
		}
		return isGone(err, segs[0], n)
	}
	if r.ID == segs[0] {
		return false, nil
	}
	if t == users && len(segs) == 3 && segs[1] == "permissions" {
		return s.resourceByRIDs(ctx, permissions, &owner{db: o.db, user: r}, segs[2:])
	}
	return len(segs) == 1, nil
}
