package catalog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

func databaseKey(d *Database) []byte { return keys.AppendMeta(nil, keys.MetaDatabase, 0, d.ID) }

func containerKey(k *Container) []byte {
	return keys.AppendMeta(nil, keys.MetaContainer, k.DBNum, k.ID)
}

// errTaken is the error for a name that is taken.
func errTaken() error {
	return status.New(status.Conflict, "Resource with specified id or name already exists.")
}

// CreateDatabase adds a database; Conflict when the id is taken.
func (c *Catalog) CreateDatabase(ctx context.Context, id string, t Throughput) (out *Database, err error) {
	err = c.change(ctx, func(x *draft) error {
		if _, ok := x.byID.get(id); ok {
			return errTaken()
		}
		out = &Database{ID: id, Num: x.account.NextDB, Version: x.nextVersion(), TS: c.clk.Now().Unix(), Throughput: t}
		x.account.NextDB++
		x.put(&database{Database: out})
		return x.write(databaseKey(out), out)
	})
	return out, err
}

// ReplaceDatabase changes a database's throughput.
func (c *Catalog) ReplaceDatabase(ctx context.Context, id string, f func(*Database) (Throughput, error)) (
	out *Database, err error) {
	err = c.change(ctx, func(x *draft) error {
		old, ok := x.byID.get(id)
		if !ok {
			return errNoDatabase(id, 0)
		}
		t, err := f(old.Database)
		if err != nil {
			return err
		}
		n, d := *old, *old.Database
		d.Throughput, d.TS, d.Version = t.after(old.Throughput), c.clk.Now().Unix(), x.nextVersion()
		n.Database, out = &d, &d
		x.put(&n)
		return x.write(databaseKey(out), out)
	})
	return out, err
}

// CreateContainer adds a container with its slots and physical partitions; Conflict when the id is taken. head is the
// first value of every slot's head, and is written in the same commit. So a writer that finds no head knows that the
// container was dropped.
func (c *Catalog) CreateContainer(ctx context.Context, db string, spec Spec, head []byte) (out *Container, err error) {
	return c.CreateWith(ctx, db, spec, func() []byte { return head })
}

// CreateWith is CreateContainer with a head that depends on the catalog: it is called for each decision.
func (c *Catalog) CreateWith(ctx context.Context, db string, spec Spec, head func() []byte) (out *Container,
	err error) {
	err = c.change(ctx, func(x *draft) error {
		d, err := x.owner(db)
		if err != nil {
			return err
		}
		if err := d.free(ctx, c, spec.ID, spec.FoldID); err != nil {
			return err
		}
		if err := c.checkThroughput(&spec); err != nil {
			return err
		}
		event := cmp.Or(string(spec.Event), string(newsOf("create")))
		spec := spec
		spec.Event = nil
		k := &Container{Spec: spec.Clone(), Database: db, DBNum: d.Num, Num: x.account.NextContainer | 1<<31,
			Gen: x.account.NextGen, Version: x.nextVersion(), TS: c.clk.Now().Unix(), IndexVersion: 1}
		if err := k.prepare(); err != nil {
			return err
		}
		x.account.NextContainer++
		x.account.NextGen++
		c.layOut(k)
		first := head()
		for slot := range k.SlotKeys() {
			x.b.Put(keys.AppendPrefix(nil, slot, keys.KindHead), first)
		}
		out = k
		x.record(k, []byte(event))
		return x.writeContainer(d, k)
	})
	return out, err
}

// Unborn returns the definition that a container of a database would have, without creating it: Conflict when the id is
// taken. Its database need not exist. Its generation is another container's.
func (c *Catalog) Unborn(ctx context.Context, db string, spec Spec) (*Container, error) {
	k := &Container{Spec: spec.Clone(), Database: db, Version: 1, TS: c.clk.Now().Unix(), IndexVersion: 1}
	if d, err := c.cur.Load().owner(db); err == nil {
		if err := d.free(ctx, c, spec.ID, spec.FoldID); err != nil {
			return nil, err
		}
		k.DBNum = d.Num
	}
	if err := c.checkThroughput(&spec); err != nil {
		return nil, err
	}
	if err := k.prepare(); err != nil {
		return nil, err
	}
	c.layOut(k)
	return k, nil
}

