package move

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/store"
)

// The source must not change while it is copied. A store of one process is open here, so nobody else has it. In a store
// that several processes share, one of them may still run, or be paused and go on later. So after the record that the
// store is leaving:
//
//   - Processes that look at the store find a new version of the catalog, and with it the record: they refuse the
//     request. Every request looks.
//   - All leases and signs of life are removed. Commits that depend on a lease are refused.
//   - All heads are written again, with another writer. So every commit of items is refused that was decided before:
//     each has a head as it was read as a precondition. The next attempt looks first.
//   - Changes of the catalog have its version as a precondition.
//
// Example: a process is paused between its look and its commit, for an hour. Meanwhile the store is moved, and the
// target is served. When the process goes on, its commit is refused. Otherwise a client would be told that its write is
// stored, and the store where it is would no longer be used.

// fence brings the source to rest. The caller knows that it may be moved.
func (m *mover) fence(ctx context.Context) (err error) {
	if m.from.Shared() {
		alive, err := lease.AwaitRest(ctx, m.from, m.Clock)
		if err != nil {
			return err
		}
		if alive {
			return refused("A server is using %s: stop all servers of this store, and try again.", m.From)
		}
	}
	if m.cat, err = catalog.Open(m.from, m.Clock, catalog.Settings{ReadOnly: true}); err != nil {
		return err
	}
	if m.src == nil {
		if err := m.movable(ctx); err != nil {
			return err
		}
		if err := m.leaving(ctx); err != nil {
			return err
		}
	}
	if !m.from.Shared() {
		return m.count(ctx)
	}
	if err := steadily(ctx, func() error { return m.endProcesses(ctx) }); err != nil {
		return err
	}
	if _, err := m.cat.Refresh(ctx); err != nil {
		return err
	}
	writer := uint64(m.Clock.Int63()) | 1
	m.items = 0
	return m.eachHeads(ctx, func(ks [][]byte) error {
		return steadily(ctx, func() error { return m.fenceHeads(ctx, ks, writer) })
	})
}

// movable checks that another engine can use the store as it is.
func (m *mover) movable(ctx context.Context) error {
	if m.cat.Version() == 0 {
		return refused("%s holds no databases, or was last used by an older version: start and stop this version's "+
			"server on it first.", m.From)
	}
	if m.cat.Format() < kv.Format {
		return refused("The upgrade of %s to the present format isn't over: start this version's server on it, and "+
			"wait until its /status says so.", m.From)
	}
	return m.count(ctx)
}

// count adds up the items of the source, and checks that all of its slots have an index.
func (m *mover) count(ctx context.Context) error {
	m.items = 0
	return m.eachHeads(ctx, func(ks [][]byte) error {
		return m.heads(ctx, ks, func(_ []byte, h *store.Head) error {
			m.items += h.Items
			if h.Bare() {
				return refused("The index of a container of %s is being made again: start the server on it, and wait "+
					"until that is over.", m.From)
			}
			return nil
		})
	})
}

// leaving writes the record of the source.
func (m *mover) leaving(ctx context.Context) error {
	next := &catalog.Move{ID: m.Clock.UUID().String(), State: catalog.MoveLeaving, Other: m.To,
		Begun: m.Clock.Now().UTC()}
	b := kv.Batch{Frees: true}
	pre, err := m.cat.ChangeMove(&b, m.srcRaw, next)
	if err != nil {
		return err
	}
	raw, err := next.Encode()
	if err == nil {
		err = commit(ctx, m.from, &b, m.srcRaw, raw, pre...)
	}
	m.src, m.srcRaw = next, raw
	return err
}

// endProcesses removes all leases and signs of life.
func (m *mover) endProcesses(ctx context.Context) error {
	b := kv.Batch{Frees: true}
	pre, err := lease.PutEnd(ctx, m.from, &b)
	if err != nil || b.Len() == 0 {
		return err
	}
	w, err := m.from.Write(ctx, &b, pre)
	if err == nil {
		err = w.Wait()
	}
	if errors.Is(err, kv.ErrConflict) {
		return refused("A server is using %s: stop all servers of this store, and try again.", m.From)
	}
	return err
}

// headsAtOnce is the number of heads that are read, or written, together.
const headsAtOnce = 256

// eachHeads calls f with the keys of the heads of all slots, some at a time.
func (m *mover) eachHeads(ctx context.Context, f func(ks [][]byte) error) error {
	var ks [][]byte
	for def, err := range m.cat.All(ctx) {
		if err != nil {
			return err
		}
		for s := range def.SlotKeys() {
			ks = append(ks, keys.AppendPrefix(nil, s, keys.KindHead))
		}
		if len(ks) >= headsAtOnce {
			if err := f(ks); err != nil {
				return err
			}
			ks = ks[:0]
		}
	}
	if len(ks) == 0 {
		return ctx.Err()
	}
	return f(ks)
}

// heads calls f with the stored form and the content of each head.
func (m *mover) heads(ctx context.Context, ks [][]byte, f func(raw []byte, h *store.Head) error) error {
	return steadily(ctx, func() error {
		snap, err := m.from.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer snap.Close()
		var vals kv.Values
		if err := snap.GetMany(&vals, ks); err != nil {
			return err
		}
		for i := range ks {
			h, err := store.DecodeHead(vals.At(i))
			if err != nil {
				return err
			}
			if err := f(vals.At(i), &h); err != nil {
				return err
			}
		}
		return nil
	})
}

// fenceHeads writes heads again, unless an attempt before has. If a commit of a process comes first, it is repeated.
func (m *mover) fenceHeads(ctx context.Context, ks [][]byte, writer uint64) error {
	for {
		b, pre, items := kv.Batch{Frees: true}, []kv.Precondition(nil), int64(0)
		i := 0
		err := m.heads(ctx, ks, func(raw []byte, h *store.Head) error {
			if items += h.Items; h.Writer != writer {
				b.Put(ks[i], h.WrittenBy(writer))
				pre = append(pre, kv.Precondition{Key: ks[i], Expect: kv.Equal, Value: append([]byte(nil), raw...)})
			}
			i++
			return nil
		})
		if err != nil {
			return err
		}
		if b.Len() > 0 {
			w, err := m.from.Write(ctx, &b, pre)
			if err == nil {
				err = w.Wait()
			}
			if errors.Is(err, kv.ErrConflict) && ctx.Err() == nil {
				continue
			}
			if err != nil {
				return err
			}
		}
		m.items += items
		return nil
	}
}
