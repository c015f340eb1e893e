// Package users has MongoDB's users and custom roles. They are resources of the database admin, named "db.name". So all
// servers of a store have the same ones, and backups contain them. A resource's body is the document that MongoDB has
// in admin.system.users or admin.system.roles:
//
//	{_id: "shop.ann", userId: UUID, user: "ann", db: "shop", credentials: {"SCRAM-SHA-256": {iterationCount, salt,
//	 storedKey, serverKey}}, roles: [{role: "readWrite", db: "shop"}], customData: {..}}
//	{_id: "shop.clerk", role: "clerk", db: "shop", privileges: [{resource: {db, collection}, actions: [..]}], roles:
//	[..]}
//
// The account and its key aren't among them: the account may do everything, and its commands ask for nothing.
package users

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// DB is the database that has the users.
const DB = "admin"

// Name names a user. A user is known in its database, with which a client logs in (authSource).
type Name struct{ User, DB string }

func (n Name) String() string { return n.User + "@" + n.DB }

// ID returns the id of the user's resource.
func (n Name) ID() string { return n.DB + "." + n.User }

// Missing is the error of a command about a user that doesn't exist.
func Missing(n Name) error { return merr.New(merr.UserNotFound, "User '%s' not found", n) }

// Store has the users and roles of an engine.
type Store struct {
	Engine *core.Engine
	Ctx    context.Context // of the request that looks
}

// Get returns a resource of users or roles; nil if it doesn't exist.
func (s Store) Get(kind core.ResourceKind, id string) (*core.Resource, error) {
	res, err := s.Engine.Within(s.Ctx).Resource(DB, kind, 0, id)
	if status.Is(err, status.NotFound) {
		return nil, nil
	}
	return res, err
}

// All returns the resources of a kind.
func (s Store) All(kind core.ResourceKind) ([]*core.Resource, error) {
	all, err := s.Engine.Resources(s.Ctx, DB, kind, 0)
	if status.Is(err, status.NotFound) {
		return nil, nil
	}
	return all, err
}

// maxNamed limits the users, and the roles, of a deployment: all of them are held in memory.
const maxNamed = 10_000

// Add stores a new user or role.
func (s Store) Add(ctx context.Context, kind core.ResourceKind, id string, body []byte) error {
	if _, err := s.Engine.EnsureDatabase(ctx, DB); err != nil {
		return err
	}
	_, err := s.Engine.CreateResource(ctx, DB, core.Resource{Kind: kind, ID: id, Body: body, Most: maxNamed})
	return err
}

// ErrGone is the error of a change of a resource that doesn't exist.
var ErrGone = errors.New("users: no such resource")

// errChanged ends a change of a resource that another one has changed since it was read.
var errChanged = errors.New("users: the resource has changed")

// Alter changes the document of a resource. change is called again if another change came between.
func (s Store) Alter(ctx context.Context, kind core.ResourceKind, id string,
	change func(old value.Value) (value.Value, error)) error {
	for {
		was, err := Store{s.Engine, ctx}.Get(kind, id)
		if err != nil {
			return err
		}
		if was == nil {
			return ErrGone
		}
		d, err := change(value.ObjectOf(was.Body))
		if err != nil {
			return err
		}
		_, err = s.Engine.ReplaceResource(ctx, DB, id, core.Resource{Kind: kind, ID: id, Body: d.Bytes()},
			func(now *core.Resource) error {
				if now.Version != was.Version {
					return errChanged
				}
				return nil
			})
		switch {
		case status.Is(err, status.NotFound):
			return ErrGone
		case !errors.Is(err, errChanged):
			return err
		}
	}
}

// Discard removes a resource, or returns ErrGone.
func (s Store) Discard(ctx context.Context, kind core.ResourceKind, id string) error {
	err := s.Engine.DropResource(ctx, DB, kind, 0, id, nil)
	if status.Is(err, status.NotFound) {
		return ErrGone
	}
	return err
}
