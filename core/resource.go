package core

import (
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
)

// Resource is an entry of a database that isn't a container. Its body is opaque to the core.
type Resource = catalog.Resource

// ResourceKind is the kind of a Resource.
type ResourceKind = keys.MetaKind

// Values of ResourceKind.
const (
	User       = keys.MetaUser
	Permission = keys.MetaPermission // its parent is a user
	ClientKey  = keys.MetaClientKey  // client encryption key
	Login      = keys.MetaLogin      // a user of an API that has users of its own
	Role       = keys.MetaRole       // of such users
	Procedure  = keys.MetaProcedure  // its parent is a container, like those of triggers and functions
	Trigger    = keys.MetaTrigger
	Function   = keys.MetaFunction
)

// ResourceETag returns the entity tag of a resource, without quotes.
func ResourceETag(r *Resource) string { return etagOf(r.Version, r.TS) }

// Resource returns a resource of a database; parent is the number of the resource that it belongs to, 0 for the
// database. NotFound when it is missing, with sub-status 1003 when the database is.
func (e *Engine) Resource(db string, kind ResourceKind, parent uint32, id string) (*Resource, error) {
	return e.Within(context.Background()).Resource(db, kind, parent, id)
}

// Resources returns the resources of one kind and parent in the order of their creation.
func (e *Engine) Resources(ctx context.Context, db string, kind ResourceKind, parent uint32) ([]*Resource,
	error) {
	if err := e.fresh(ctx); err != nil {
		return nil, err
	}
	return e.cat.Resources(db, kind, parent)
}

// CreateResource adds a resource: r's kind, parent, id, claim and body. Conflict when the id or claim is taken;
// NotFound with sub-status 1003 when the database or the parent is missing; Forbidden above the limit r.Most.
func (e *Engine) CreateResource(ctx context.Context, db string, r Resource) (*Resource, error) {
	return e.cat.CreateResource(ctx, db, r)
}

// ReplaceResource changes the id, claim and body of the resource with the id to those of r. check (may be nil) gets the
// old resource first, and its error ends the change.
func (e *Engine) ReplaceResource(ctx context.Context, db, id string, r Resource, check func(*Resource) error) (
	*Resource, error) {
	out, err := e.cat.ReplaceResource(ctx, db, id, r, check)
	if err == nil {
		e.published(ctx)
	}
	return out, err
}

// DropResource removes a resource and all that belongs to it. check is as for ReplaceResource.
func (e *Engine) DropResource(ctx context.Context, db string, kind ResourceKind, parent uint32, id string,
	check func(*Resource) error) error {
	err := e.cat.DropResource(ctx, db, kind, parent, id, check)
	if err == nil {
		e.published(ctx)
	}
	return err
}
