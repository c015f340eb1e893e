package catalog

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

// Changes of the catalog are in the journal (core/journal), in the commit that makes them. Their note is BSON with the
// field type: create, drop, dropDatabase, rename, or what an API has given (Spec.Event). A rename has the new name in
// the field to, and in dropped the _rid of a container that it replaces.
//
// Example: the rename of "a" to "b", which exists: {type: "rename", to: "b", dropped: <8 bytes>}, with the names and
// the _rid of "a".

// newsOf returns a note that has only a type.
func newsOf(kind string) []byte {
	at, b := bson.Begin(nil)
	return bson.End(bson.AppendString(b, "type", kind), at)
}

// record adds a change of a container to the journal.
func (x *draft) record(k *Container, note []byte) {
	x.news = append(x.news, journal.Entry{Op: journal.Change, DB: k.Database, Coll: k.ID, RID: k.RID(), Note: note,
		Images: k.Images})
}

// recordRename adds a rename to the journal. gone is the container that it replaces; nil: none.
func (x *draft) recordRename(k *Container, to string, gone *Container) {
	at, b := bson.Begin(nil)
	b = bson.AppendString(b, "type", "rename")
	b = bson.AppendString(b, "to", to)
	if gone != nil {
		rid := gone.RID()
		b = bson.AppendBinary(b, "dropped", rid[:])
	}
	x.record(k, bson.End(b, at))
}

// recordDrops adds the drop of a database and of all its containers to the journal.
func (x *draft) recordDrops(d *database) {
	for r := range d.ids.all() {
		x.news = append(x.news, journal.Entry{Op: journal.Change, DB: d.ID, Coll: r.id, RID: ridOf(d.Num, r.num),
			Note: newsOf("drop")})
	}
	x.news = append(x.news, journal.Entry{Op: journal.Change, DB: d.ID, RID: ridOf(d.Num, 0),
		Note: newsOf("dropDatabase")})
}

// ticket adds a draft's changes to its batch, as far as they are recorded, and returns the commit's ticket; nil if
// nobody wants to know.
func (c *Catalog) ticket(x *draft) *journal.Ticket {
	if len(x.news) == 0 || !c.jou.Active() {
		return nil
	}
	var kept []journal.Entry
	size := 0
	for _, e := range x.news {
		to := newName(&e)
		if c.jou.Records(e.DB, e.Coll) || to != "" && c.jou.Records(e.DB, to) {
			kept, size = append(kept, e), size+e.Room()
		}
	}
	if c.jou.Shared() {
		if len(kept) > 0 {
			first, last := c.jou.Take(0, len(kept), size, false)
			c.jou.PutPending(&x.b, kept, first, last, false)
			journal.CatalogTime(&x.b, last)
		}
		return nil
	}
	t := c.jou.Begin(len(kept), size)
	for i := range kept {
		t.Put(&x.b, &kept[i])
	}
	for i := range x.news { // also what isn't recorded may be watched
		t.Touch(x.news[i].DB, x.news[i].Coll)
		if to := newName(&x.news[i]); to != "" {
			t.Touch(x.news[i].DB, to)
		}
	}
	return t
}

// newName returns the new name in the note of a rename; "" for other changes.
func newName(e *journal.Entry) string { return value.ObjectOf(e.Note).Get("to").Str() }

// Quiet waits until a change that has begun is visible or has failed.
func (c *Catalog) Quiet(ctx context.Context) error {
	if err := c.mu.Lock(ctx); err != nil {
		return translate(err)
	}
	c.mu.Unlock()
	return nil
}

// Record stores that a namespace is to be recorded, in a store that several processes share: with since 0 from now on,
// later since when that is so. Every process knows it that knows the version of the catalog.
func (c *Catalog) Record(ctx context.Context, ns journal.Namespace, since uint64) error {
	return c.changeJournal(ctx, func(b *kv.Batch) (kv.Precondition, bool, error) {
		return c.jou.Plan(ctx, b, ns, since)
	})
}

// Forget stores that a namespace isn't recorded any more, unless it was used meanwhile.
func (c *Catalog) Forget(ctx context.Context, ns journal.Namespace) error {
	return c.changeJournal(ctx, func(b *kv.Batch) (kv.Precondition, bool, error) { return c.jou.Unplan(ctx, b, ns) })
}

// changeJournal makes a change of what is recorded, as a change of the catalog.
func (c *Catalog) changeJournal(ctx context.Context, plan func(*kv.Batch) (kv.Precondition, bool, error)) (
	err error) {
	for range maxChanges {
		if err = c.jou.Reload(ctx); err != nil {
			return kv.Status(err)
		}
		err = c.change(ctx, func(x *draft) error {
			pre, ok, err := plan(&x.b)
			if ok {
				x.pre = append(x.pre, pre)
			}
			return err
		})
		if err == nil {
			return kv.Status(c.jou.Reload(ctx))
		}
		if !errors.Is(err, kv.ErrConflict) { // another process has changed the state, and not the catalog
			return err
		}
	}
	return err
}
