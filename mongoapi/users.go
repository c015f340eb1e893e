package mongoapi

import (
	"bytes"
	"context"
	"errors"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/rights"
)

// Users and custom roles are resources of the database admin, named "db.name". So all servers of a store have the same
// ones, and backups contain them. A resource's body is the document that MongoDB has in admin.system.users or
// admin.system.roles:
//
//	{_id: "shop.ann", userId: UUID, user: "ann", db: "shop", credentials: {"SCRAM-SHA-256": {iterationCount, salt,
//	 storedKey, serverKey}}, roles: [{role: "readWrite", db: "shop"}], customData: {..}}
//	{_id: "shop.clerk", role: "clerk", db: "shop", privileges: [{resource: {db, collection}, actions: [..]}], roles:
//	[..]}
//
// The account and its key aren't among them: the account may do everything, and its commands ask for nothing.

// usersDB is the database that has the users.
const usersDB = "admin"

// userName names a user. A user is known in its database, with which a client logs in (authSource).
type userName struct{ user, db string }

func (n userName) String() string { return n.user + "@" + n.db }

// id returns the id of the user's resource.
func (n userName) id() string { return n.db + "." + n.user }

// missingUser is the error of a command about a user that doesn't exist.
func missingUser(n userName) error { return merr.New(merr.UserNotFound, "User '%s' not found", n) }

// named returns a resource of users or roles; nil if it doesn't exist.
func (s *Server) named(kind core.ResourceKind, id string) (*core.Resource, error) {
	res, err := s.eng.Resource(usersDB, kind, 0, id)
	if status.Is(err, status.NotFound) {
		return nil, nil
	}
	return res, err
}

// allNamed returns the resources of a kind.
func (s *Server) allNamed(kind core.ResourceKind) ([]*core.Resource, error) {
	all, err := s.eng.Resources(usersDB, kind, 0)
	if status.Is(err, status.NotFound) {
		return nil, nil
	}
	return all, err
}

// errGone is the error of a change of a resource that doesn't exist.
var errGone = errors.New("mongoapi: no such resource")

// errChanged ends a change of a resource that another one has changed since it was read.
var errChanged = errors.New("mongoapi: the resource has changed")

// alter changes the document of a resource. change is called again if another change came between.
func (s *Server) alter(ctx context.Context, kind core.ResourceKind, id string,
	change func(old value.Value) (value.Value, error)) error {
	for {
		was, err := s.named(kind, id)
		if err != nil {
			return err
		}
		if was == nil {
			return errGone
		}
		d, err := change(value.ObjectOf(was.Body))
		if err != nil {
			return err
		}
		_, err = s.eng.ReplaceResource(ctx, usersDB, id, core.Resource{Kind: kind, ID: id, Body: d.Bytes()},
			func(now *core.Resource) error {
				if now.Version != was.Version {
					return errChanged
				}
				return nil
			})
		switch {
		case status.Is(err, status.NotFound):
			return errGone
		case !errors.Is(err, errChanged):
			return err
		}
	}
}

// discard removes a resource.
func (s *Server) discard(ctx context.Context, kind core.ResourceKind, id string) error {
	err := s.eng.DropResource(ctx, usersDB, kind, 0, id, nil)
	if status.Is(err, status.NotFound) {
		return errGone
	}
	return err
}

// principal is the user of a connection, with its rights as of its resources. A connection without one is the
// account's, or has no login.
type principal struct {
	name userName
	id   []byte // the user's UUID: a user that is removed and made again is another one
	set  *rights.Set
	root bool
	of   []source1 // what the rights were computed from
}

// source1 is a resource that rights were computed from; nil: it didn't exist.
type source1 struct {
	kind core.ResourceKind
	id   string
	res  *core.Resource
}

// noRights are the rights of a user that doesn't exist any more.
var noRights = rights.NewSet()

// newPrincipal returns a user with its rights.
func (s *Server) newPrincipal(n userName) (*principal, value.Value, error) {
	res, err := s.named(core.Login, n.id())
	if res == nil || err != nil {
		return nil, value.Value{}, err
	}
	d := value.ObjectOf(res.Body)
	p := &principal{name: n, id: d.Get("userId").Bytes(), of: []source1{{core.Login, n.id(), res}}}
	w := s.newWalk()
	if err := w.roles(rolesOf(d)); err != nil {
		return nil, d, err
	}
	p.set, p.root = rights.NewSet(w.privileges...), w.root
	p.of = append(p.of, w.of...)
	return p, d, nil
}

// current returns p with its rights as of now.
func (s *Server) current(p *principal) (*principal, error) {
	same := true
	for _, o := range p.of {
		res, err := s.named(o.kind, o.id)
		if err != nil {
			return nil, err
		}
		if same = res == o.res; !same {
			break
		}
	}
	if same {
		return p, nil
	}
	now, _, err := s.newPrincipal(p.name)
	if err != nil {
		return nil, err
	}
	if now == nil || !bytes.Equal(now.id, p.id) {
		return &principal{name: p.name, id: p.id, set: noRights}, nil
	}
	return now, nil
}

// walk follows roles to the privileges that they grant. Each role is visited once.
type walk struct {
	s          *Server
	seen       map[rights.RoleName]bool
	order      []rights.RoleName // as they were found
	privileges []rights.Privilege
	of         []source1
	root       bool
}