// SlotsOf returns the number of slots of each partition of a new container that has n of them: one, unless the settings
// ask for more. A query over all partitions seeks in each slot, so each further one would make it slower. A partition
// that has to be split later is split by a copy of its slot. On a shared engine each slot counts its own LSNs, and a
// partition has one position, so it has one slot.
func (c *Catalog) SlotsOf(n int) int {
	if c.eng.Shared() {
		return 1
	}
	return max(1, (c.set.MinSlots+n-1)/n)
}

// layOut gives a new container its slots, equal shares of the hash, and its physical partitions over them.
func (c *Catalog) layOut(k *Container) {
	n := c.PartitionsFor(&k.Spec)
	slots := c.SlotsOf(n) * n
	k.SlotMap = newSlotMap(k.PartitionKey.EPKKind(), slots, n)
}

// missingAs turns the error for a missing database into one for a missing container.
func missingAs(err error, id string) error {
	if status.Is(err, status.NotFound) {
		return errNoContainer(id, 0)
	}
	return err
}

// changing finds a container that is to be changed, and its definition.
func (x *draft) changing(ctx context.Context, c *Catalog, db, id string) (*database, *ref, *Container, error) {
	d, r, err := x.container(db, id)
	if err != nil {
		return nil, nil, nil, err
	}
	k, err := c.definition(ctx, d, r)
	return d, r, k, err
}

// InUse are the indexing policies of a container that index entries may follow: some versions, and all from Since on.
//
// Where other processes begin rebuilds, the versions are those that the slots' heads name, and Since is a version that
// was the newest one before these were read. A rebuild begins only to the newest policy, so heads name no others later.
type InUse struct {
	Versions []uint32
	Since    uint32
}

func (u InUse) has(version uint32) bool {
	return version >= u.Since || slices.Contains(u.Versions, version)
}

// ErrRedefined is the error of a replacement that was decided on a definition that is no longer the present one.
var ErrRedefined = status.New(status.RetryWith, "The definition of the container has been changed meanwhile.")

// ReplaceContainer changes the spec of a container. old is the definition on which spec was decided: if it isn't the
// present one, nothing is changed, and the error is ErrRedefined. The partition key, id, unique keys and declared
// indexes don't change. Former policies that are in use are kept.
func (c *Catalog) ReplaceContainer(ctx context.Context, old *Container, spec Spec, use InUse) (*Container, error) {
	return c.changeSpec(ctx, old.Database, old.ID, old.Gen, use, nil, func(now *Container, s *Spec) error {
		if now.Version != old.Version {
			return ErrRedefined
		}
		declared := s.Declared
		*s = spec.Clone()
		s.Event = spec.Event
		s.Declared = declared
		return nil
	})
}

// ChangeSpec changes the spec of the container with a generation by a function, which gets the present one and may
// change its declared indexes. f may be called more than once. Former policies that are in use are kept. pre are
// further preconditions of the commit.
func (c *Catalog) ChangeSpec(ctx context.Context, db, id string, gen uint32, use InUse, pre []kv.Precondition,
	f func(*Spec) error) (*Container, error) {
	return c.changeSpec(ctx, db, id, gen, use, pre, func(_ *Container, s *Spec) error { return f(s) })
}

