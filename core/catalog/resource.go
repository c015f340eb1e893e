package catalog

import (
	"context"
	"encoding/binary"
	"maps"
	"sort"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// Resource is an entry of a database that isn't a container: a user, a permission of a user, or a client encryption
// key. The catalog knows its name and its parent. The body belongs to the API. Resources are few, so those of a
// database are in one map, which each change copies.
type Resource struct {
	Kind    keys.MetaKind `json:"-"`
	DBNum   uint32        `json:"db"`
	Parent  uint32        `json:"parent,omitempty"` // number of the resource that it belongs to; 0: the database itself
	Num     uint32        `json:"num"`              // given at creation, kept for life, below 1<<31
	ID      string        `json:"id"`
	Claim   string        `json:"claim,omitempty"` // no two of one kind and parent have the same; "" claims nothing
	Version uint64        `json:"version"`
	TS      int64         `json:"ts"`             // last change, seconds since 1970
	Body    []byte        `json:"body,omitempty"` // the API's own
}

// resourceKinds are the kinds of Resource.
var resourceKinds = []keys.MetaKind{keys.MetaUser, keys.MetaPermission, keys.MetaClientKey}

// resourceName finds a resource within its database.
type resourceName struct {
	kind   keys.MetaKind
	parent uint32
	id     string
}

// shelf holds the resources of one database. It isn't changed once it is visible.
type shelf map[resourceName]*Resource

func (r *Resource) name() resourceName { return resourceName{r.Kind, r.Parent, r.ID} }

func (r *Resource) key() []byte {
	k := keys.AppendMeta(nil, r.Kind, r.DBNum, "")
	return append(binary.BigEndian.AppendUint32(k, r.Parent), r.ID...)
}

// RID returns the first 8 bytes of the resource's _rid: the database's 4 and its own 4, the top bit of which is clear.
func (r *Resource) RID() [8]byte {
	return ridOf(r.DBNum, r.Num)
}

// find returns a resource of a database; NotFound when it is missing, with sub-status 1003 when the database is.
func (s *state) find(db string, n resourceName) (*Resource, error) {
	d, err := s.owner(db)
	if err != nil {
		return nil, err
	}
	if r := d.shelf[n]; r != nil {
		return r, nil
	}
	return nil, status.New(status.NotFound, "Resource Not Found: %q", n.id)
}

// Resource returns a resource of a database; NotFound when it is missing, with sub-status 1003 when the database is.
func (c *Catalog) Resource(db string, kind keys.MetaKind, parent uint32, id string) (*Resource, error) {
	return c.cur.Load().find(db, resourceName{kind, parent, id})
}

// Resources returns the resources of one kind and parent in the order of their creation.
func (c *Catalog) Resources(db string, kind keys.MetaKind, parent uint32) ([]*Resource, error) {
	d, err := c.cur.Load().owner(db)
	if err != nil {
		return nil, err
	}
	var out []*Resource
	for n, r := range d.shelf {
		if n.kind == kind && n.parent == parent {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Num < out[j].Num })
	return out, nil
}

// claimed reports whether another resource of its kind and parent has r's name or claim.
func (s shelf) claimed(r *Resource) bool {
	for n, o := range s {
		if n.kind == r.Kind && n.parent == r.Parent && o.Num != r.Num &&
			(o.ID == r.ID || r.Claim != "" && o.Claim == r.Claim) {
			return true
		}
	}
	return false
}

// CreateResource adds a resource: r's kind, parent, id, claim and body. Conflict when the id or claim is taken;
// NotFound with sub-status 1003 when the database or the parent is missing.
func (c *Catalog) CreateResource(ctx context.Context, db string, r Resource) (out *Resource, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, err := x.owner(db)
		if err != nil {
			return err
		}
		x.account.NextResource = max(x.account.NextResource, 1)
		n := r
		n.DBNum, n.Num = d.Num, x.account.NextResource
		if !d.shelf.hasParent(&n) {
			return status.WithSub(status.NotFound, status.SubOwnerNotFound,
				"Resource Not Found: the parent of %q", r.ID)
		}
		if d.shelf.claimed(&n) {
			return errTaken()
		}
		x.account.NextResource++
		out = &n
		return c.shelve(x, d, nil, &n)
	})
	return out, err
}

func (s shelf) hasParent(r *Resource) bool {
	if r.Parent == 0 {
		return true
	}
	for _, o := range s {
		if o.Num == r.Parent {
			return true
		}
	}
	return false
}

// shelve replaces old (nil: none) by r.
func (c *Catalog) shelve(x *draft, d *database, old, r *Resource) error {
	r.TS, r.Version = c.clk.Now().Unix(), x.nextVersion()
	s := maps.Clone(d.shelf)
	if s == nil {
		s = shelf{}
	}
	if old != nil {
		delete(s, old.name())
		if old.ID != r.ID {
			x.b.Delete(old.key())
		}
	}
	s[r.name()] = r
	x.shelved(d, s)
	return x.write(r.key(), r)
}

// shelved gives a database a new shelf.
func (x *draft) shelved(d *database, s shelf) {
	n := *d
	n.shelf = s
	x.put(&n)
}

// ReplaceResource changes the id, claim and body of the resource that has the id to those of r. Resources that belong
// to it are kept. check (may be nil) gets the old resource first, and its error ends the change.
func (c *Catalog) ReplaceResource(ctx context.Context, db, id string, r Resource, check func(*Resource) error) (
	out *Resource, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, old, err := x.found(db, resourceName{r.Kind, r.Parent, id}, check)
		if err != nil {
			return err
		}
		n := r
		n.DBNum, n.Num = old.DBNum, old.Num
		if d.shelf.claimed(&n) {
			return errTaken()
		}
		out = &n
		return c.shelve(x, d, old, &n)
	})
	return out, err
}

// found finds a resource and calls check, which decides whether it may be changed.
func (x *draft) found(db string, n resourceName, check func(*Resource) error) (*database, *Resource, error) {
	old, err := x.find(db, n)
	if err == nil && check != nil {
		err = check(old)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := x.owner(db)
	return d, old, err
}

// DropResource removes a resource and all that belongs to it. check is as for ReplaceResource.
func (c *Catalog) DropResource(ctx context.Context, db string, kind keys.MetaKind, parent uint32, id string,
	check func(*Resource) error) error {
	return c.change(ctx, func(x *draft) error {
		d, old, err := x.found(db, resourceName{kind, parent, id}, check)
		if err != nil {
			return err
		}
		x.b.Frees = true
		s := maps.Clone(d.shelf)
		for n, r := range s {
			if r == old || r.Parent == old.Num {
				delete(s, n)
				x.b.Delete(r.key())
			}
		}
		x.shelved(d, s)
		return nil
	})
}
