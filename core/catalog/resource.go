package catalog

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/status"
)

// Resource is an entry of a database that isn't a container: a user, a permission of a user, a client encryption key,
// a login with its roles, or a program of a container. The catalog knows its name and its parent. The body belongs to
// the API.
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
	Most    int           `json:"-"`              // at creation: most resources of its kind and parent; 0: no limit
}

// resourceKinds are the kinds of Resource.
var resourceKinds = append([]keys.MetaKind{keys.MetaUser, keys.MetaPermission, keys.MetaClientKey, keys.MetaLogin,
	keys.MetaRole}, programKinds...)

// programKinds are the kinds of Resource whose parent is a container.
var programKinds = []keys.MetaKind{keys.MetaProcedure, keys.MetaTrigger, keys.MetaFunction}

// resourceName finds a resource within its database: kind, number of the parent, id. Resources of one kind and parent
// stand together.
type resourceName string

func nameOf(kind keys.MetaKind, parent uint32, id string) resourceName {
	b := make([]byte, 0, 5+len(id))
	b = binary.BigEndian.AppendUint32(append(b, byte(kind)), parent)
	return resourceName(append(b, id...))
}

// shelf holds the resources of one database.
type shelf = table[resourceName, *Resource]

// children gives the resources of one kind and parent, in the order of their ids.
func children(s shelf, kind keys.MetaKind, parent uint32) iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for r := range s.from(nameOf(kind, parent, "")) {
			if r.Kind != kind || r.Parent != parent || !yield(r) {
				return
			}
		}
	}
}

func (r *Resource) name() resourceName { return nameOf(r.Kind, r.Parent, r.ID) }

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
	if r, ok := d.shelf.get(n); ok {
		return r, nil
	}
	return nil, status.New(status.NotFound, "Resource Not Found: %q", n[5:])
}

// Resource returns a resource of a database; NotFound when it is missing, with sub-status 1003 when the database is.
func (c *Catalog) Resource(db string, kind keys.MetaKind, parent uint32, id string) (*Resource, error) {
	return c.cur.Load().find(db, nameOf(kind, parent, id))
}

// Resources returns the resources of one kind and parent in the order of their creation.
func (c *Catalog) Resources(db string, kind keys.MetaKind, parent uint32) ([]*Resource, error) {
	d, err := c.cur.Load().owner(db)
	if err != nil {
		return nil, err
	}
	out := slices.Collect(children(d.shelf, kind, parent))
	slices.SortFunc(out, func(a, b *Resource) int { return cmp.Compare(a.Num, b.Num) })
	return out, nil
}

// claimed reports whether another resource of its kind and parent has r's name or claim.
func claimed(s shelf, r *Resource) bool {
	for o := range children(s, r.Kind, r.Parent) {
		if o.Num != r.Num && (o.ID == r.ID || r.Claim != "" && o.Claim == r.Claim) {
			return true
		}
	}
	return false
}

// CreateResource adds a resource: r's kind, parent, id, claim and body. Conflict when the id or claim is taken;
// NotFound with sub-status 1003 when the database or the parent is missing; Forbidden above the limit r.Most.
func (c *Catalog) CreateResource(ctx context.Context, db string, r Resource) (out *Resource, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, err := x.owner(db)
		if err != nil {
			return err
		}
		x.account.NextResource = max(x.account.NextResource, 1)
		n := r
		n.DBNum, n.Num = d.Num, x.account.NextResource
		if !d.hasParent(&n) {
			return status.WithSub(status.NotFound, status.SubOwnerNotFound,
				"Resource Not Found: the parent of %q", r.ID)
		}
		if claimed(d.shelf, &n) {
			return errTaken()
		}
		if r.Most > 0 && countOf(children(d.shelf, n.Kind, n.Parent)) >= r.Most {
			return status.New(status.Forbidden, "Resource quota exceeded: there are at most %d of this kind.", r.Most)
		}
		x.account.NextResource++
		out = &n
		return c.shelve(x, d, nil, &n)
	})
	return out, err
}

// hasParent reports whether the parent of a resource exists.
func (d *database) hasParent(r *Resource) bool {
	if slices.Contains(programKinds, r.Kind) {
		_, ok := d.numbers.get(r.Parent)
		return ok
	}
	if r.Parent == 0 {
		return true
	}
	for o := range d.shelf.all() {
		if o.Num == r.Parent {
			return true
		}
	}
	return false
}

func countOf(rs iter.Seq[*Resource]) (n int) {
	for range rs {
		n++
	}
	return n
}

// shelve replaces old (nil: none) by r.
func (c *Catalog) shelve(x *draft, d *database, old, r *Resource) error {
	r.TS, r.Version = c.clk.Now().Unix(), x.nextVersion()
	s := d.shelf
	if old != nil && old.ID != r.ID {
		s = s.without(old.name())
		x.b.Delete(old.key())
	}
	x.shelved(d, s.with(r.name(), r))
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
		d, old, err := x.found(db, nameOf(r.Kind, r.Parent, id), check)
		if err != nil {
			return err
		}
		n := r
		n.DBNum, n.Num = old.DBNum, old.Num
		if claimed(d.shelf, &n) {
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
		d, old, err := x.found(db, nameOf(kind, parent, id), check)
		if err != nil {
			return err
		}
		x.b.Frees = true
		x.b.Delete(old.key())
		x.shelved(d, x.dropChildren(d.shelf.without(old.name()), resourceKinds, old.Num))
		return nil
	})
}

// dropChildren removes the resources of some kinds that belong to a parent.
func (x *draft) dropChildren(s shelf, kinds []keys.MetaKind, parent uint32) shelf {
	for _, kind := range kinds {
		for r := range children(s, kind, parent) {
			s = s.without(r.name())
			x.b.Delete(r.key())
		}
	}
	return s
}
