package core

import (
	"cmp"
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// DatabaseSpec is the definition of a database.
type DatabaseSpec struct {
	ID         string
	Throughput Throughput
}

// CreateDatabase adds a database; Conflict when the id is taken.
func (e *Engine) CreateDatabase(ctx context.Context, s DatabaseSpec) (*Database, error) {
	if err := validateID(s.ID); err != nil {
		return nil, err
	}
	return e.cat.CreateDatabase(ctx, s.ID, s.Throughput)
}

// EnsureDatabase returns a database and adds it when it is missing.
func (e *Engine) EnsureDatabase(ctx context.Context, id string) (*Database, error) {
	d, err := e.Within(ctx).Database(id)
	if status.Is(err, status.NotFound) {
		if d, err = e.CreateDatabase(ctx, DatabaseSpec{ID: id}); status.Is(err, status.Conflict) {
			return e.Within(ctx).Database(id)
		}
	}
	return d, err
}

// ReplaceDatabase changes a database's throughput.
func (e *Engine) ReplaceDatabase(ctx context.Context, s DatabaseSpec) (*Database, error) {
	return e.RedefineDatabase(ctx, s.ID, func(*Database) (Throughput, error) { return s.Throughput, nil })
}

// RedefineDatabase is ReplaceDatabase with a function that decides on the present database. Other changes of the
// catalog wait for it. f may be called more than once.
func (e *Engine) RedefineDatabase(ctx context.Context, id string, f func(*Database) (Throughput, error)) (*Database,
	error) {
	d, err := e.cat.ReplaceDatabase(ctx, id, f)
	if err == nil {
		e.published(ctx)
	}
	return d, err
}

// Database returns a database; NotFound when there is none.
func (e *Engine) Database(id string) (*Database, error) {
	return e.Within(context.Background()).Database(id)
}

// DatabaseByRID returns the database with these bytes of _rid.
func (e *Engine) DatabaseByRID(rid [4]byte) (*Database, error) {
	return e.Within(context.Background()).DatabaseByRID(rid)
}

// Databases returns all databases in the order of their creation.
func (e *Engine) Databases(ctx context.Context) ([]*Database, error) {
	if err := e.fresh(ctx); err != nil {
		return nil, err
	}
	return e.cat.Databases(), nil
}

// CreateContainer adds a container; Conflict when the id is taken, NotFound with sub-status 1003 when the database is
// missing, BadRequest when the spec is malformed.
func (e *Engine) CreateContainer(ctx context.Context, db string, s ContainerSpec) (*Container, error) {
	if err := validate(&s); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkFixed(&s), store.FirstDeclared(&s)); err != nil {
		return nil, err
	}
	def, err := e.cat.CreateWith(ctx, db, s, func() []byte { return e.store.FirstHeadIn(db, &s) })
	if err != nil {
		return nil, err
	}
	e.presplit(ctx, def)
	return e.container(ctx, def)
}

// ReplaceContainer changes a container's spec. The partition key, id and unique keys don't change. After a change of
// the indexing policy the index is rebuilt in the background (Container.IndexProgress). Queries use the previous policy
// until that is complete.
func (e *Engine) ReplaceContainer(ctx context.Context, db, id string, s ContainerSpec) (*Container, error) {
	return e.Redefine(ctx, db, id, func(Definition) (ContainerSpec, error) { return s, nil })
}

// Redefine is ReplaceContainer with a function that makes the new spec from the present definition. If somebody else
// changes the definition meanwhile, f is called again with that one: no change is undone by another.
func (e *Engine) Redefine(ctx context.Context, db, id string, f func(Definition) (ContainerSpec, error)) (*Container,
	error) {
	for {
		if err := e.fresh(ctx); err != nil {
			return nil, err
		}
		old, err := e.cat.Container(ctx, db, id)
		if err != nil {
			return nil, err
		}
		s, err := f(Definition{old})
		if err != nil {
			return nil, err
		}
		c, err := e.replace(ctx, old, s)
		if err != catalog.ErrRedefined {
			return c, err
		}
	}
}

func (e *Engine) replace(ctx context.Context, old *catalog.Container, s ContainerSpec) (*Container, error) {
	s.PartitionKey, s.Declared = old.PartitionKey, old.Declared
	if err := validate(&s); err != nil {
		return nil, err
	}
	if s.Throughput != old.Throughput {
		if err := checkFixed(&s); err != nil {
			return nil, err
		}
	}
	c, err := e.container(ctx, old)
	if err != nil {
		return nil, err
	}
	def, err := c.rt.Redefine(ctx, func(use catalog.InUse) (*catalog.Container, error) {
		return e.cat.ReplaceContainer(ctx, old, s, use)
	})
	if err != nil {
		return nil, err
	}
	e.published(ctx)
	e.resizeLater(def)
	return e.container(ctx, def)
}

