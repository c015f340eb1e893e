package store

import (
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// mapChanges is how often a change of a slot map is made again after another one has come first.
const mapChanges = 100

// ChangeMap replaces the container's slot map with the result of f, which gets the current map. The slots must stay the
// same: f changes the boundaries of physical partitions. f may run again if the map changes in between. It is durable
// when ChangeMap returns. If f returns the same map, nothing is changed.
func (c *Container) ChangeMap(ctx context.Context, f func(*catalog.SlotMap) (*catalog.SlotMap, error)) error {
	if err := c.mapMu.LockUntil(ctx); err != nil {
		return err
	}
	defer c.mapMu.Unlock()
	return c.changeMap(ctx, nil, func(m *catalog.SlotMap) (*catalog.SlotMap, *kv.Batch, []kv.Precondition, error) {
		next, err := f(m)
		return next, nil, nil, err
	})
}

// changeMap replaces the slot map with the result of f, and shows it. others are slots of the next map that the current
// one doesn't have. f also returns what else the commit does, and its preconditions. The caller holds mapMu.
//
// After an error the map is still the current one. The exception is UnknownOutcome, after which the state isn't known:
// the next commit into a slot that was replaced finds it out, and Without does.
func (c *Container) changeMap(ctx context.Context, others []*Slot,
	f func(*catalog.SlotMap) (*catalog.SlotMap, *kv.Batch, []kv.Precondition, error)) error {
	for range mapChanges {
		was := c.Slots()
		next, extra, pre, err := f(was.m)
		if err != nil || next == was.m {
			return err
		}
		def, err := c.st.cat.ReplaceMap(ctx, c.Def(), was.m, next, extra, pre...)
		switch {
		case errors.Is(err, catalog.ErrMapChanged) || status.Is(err, status.UnknownOutcome):
			late, cancel := c.st.graced(ctx)
			moved, rerr := c.reread(late)
			cancel()
			switch {
			case rerr != nil:
				return errUnknownMap(errors.Join(err, rerr))
			case !status.Is(err, status.UnknownOutcome):
			case !moved:
				return status.Wrap(status.Unavailable, err, "The partitions could not be changed.")
			case c.Slots().m.Same(next):
				return nil
			default: // another process has changed them, before this one or after it
				return errUnknownMap(err)
			}
		case err != nil:
			return err
		default:
			c.show(def, others)
			return nil
		}
	}
	return status.New(status.RetryWith, "The partitions of the container are changed too often by others.")
}

func errUnknownMap(cause error) error {
	return status.Wrap(status.UnknownOutcome, cause, "The outcome of a change of the partitions is unknown.")
}

// show makes the next version of the slot map current. others are the slots that the version before doesn't have.
func (c *Container) show(def *catalog.Container, others []*Slot) {
	next, was := &Slots{m: def.SlotMap, all: make([]*Slot, len(def.Slots))}, c.Slots()
	have := make(map[uint32]*Slot, len(was.all)+len(others))
	for _, sl := range was.all {
		have[sl.ID()] = sl
	}
	for _, sl := range others {
		have[sl.ID()] = sl
	}
	for i := range next.all {
		next.all[i] = have[def.Slots[i].ID]
	}
	c.slots.Store(next)
}

// remap makes the newest version of the slot map current if there is a newer one than the container has. A commit calls
// it when the head of its slot says that other slots have replaced it.
func (c *Container) remap(ctx context.Context) (moved bool, err error) {
	if err := c.mapMu.LockUntil(ctx); err != nil {
		return false, err
	}
	defer c.mapMu.Unlock()
	return c.reread(ctx)
}

// Without finds out which version of the slot map is stored, makes it current, and returns those of the slots that it
// doesn't have. They are slots of this container that a change of unknown outcome has replaced, or has made in vain.
func (c *Container) Without(ctx context.Context, slots []keys.Slot) ([]keys.Slot, error) {
	if _, err := c.remap(ctx); err != nil {
		return nil, err
	}
	m := c.Slots().m
	return slices.DeleteFunc(slices.Clone(slots), func(s keys.Slot) bool { return m.IndexOf(s.ID) >= 0 }), nil
}

// reread is remap for a caller that holds mapMu.
func (c *Container) reread(ctx context.Context) (moved bool, err error) {
	for range mapChanges {
		was := c.Slots()
		def, err := c.st.cat.Reread(ctx, c.Def().RID())
		if status.Is(err, status.NotFound) || err == nil && def.Gen != c.gen {
			return false, nil
		}
		if err != nil || def.MapVersion == was.m.MapVersion {
			return false, err
		}
		others, err := c.loadNew(ctx, def.SlotMap)
		if status.Is(err, status.NotFound) && c.st.others { // replaced again, and removed; or the container was dropped
			continue
		}
		if err == nil {
			err = c.mapDurable(was)
		}
		if err != nil {
			return false, err
		}
		c.show(def, others)
		return true, nil
	}
	return false, status.New(status.Unavailable, "The partitions of the container are changed too often by others.")
}

// loadNew loads the slots of a map that the current one doesn't have.
func (c *Container) loadNew(ctx context.Context, m *catalog.SlotMap) (others []*Slot, err error) {
	was := c.Slots()
	for i := range m.Slots {
		if was.m.IndexOf(m.Slots[i].ID) >= 0 {
			continue
		}
		sl, err := c.loadSlot(ctx, m, i)
		if err != nil {
			return nil, err
		}
		if sl.head.LogFloor != 0 {
			c.logs.Store(true)
		}
		c.counter.gave(sl.head.LSN)
		sl.behind = c.st.others
		sl.publish()
		others = append(others, sl)
	}
	return others, nil
}

// mapDurable returns when a change of the map that was read is durable: before a later commit is. With a shared engine
// it is.
func (c *Container) mapDurable(was *Slots) error {
	if c.st.others {
		return nil
	}
	nothing := kv.Batch{Frees: true}
	nothing.Delete(keys.AppendRemoved(nil, was.all[0].key, 0, nil))
	w, err := c.st.eng.Write(context.Background(), &nothing, nil)
	if err == nil {
		err = w.Wait()
	}
	return translate(err)
}
