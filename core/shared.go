package core

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
)

// looks is how often a look at the catalog's version is repeated before its error is returned.
const looks = 3

// Shared reports whether other processes may write to the store.
func (e *Engine) Shared() bool { return e.kv.Shared() }

// lookTime is the longest time in which a name is looked up.
const lookTime = 5 * time.Second

// fresh brings the catalog in memory up to the stored one. If no other process can change it, it reads nothing. It
// ends with ctx, and after lookTime.
func (e *Engine) fresh(ctx context.Context) (err error) {
	if !e.kv.Shared() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for range looks {
		if _, err = e.cat.Refresh(within); err == nil || within.Err() != nil {
			break
		}
	}
	if err != nil && ctx.Err() != nil {
		return status.Wrap(status.Timeout, err, "The request took too long.")
	}
	return err
}

// Lookups are look-ups by name, or by _rid, that end with the ctx of a request. Those of Engine have none. If no other
// process can change the catalog, they are the same.
type Lookups struct {
	e   *Engine
	ctx context.Context
}

// Within returns look-ups with a ctx.
func (e *Engine) Within(ctx context.Context) Lookups { return Lookups{e, ctx} }

// named does a look-up in the catalog. It reads the version first, unless that is trusted. What isn't found then may be
// new.
func named[T any](l Lookups, find func() (T, error)) (v T, err error) {
	if l.e.cat.Current() {
		if v, err = find(); !status.Is(err, status.NotFound) {
			return v, err
		}
	}
	if err = l.e.fresh(l.ctx); err != nil {
		return v, err
	}
	return find()
}

// Container is Engine.Container.
func (l Lookups) Container(db, id string) (*Container, error) {
	return l.found(named(l, func() (*catalog.Container, error) { return l.e.cat.Container(l.ctx, db, id) }))
}

// ContainerFold is Engine.ContainerFold.
func (l Lookups) ContainerFold(db, id string) (*Container, error) {
	if l.e.cat.Current() {
		if def, err := l.e.cat.Container(l.ctx, db, id); err == nil { // one whose id is like it may be older
			return l.found(def, nil)
		}
	}
	if err := l.e.fresh(l.ctx); err != nil {
		return nil, err
	}
	return l.found(l.e.cat.ContainerFold(l.ctx, db, id))
}

// ContainerByRID is Engine.ContainerByRID.
func (l Lookups) ContainerByRID(rid [8]byte) (*Container, error) {
	return l.found(named(l, func() (*catalog.Container, error) { return l.e.cat.ContainerByRID(l.ctx, rid) }))
}

// Database is Engine.Database.
func (l Lookups) Database(id string) (*Database, error) {
	return named(l, func() (*Database, error) { return l.e.cat.Database(id) })
}

// DatabaseByRID is Engine.DatabaseByRID.
func (l Lookups) DatabaseByRID(rid [4]byte) (*Database, error) {
	return named(l, func() (*Database, error) { return l.e.cat.DatabaseByRID(rid) })
}

// Resource is Engine.Resource.
func (l Lookups) Resource(db string, kind ResourceKind, parent uint32, id string) (*Resource, error) {
	return named(l, func() (*Resource, error) { return l.e.cat.Resource(db, kind, parent, id) })
}

// found opens the container of a look-up.
func (l Lookups) found(def *catalog.Container, err error) (*Container, error) {
	if err != nil {
		return nil, err
	}
	return l.e.container(l.ctx, def)
}

// published is called between a change of the catalog and its answer. It returns when no other process trusts the
// version before the change. What is only created needs no wait.
func (e *Engine) published(ctx context.Context) {
	if !e.Shared() {
		return
	}
	if others, err := e.leases().Others(ctx); err != nil || others { // who can't be found may be there
		e.work.Sleep(catalog.AnswerTime)
	}
}

// fresh brings the counts, LSNs and slot map in memory up to the stored ones. After an error they may be old, and must
// not be answered. If no other process can change them, it reads nothing.
func (c *Container) fresh(ctx context.Context) (err error) {
	for range looks {
		if err = c.rt.Refresh(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}