// ChangeContainer changes a container's spec with f, which gets the present one and may also change its declared
// indexes. The partition key, id and unique keys don't change. It returns when new unique indexes are ready and
// enforced, and when nothing of dropped ones is left. It fails with Conflict, and changes nothing, if two items have
// values that a new index makes unique: the cause is a *Duplicate. f may be called several times.
func (e *Engine) ChangeContainer(ctx context.Context, db, id string, f func(*ContainerSpec) error) (*Container, error) {
	c, err := e.Within(ctx).Container(db, id)
	if err != nil {
		return nil, err
	}
	if err := c.rt.ChangeSpec(ctx, f, validate); err != nil {
		return nil, err
	}
	e.published(ctx)
	def := c.rt.Def()
	e.resizeLater(def)
	return e.container(ctx, def)
}

// RenameContainer gives a container another id within its database. With replace, an existing container with that id is
// dropped in the same commit. Without replace, such a container is a Conflict.
func (e *Engine) RenameContainer(ctx context.Context, db, id, to string, replace bool) (*Container, error) {
	if err := validateID(to); err != nil {
		return nil, err
	}
	if err := e.beforeJournal(ctx, db, id, to); err != nil {
		return nil, err
	}
	def, gone, err := e.cat.RenameContainer(ctx, db, id, to, replace)
	if err != nil {
		return nil, e.unsureDrop(err)
	}
	if gone != nil {
		e.drop(gone.Gen)
	}
	e.published(ctx)
	return e.container(ctx, def)
}

// Container returns a container. A missing database is NotFound with sub-status 1003, a missing container NotFound.
func (e *Engine) Container(db, id string) (*Container, error) {
	return e.Within(context.Background()).Container(db, id)
}

// ContainerFold returns the container with this id, or else the only one of the database whose id differs from it only
// in case. The errors are those of Container.
func (e *Engine) ContainerFold(db, id string) (*Container, error) {
	return e.Within(context.Background()).ContainerFold(db, id)
}

// ContainersFold returns the containers of a database whose ids equal this id, or differ from it only in case.
func (e *Engine) ContainersFold(ctx context.Context, db, id string) (out []*Container, err error) {
	if err := e.fresh(ctx); err != nil {
		return nil, err
	}
	defs, err := e.cat.ContainersFold(ctx, db, id)
	if err != nil {
		return nil, err
	}
	for _, def := range defs {
		c, err := e.container(ctx, def)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ContainerByRID returns the container with these bytes of _rid.
func (e *Engine) ContainerByRID(rid [8]byte) (*Container, error) {
	return e.Within(context.Background()).ContainerByRID(rid)
}

// maxID is the longest id of a database or container in bytes: the service's 255 characters.
const maxID = 4 * 255

func validateID(id string) error {
	if id == "" || len(id) > maxID {
		return status.New(status.BadRequest, "An id must have 1 to 255 characters.")
	}
	return nil
}

// validate checks and completes a container spec.
func validate(s *ContainerSpec) error {
	k := &s.PartitionKey
	if err := validateID(s.ID); err != nil {
		return err
	}
	if len(k.Paths) == 0 {
		return status.New(status.BadRequest, "The partition key has no path.")
	}
	if k.Kind == "" {
		k.Kind = "Hash"
		if len(k.Paths) > 1 {
			k.Kind = "MultiHash"
		}
	}
	if k.Version == 0 {
		k.Version = 2
	}
	if k.Kind != "Hash" && k.Kind != "MultiHash" || k.Version != 1 && k.Version != 2 {
		return status.New(status.BadRequest, "The partition key kind %q version %d is not known.", k.Kind, k.Version)
	}
	if len(k.Paths) > 3 || k.Kind == "Hash" && len(k.Paths) > 1 {
		return status.New(status.BadRequest, "The partition key has too many paths.")
	}
	for _, p := range k.Paths {
		if _, err := catalog.ParsePath(p); err != nil {
			return err
		}
	}
	if t := s.DefaultTTL; t != nil && (*t == 0 || *t < -1) {
		return status.New(status.BadRequest, "The default ttl must be -1 or positive.")
	}
	return store.ValidateSpec(s)
}
