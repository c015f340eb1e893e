package catalog

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// A slot is replaced by other slots in two commits. Between them the contents are copied:
//
//  1. ReserveSlots takes ids for the new slots, and writes a note for each: the keys under the id are to be removed.
//  2. ReplaceMap stores the next map. The same commit deletes the notes of the new slots and writes notes for the
//     replaced ones.
//
// So whatever a crash leaves, the slots with notes are those that no map names.
//
// The version of the container stays, and so does its etag: a client that has read the definition may still replace it.

// ErrMapChanged is wrapped by the error of ReplaceMap when the container has another version of its map.
var ErrMapChanged = errors.New("catalog: another version of the slot map")

// slotNote is the key of the note that the data of a slot is to be removed.
func slotNote(s keys.Slot) []byte {
	return binary.BigEndian.AppendUint32(keys.AppendMeta(nil, keys.MetaDroppedSlot, s.Gen, ""), s.ID)
}

// changingMap finds the entry of a container, for a change of its slot map.
func (c *Catalog) changingMap(ctx context.Context, x *draft, def *Container) (*database, *Container, error) {
	if d, ok := x.byNum.get(def.DBNum); ok {
		if r, ok := d.numbers.get(def.Num); ok {
			k, err := c.definition(ctx, d, r)
			if err != nil || k.Gen == def.Gen {
				return d, k, err
			}
		}
	}
	return nil, nil, errNoContainer(def.ID, status.SubOwnerNotFound)
}

// ReserveSlots takes the ids of n future slots of a container and returns the first one; the others follow it. It
// leaves a note for each, so that their data is removed after a crash.
func (c *Catalog) ReserveSlots(ctx context.Context, def *Container, n int) (first uint32, err error) {
	err = c.change(ctx, func(x *draft) error {
		d, old, err := c.changingMap(ctx, x, def)
		if err != nil {
			return err
		}
		k, m := *old, *old.SlotMap
		first = m.NextSlot
		m.NextSlot += uint32(n)
		k.SlotMap = &m
		for id := first; id < m.NextSlot; id++ {
			x.b.Put(slotNote(keys.Slot{Gen: k.Gen, ID: id}), note)
		}
		return x.writeContainer(d, &k)
	})
	return first, err
}

// ReplaceMap stores the next slot map of a container in place of old, and returns the container's definition with it.
// The notes of slots change as described above. extra are further operations of the same commit, and pre further
// preconditions. If the container has another version of the map than old, nothing is changed and the error wraps
// ErrMapChanged.
func (c *Catalog) ReplaceMap(ctx context.Context, def *Container, old, next *SlotMap, extra *kv.Batch,
	pre ...kv.Precondition) (out *Container, err error) {
	if bad := next.verify(); bad != "" || next.MapVersion <= old.MapVersion {
		return nil, status.New(status.Internal, "slot map %d after %d: %s", next.MapVersion, old.MapVersion, bad)
	}
	err = c.change(ctx, func(x *draft) error {
		d, was, err := c.changingMap(ctx, x, def)
		if err != nil {
			return err
		}
		if was.MapVersion != old.MapVersion {
			return status.Wrap(status.RetryWith, ErrMapChanged, "The partitions of container %q have changed.", was.ID)
		}
		k, m := *was, *next
		m.NextSlot, m.NextPartition = max(m.NextSlot, was.NextSlot), max(m.NextPartition, was.NextPartition)
		k.SlotMap = &m
		for i := range m.Slots {
			if id := m.Slots[i].ID; was.IndexOf(id) < 0 {
				x.b.Delete(slotNote(keys.Slot{Gen: k.Gen, ID: id}))
			}
		}
		for i := range was.Slots {
			if id := was.Slots[i].ID; m.IndexOf(id) < 0 {
				x.b.Put(slotNote(keys.Slot{Gen: k.Gen, ID: id}), note)
			}
		}
		if extra != nil {
			x.b.Append(extra)
		}
		x.pre = pre
		out = &k
		return x.writeContainer(d, &k)
	})
	return out, err
}

// Reread returns the definition of a container from a catalog that is certain: if the outcome of a change was unknown,
// or another process has changed the catalog, it is read again.
func (c *Catalog) Reread(ctx context.Context, rid [8]byte) (*Container, error) {
	if err := c.mu.Lock(ctx); err != nil {
		return nil, translate(err)
	}
	_, err := c.refresh(ctx)
	c.mu.Unlock()
	if err != nil {
		return nil, translate(err)
	}
	return c.ContainerByRID(ctx, rid)
}

// RemovedSlots records that the data of slots was removed.
func (c *Catalog) RemovedSlots(ctx context.Context, slots []keys.Slot) error {
	b := kv.Batch{Frees: true}
	for _, s := range slots {
		b.Delete(slotNote(s))
	}
	return c.remove(ctx, &b)
}

// slotsLeft returns the slots whose data remains to be removed.
func slotsLeft(snap kv.Snapshot) (out []keys.Slot, err error) {
	err = each(snap, keys.MetaDroppedSlot, func(key, _ []byte) error {
		_, gen, id, ok := keys.ParseMeta(key)
		if !ok || len(id) != 4 {
			return status.New(status.Corruption, "malformed catalog key %x", key)
		}
		out = append(out, keys.Slot{Gen: gen, ID: binary.BigEndian.Uint32(id)})
		return nil
	})
	return out, err
}
