package catalog

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// A drop is one small commit: of a container its entry and its slots' heads, of a database only its entry, however many
// containers it has. The commit also writes a note of what remains to be removed. The note is deleted after the
// removal. So a crash at any point leaves either a note or nothing to remove.
//
// Example: database 7 has 10,000 containers. DropDatabase deletes its entry and puts the note "database 7".
// ClearDropped takes 64 of the containers: it deletes their entries and heads and puts a note for the data of each.
// When the data is removed, Removed deletes these notes, and the next 64 containers follow. With the last of them the
// note "database 7" is deleted.

// Left lists dropped data that remains to be removed.
type Left struct {
	Databases   []uint32    // numbers, for ClearDropped
	Generations []uint32    // generations whose data remains to be removed; then call Removed
	Slots       []keys.Slot // slots whose data remains to be removed; then call RemovedSlots
}

// Left returns what remains to be removed.
func (c *Catalog) Left(ctx context.Context) (l Left, err error) {
	snap, err := c.eng.Snapshot(ctx)
	if err != nil {
		return l, translate(err)
	}
	defer snap.Close()
	for kind, to := range map[keys.MetaKind]*[]uint32{
		keys.MetaDroppedDatabase: &l.Databases, keys.MetaDropped: &l.Generations} {
		err = each(snap, kind, func(key, _ []byte) error {
			_, num, _, ok := keys.ParseMeta(key)
			if !ok {
				return status.New(status.Corruption, "malformed catalog key %x", key)
			}
			*to = append(*to, num)
			return nil
		})
		if err != nil {
			return l, translate(err)
		}
	}
	l.Slots, err = slotsLeft(snap)
	return l, translate(err)
}

func droppedKey(gen uint32) []byte { return keys.AppendMeta(nil, keys.MetaDropped, gen, "") }

func droppedDatabaseKey(num uint32) []byte {
	return keys.AppendMeta(nil, keys.MetaDroppedDatabase, num, "")
}

// note is the value of a key that marks something as still to be removed.
var note = []byte{formatVersion}

// DropDatabase removes a database and returns its number. Nothing in it can be found afterwards. ClearDropped removes
// its contents.
func (c *Catalog) DropDatabase(ctx context.Context, id string) (num uint32, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, ok := x.byID.get(id)
		if !ok {
			return errNoDatabase(id, 0)
		}
		num = d.Num
		x.recordDrops(d)
		x.remove(d)
		x.b.Frees = true
		x.b.Delete(databaseKey(d.Database))
		x.b.Put(droppedDatabaseKey(num), note)
		return nil
	})
	return num, err
}

// clearAtOnce is the number of entries of a dropped database that are removed in one commit.
const clearAtOnce = 64

// ClearDropped removes some entries of a dropped database. It returns the generations whose data must be removed next.
// When there are none left, it returns none and deletes the note of the database.
func (c *Catalog) ClearDropped(ctx context.Context, num uint32) (gens []uint32, err error) {
	for over := false; !over && len(gens) == 0; { // a step with only resources gives the caller nothing to remove
		if gens, over, err = c.clearSome(ctx, num); err != nil {
			return nil, err
		}
	}
	return gens, nil
}

// clearSome removes at most clearAtOnce entries of a dropped database and returns the generations among them. over says
// that no entries were left, and that the note of the database was deleted.
func (c *Catalog) clearSome(ctx context.Context, num uint32) (gens []uint32, over bool, err error) {
	b := kv.Batch{Frees: true}
	snap, err := c.eng.Snapshot(ctx)
	if err != nil {
		return nil, false, translate(err)
	}
	defer snap.Close()
	left := clearAtOnce
	for _, kind := range append([]keys.MetaKind{keys.MetaContainer}, resourceKinds...) {
		lo, hi := keys.MetaParentBounds(kind, num)
		err := eachIn(snap, lo, hi, 0, func(key, val []byte) (bool, error) {
			// If a container's entry can't be read, the place of its data is unknown. The entry is removed anyway.
			if f, err := decodeFront(val); kind == keys.MetaContainer && err == nil {
				gens = append(gens, f.gen)
				b.Delete(keys.AppendMeta(nil, keys.MetaCounter, f.gen, ""))
				b.Put(droppedKey(f.gen), note)
				if err := deleteHeads(snap, &b, f.gen); err != nil {
					return false, err
				}
			}
			b.Delete(key)
			left--
			return left > 0, nil
		})
		if err != nil {
			return nil, false, translate(err)
		}
		if left == 0 {
			break
		}
	}
	if over = left == clearAtOnce; over {
		b.Delete(droppedDatabaseKey(num))
	}
	return gens, over, c.remove(ctx, &b)
}

// deleteHeads removes the heads of a generation's slots, so that a later write fails.
func deleteHeads(snap kv.Snapshot, b *kv.Batch, gen uint32) error {
	lo, hi := keys.GenerationBounds(gen)
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; {
		s, _, valid := keys.ParseSlot(it.Key())
		if !valid {
			return nil // DropRange removes them
		}
		b.Delete(keys.AppendPrefix(nil, s, keys.KindHead))
		_, after := keys.SlotBounds(s)
		ok = it.SeekGE(after)
	}
	return it.Err()
}

// Removed records that the data of generations was removed.
func (c *Catalog) Removed(ctx context.Context, gens []uint32) error {
	b := kv.Batch{Frees: true}
	for _, g := range gens {
		b.Delete(droppedKey(g))
	}
	return c.remove(ctx, &b)
}

// remove writes a batch about things that can't be found any more. The catalog itself doesn't change.
func (c *Catalog) remove(ctx context.Context, b *kv.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	w, err := c.eng.Write(ctx, b, nil)
	if err == nil {
		err = w.Wait()
	}
	if errors.Is(err, kv.ErrUnknownOutcome) {
		err = status.Wrap(status.Unavailable, err, "The outcome of a removal is unknown.") // it is repeated
	}
	return translate(err)
}

// Generations returns the generations of all containers, and the least number that was never used.
func (c *Catalog) Generations() (live map[uint32]bool, next uint32) {
	st := c.cur.Load()
	live = map[uint32]bool{}
	for d := range st.byNum.all() {
		for r := range d.numbers.all() {
			live[r.gen] = true
		}
	}
	return live, st.account.NextGen
}

// Note writes notes for the data of generations without a container.
func (c *Catalog) Note(ctx context.Context, gens []uint32) error {
	b := kv.Batch{Frees: true}
	for _, g := range gens {
		b.Put(droppedKey(g), note)
	}
	return c.remove(ctx, &b)
}
