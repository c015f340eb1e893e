package catalog

import (
	"context"
	"encoding/binary"
	"maps"
	"sort"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Resource is an entry of a database that is no container: a user, a permission of a user, a client encryption key. The
// catalog knows its name and its place; the body is the API's. Resources are few, so a database's are one map that a
// change copies.
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

// shelf is the resources of one database. Like state, it is never changed once it can be seen.
type shelf map[resourceName]*Resource

func (r *Resource) name() resourceName { return resourceName{r.Kind, r.Parent, r.ID} }

func (r *Resource) key() []byte {
	k := keys.AppendMeta(nil, r.Kind, r.DBNum, "")
	return append(binary.BigEndian.AppendUint32(k, r.Parent), r.ID...)
}

// RID returns the first 8 bytes of the resource's _rid: the database's 4 and its own 4, the top bit of which is clear.
func (r *Resource) RID() [8]byte {
	var b [8]byte
	d, n := ridBytes(r.DBNum), ridBytes(r.Num)
	copy(b[:4], d[:])
	copy(b[4:], n[:])
	return b
}

func (s *state) loadResources(snap kv.Snapshot) error {
	for _, kind := range resourceKinds {
		if err := each(snap, kind, func(b []byte) error {
			r := &Resource{Kind: kind}
			if err := decode(b, r); err != nil {
				return err
			}
			if s.dbNums[r.DBNum] == nil {
				return status.New(status.Corruption, "resource %q has no database", r.ID)
			}
			if s.shelves[r.DBNum] == nil {
				s.shelves[r.DBNum] = shelf{}
			}
			s.shelves[r.DBNum][r.name()] = r
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// find returns a resource of a database; NotFound when it is missing, with sub-status 1003 when the database is.
func (s *state) find(db string, n resourceName) (*Resource, error) {
	d := s.dbs[db]
	if d == nil {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	if r := s.shelves[d.Num][n]; r != nil {
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
	st := c.cur.Load()
	d := st.dbs[db]
	if d == nil {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	var out []*Resource
	for n, r := range st.shelves[d.Num] {
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
		if n.kind == r.Kind && n.parent == r.Parent && o.Num != r.Num && (o.ID == r.ID || r.Claim != "" && o.Claim == r.Claim) {
			return true
		}
	}
	return false
}

// CreateResource adds a resource: r's kind, parent, id, claim and body. Conflict when the id or claim is taken;
// NotFound with sub-status 1003 when the database or the parent is missing.
func (c *Catalog) CreateResource(ctx context.Context, db string, r Resource) (*Resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	d := next.dbs[db]
	if d == nil {
		return nil, errNoDatabase(db, status.SubOwnerNotFound)
	}
	next.account.NextResource = max(next.account.NextResource, 1)
	r.DBNum, r.Num = d.Num, next.account.NextResource
	if !next.shelves[d.Num].hasParent(&r) {
		return nil, status.WithSub(status.NotFound, status.SubOwnerNotFound, "Resource Not Found: the parent of %q", r.ID)
	}
	if next.shelves[d.Num].claimed(&r) {
		return nil, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	next.account.NextResource++
	return c.shelve(ctx, next, nil, &r)
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

// shelve puts r in the place of old (nil: none) and commits.
func (c *Catalog) shelve(ctx context.Context, next *state, old, r *Resource) (*Resource, error) {
	r.TS, r.Version = c.clk.Now().Unix(), next.account.NextVersion
	next.account.NextVersion++
	e, err := encode(r)
	if err != nil {
		return nil, err
	}
	var b kv.Batch
	s := maps.Clone(next.shelves[r.DBNum])
	if s == nil {
		s = shelf{}
	}
	if old != nil {
		delete(s, old.name())
		if old.ID != r.ID {
			b.Delete(old.key())
		}
	}
	s[r.name()] = r
	b.Put(r.key(), e)
	next.shelves[r.DBNum] = s
	return r, c.commit(ctx, next, &b)
}

// ReplaceResource changes the id, claim and body of the resource that has the id, to those of r; what belongs to it
// stays with it. check (may be nil) sees the old one first, and its error ends the change.
func (c *Catalog) ReplaceResource(ctx context.Context, db, id string, r Resource, check func(*Resource) error) (*Resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return nil, err
	}
	old, err := next.find(db, resourceName{r.Kind, r.Parent, id})
	if err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(old); err != nil {
			return nil, err
		}
	}
	r.DBNum, r.Num = old.DBNum, old.Num
	if next.shelves[r.DBNum].claimed(&r) {
		return nil, status.New(status.Conflict, "Resource with specified id or name already exists.")
	}
	return c.shelve(ctx, next, old, &r)
}

// DropResource removes a resource and all that belongs to it. check is as for ReplaceResource.
func (c *Catalog) DropResource(ctx context.Context, db string, kind keys.MetaKind, parent uint32, id string, check func(*Resource) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := c.next()
	if err != nil {
		return err
	}
	old, err := next.find(db, resourceName{kind, parent, id})
	if err != nil {
		return err
	}
	if check != nil {
		if err := check(old); err != nil {
			return err
		}
	}
	b := kv.Batch{Frees: true}
	s := maps.Clone(next.shelves[old.DBNum])
	for n, r := range s {
		if r == old || r.Parent == old.Num {
			delete(s, n)
			b.Delete(r.key())
		}
	}
	next.shelves[old.DBNum] = s
	return c.commit(ctx, next, &b)
}