// changeSpec is ChangeSpec with a function that also gets the present definition.
func (c *Catalog) changeSpec(ctx context.Context, db, id string, gen uint32, use InUse, pre []kv.Precondition,
	f func(*Container, *Spec) error) (out *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, _, old, err := x.changing(ctx, c, db, id)
		if err == nil && old.Gen != gen {
			err = errNoContainer(id, 0)
		}
		if err != nil {
			return missingAs(err, id)
		}
		k := *old
		k.Spec = old.Spec.Clone()
		if err := f(old, &k.Spec); err != nil {
			return err
		}
		if k.Throughput != old.Throughput { // a store can have more than the present settings allow
			if err := c.checkThroughput(&k.Spec); err != nil {
				return err
			}
		}
		k.Throughput = k.Throughput.after(old.Throughput)
		k.Spec.ID, k.Spec.PartitionKey, k.Spec.UniqueKeys, k.Spec.FoldID = old.ID, old.PartitionKey,
			old.UniqueKeys, old.FoldID
		k.TS, k.Version = c.clk.Now().Unix(), x.nextVersion()
		if !bytes.Equal(k.IndexingPolicy, old.IndexingPolicy) {
			k.IndexVersion++
			k.Former = nil
			for _, f := range append(slices.Clone(old.Former), FormerPolicy{old.IndexVersion, old.IndexingPolicy}) {
				if use.has(f.Version) {
					k.Former = append(k.Former, f)
				}
			}
		}
		if k.Event != nil {
			x.record(&k, k.Event)
			k.Event = nil
		}
		x.pre = pre
		out = &k
		return x.writeContainer(d, &k)
	})
	return out, err
}

// ForgetFormer drops the former indexing policies of a container whose index entries all follow this version of the
// policy. It does nothing when there is a newer version. It doesn't change the definition otherwise, or its version.
func (c *Catalog) ForgetFormer(ctx context.Context, rid [8]byte, version uint32) error {
	return c.change(ctx, func(x *draft) error {
		d, ok := x.byNum.get(ridNumber(rid[:4]))
		if !ok {
			return nil
		}
		r, ok := d.numbers.get(ridNumber(rid[4:]))
		if !ok {
			return nil
		}
		old, err := c.definition(ctx, d, r)
		if err != nil || old.IndexVersion != version || len(old.Former) == 0 {
			return err
		}
		k := *old
		k.Former = nil
		return x.writeContainer(d, &k)
	})
}

// RenameContainer gives a container another id within its database. Its items are not moved. With replace, the
// container that has that id is removed in the same commit and returned as gone. The caller then drops its range.
func (c *Catalog) RenameContainer(ctx context.Context, db, id, to string, replace bool) (
	out, gone *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		gone = nil
		d, r, old, err := x.changing(ctx, c, db, id)
		if err != nil {
			return missingAs(err, id)
		}
		if replace && to != id {
			if _, g, k, err := x.changing(ctx, c, db, to); err == nil {
				gone = k
				d = x.dropContainer(d, g, k)
			} else if !status.Is(err, status.NotFound) {
				return err
			}
		}
		if err := d.free(ctx, c, to, old.FoldID, r); err != nil {
			return err
		}
		k := *old
		k.ID = to
		k.TS, k.Version = c.clk.Now().Unix(), x.nextVersion()
		x.b.Delete(containerKey(old))
		x.recordRename(old, to, gone)
		out = &k
		return x.writeContainer(d, &k)
	})
	if err != nil {
		return nil, nil, err
	}
	return out, gone, nil
}

// DropContainer removes a container and its slot heads, and returns it. The caller drops its range and then calls
// Removed.
func (c *Catalog) DropContainer(ctx context.Context, db, id string) (out *Container, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, r, k, err := x.changing(ctx, c, db, id)
		if err != nil {
			return err
		}
		out = k
		x.b.Frees = true
		x.record(k, newsOf("drop"))
		x.put(x.dropContainer(d, r, k))
		return nil
	})
	return out, err
}

// dropContainer removes the entry and every slot head in one commit, so that a later write fails because the head is
// missing. It returns the database without the container and its programs.
func (x *draft) dropContainer(d *database, r *ref, k *Container) *database {
	b := &x.b
	b.Delete(containerKey(k))
	b.Delete(keys.AppendMeta(nil, keys.MetaCounter, k.Gen, ""))
	for slot := range k.SlotKeys() {
		b.Delete(keys.AppendPrefix(nil, slot, keys.KindHead))
	}
	b.Put(droppedKey(k.Gen), note)
	d = d.without(r)
	d.shelf = x.dropChildren(d.shelf, programKinds, k.Num)
	return d
}