func (s *Server) newWalk() *walk { return &walk{s: s, seen: map[rights.RoleName]bool{}} }

// roles adds roles and those that they contain. Roles that don't exist grant nothing.
func (w *walk) roles(names []rights.RoleName) error {
	for _, n := range names {
		if w.seen[n] {
			continue
		}
		w.seen[n] = true
		w.order = append(w.order, n)
		if ps, ok := rights.BuiltIn(n); ok {
			w.privileges = append(w.privileges, ps...)
			w.root = w.root || n == rights.RoleName{Role: "root", DB: usersDB}
			continue
		}
		res, err := w.s.named(core.Role, roleID(n))
		if err != nil {
			return err
		}
		w.of = append(w.of, source1{core.Role, roleID(n), res})
		if res == nil {
			continue
		}
		d := value.ObjectOf(res.Body)
		w.privileges = append(w.privileges, privilegesOf(d)...)
		if err := w.roles(rolesOf(d)); err != nil {
			return err
		}
	}
	return nil
}

// roleID returns the id of a role's resource.
func roleID(n rights.RoleName) string { return n.DB + "." + n.Role }

// rolesOf returns the roles in a stored document.
func rolesOf(d value.Value) []rights.RoleName {
	var out []rights.RoleName
	for it := d.Get("roles").Iter(); d.Get("roles").Kind() == value.Array && it.Next(); {
		out = append(out, rights.RoleName{Role: it.Value().Get("role").Str(), DB: it.Value().Get("db").Str()})
	}
	return out
}

// appendRoles appends roles as documents show them.
func appendRoles(dst []byte, name string, roles []rights.RoleName) []byte {
	list := make([]value.Value, len(roles))
	for i, n := range roles {
		at, b := bson.Begin(nil)
		b = bson.AppendString(b, "role", n.Role)
		list[i] = value.ObjectOf(bson.End(bson.AppendString(b, "db", n.DB), at))
	}
	return value.AppendElement(dst, name, value.MakeArray(list))
}

// privilegesOf returns the privileges in a stored document.
func privilegesOf(d value.Value) []rights.Privilege {
	var out []rights.Privilege
	for _, v := range value.Elements(d.Get("privileges")) {
		p, err := readPrivilege(v)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// readPrivilege reads a privilege, as commands and documents have it.
func readPrivilege(v value.Value) (p rights.Privilege, err error) {
	res := v.Get("resource")
	if v.Kind() != value.Object || res.Kind() != value.Object || v.Get("actions").Kind() != value.Array {
		return p, merr.New(merr.FailedToParse, "A privilege needs a resource, which is a document, and actions, "+
			"which are "+
			"an array")
	}
	for it := res.Iter(); it.Next(); {
		x := it.Value()
		switch key := string(it.Key()); {
		case (key == "cluster" || key == "anyResource") && x.Kind() == value.Bool:
			if key == "cluster" {
				p.Resource.Cluster = x.Bool()
			} else {
				p.Resource.Any = x.Bool()
			}
		case (key == "db" || key == "collection") && x.Kind() == value.String:
			if key == "db" {
				p.Resource.DB = x.Str()
			} else {
				p.Resource.Collection = x.Str()
			}
		default:
			return p, merr.New(merr.FailedToParse, "A resource can't have the field %s of type %s", key, typeOf(x))
		}
	}
	named := res.Get("db").IsDefined() || res.Get("collection").IsDefined()
	switch {
	case named && (p.Resource.Cluster || p.Resource.Any), p.Resource.Cluster && p.Resource.Any,
		named && !(res.Get("db").IsDefined() && res.Get("collection").IsDefined()),
		!named && !p.Resource.Cluster && !p.Resource.Any:
		return p, merr.New(merr.FailedToParse, "A resource is {db, collection}, {cluster: true} or {anyResource: true}")
	}
	for _, a := range value.Elements(v.Get("actions")) {
		if a.Kind() != value.String || !rights.Known(a.Str()) {
			return p, merr.New(merr.BadValue, "Unrecognized action privilege string: %s", a.Str())
		}
		p.Actions = append(p.Actions, a.Str())
	}
	if len(p.Actions) == 0 {
		return p, merr.New(merr.FailedToParse, "A privilege needs at least one action")
	}
	return p, nil
}

// appendPrivileges appends privileges as documents show them.
func appendPrivileges(dst []byte, name string, ps []rights.Privilege) []byte {
	list := make([]value.Value, len(ps))
	for i, p := range ps {
		at, b := bson.Begin(nil)
		ra, b := bson.BeginObject(b, "resource")
		switch r := p.Resource; {
		case r.Any:
			b = bson.AppendBool(b, "anyResource", true)
		case r.Cluster:
			b = bson.AppendBool(b, "cluster", true)
		default:
			b = bson.AppendString(b, "db", r.DB)
			b = bson.AppendString(b, "collection", r.Collection)
		}
		b = bson.AppendStrings(bson.End(b, ra), "actions", p.Actions...)
		list[i] = value.ObjectOf(bson.End(b, at))
	}
	return value.AppendElement(dst, name, value.MakeArray(list))
}
