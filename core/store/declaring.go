package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/work"
)

// A unique index is declared while requests go on:
//
//  1. The definition gets the index in state IndexBuilding, with a number that no other index has.
//  2. The fence: every commit from now on follows this definition (Container.fence).
//  3. The items that exist get their entries, in commits of bounded size. Each has the condition that no item of the
//     slot has changed since they were read. Two items with equal values end the build.
//  4. The definition gets the index in state IndexReady.
//
// An index is dropped, and a build that has failed is undone, in the opposite order: state IndexDropping, the fence,
// then the entries are removed, and then the index leaves the definition. So the entries of an index that no definition
// names are never left behind.
//
// A process that ends in between leaves an index that isn't ready. While it is being built it already refuses
// duplicates. Nobody was told that it exists, so the next change, or the reaper, drops it.
//
// With a shared engine a process may be paused in between, and another one takes the lease, and removes the index. So
// each change of the definition, and each commit of entries, has the lease as a precondition.
//
// Example: the items have the mails "a" and "b" when a unique index of mail is declared. The fence is passed, and a
// writer creates an item with "c", with its entry. The build adds the entries of "a" and "b". The index is ready.
type declaring struct {
	c     *Container
	ctx   context.Context
	lease *lease.Lease
}

// ChangeSpec changes the container's spec with f, which may change Spec.Declared. It returns when new unique indexes
// are ready, and when nothing of dropped ones is left. If two items have equal values it fails with Conflict, whose
// cause is a Duplicate, and nothing was changed. check validates the spec that f makes. f may be called several times.
func (c *Container) ChangeSpec(ctx context.Context, f, check func(*catalog.Spec) error) (err error) {
	if err := c.declareMu.LockUntil(ctx); err != nil {
		return err
	}
	defer c.declareMu.Unlock()
	l, err := c.leaseDeclaring(ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := c.keepUpShared(l.Context()); err != nil {
		return err
	}
	g := &declaring{c, l.Context(), l}
	if err := g.clear(); err != nil {
		return err
	}
	want := c.Def().Spec.Clone()
	if err := cmp.Or(f(&want), check(&want)); err != nil {
		return err
	}
	fresh := g.fresh(want.Declared)
	if len(fresh) > 0 {
		if err := g.build(ctx, fresh); err != nil {
			return undone(err, g.leave())
		}
	}
	err = g.change(func(s *catalog.Spec) error {
		old := s.Declared
		if err := cmp.Or(f(s), check(s)); err != nil {
			return err
		}
		s.Declared = settled(old, s.Declared)
		return nil
	})
	if err != nil {
		return undone(err, g.leave())
	}
	return g.clear()
}

// leave is clear after a change that failed. The request may have ended, so it has graceTime at least.
func (g *declaring) leave() error {
	ctx, cancel := work.AtLeast(g.ctx, graceTime)
	defer cancel()
	return (&declaring{g.c, ctx, g.lease}).clear()
}

// undone returns the error of a change, and that of removing what it has left, if that failed too. Then the reaper does
// it.
func undone(err, left error) error {
	if left == nil {
		return err
	}
	return errors.Join(err, left)
}

// keepUpShared brings the container up to the stored catalog, if others may have changed it.
func (c *Container) keepUpShared(ctx context.Context) error {
	if !c.st.others {
		return nil
	}
	return c.keepUp(ctx)
}

// fresh returns the unique indexes of a list that have no entries yet, with their numbers.
func (g *declaring) fresh(want []catalog.Declared) (out []catalog.Declared) {
	most := uint32(0)
	for _, d := range g.c.Def().Declared {
		most = max(most, d.Num)
	}
	for _, d := range want {
		if d.Unique && find(g.c.Def().Declared, &d) == nil {
			most++
			d.Num, d.State = most, catalog.IndexBuilding
			out = append(out, d)
		}
	}
	return out
}

// find returns the index of a list that is the same as d, unless it is being dropped.
func find(list []catalog.Declared, d *catalog.Declared) *catalog.Declared {
	for i := range list {
		if list[i].State != catalog.IndexDropping && list[i].Same(*d) {
			return &list[i]
		}
	}
	return nil
}

// settled returns a list of wanted indexes in the place of old ones: those that have entries keep their numbers and are
// ready, and unique ones that aren't wanted are to be dropped.
func settled(old, want []catalog.Declared) (out []catalog.Declared) {
	for _, d := range want {
		d.Num, d.State = 0, catalog.IndexReady
		if o := find(old, &d); o != nil {
			d.Num = o.Num
		}
		out = append(out, d)
	}
	for _, d := range old {
		if d.Unique && find(want, &d) == nil {
			d.State = catalog.IndexDropping
			out = append(out, d)
		}
	}
	return out
}

// change changes the definition.
func (g *declaring) change(f func(*catalog.Spec) error) error {
	if err := g.ctx.Err(); err != nil {
		return translate(err)
	}
	_, err := g.c.Redefine(g.ctx, func(use catalog.InUse) (*catalog.Container, error) {
		def := g.c.Def()
		return g.c.st.cat.ChangeSpec(g.ctx, def.Database, def.ID, def.Gen, use, g.lease.Fence(), f)
	})
	return err
}

// states changes the states of the declared indexes. An index for which to returns false leaves the definition.
func (g *declaring) states(to func(d *catalog.Declared) bool) error {
	return g.change(func(s *catalog.Spec) error {
		var out []catalog.Declared
		for _, d := range s.Declared {
			if to(&d) {
				out = append(out, d)
			}
		}
		s.Declared = out
		return nil
	})
}

// dropBuilding gives the indexes that are being built up.
func (g *declaring) dropBuilding() error {
	return g.states(func(d *catalog.Declared) bool {
		if d.State == catalog.IndexBuilding {
			d.State = catalog.IndexDropping
		}
		return true
	})
}

// clear removes everything of indexes that aren't ready.
func (g *declaring) clear() error {
	if s := g.c.declared.Load(); s == nil || !s.ruined {
		return nil
	}
	if err := g.dropBuilding(); err != nil {
		return err
	}
	if err := g.c.fence(g.ctx); err != nil {
		return err
	}
	for _, d := range g.c.Def().Declared {
		if d.State == catalog.IndexDropping {
			if err := g.remove(d.Num); err != nil {
				return err
			}
		}
	}
	return g.states(func(d *catalog.Declared) bool { return d.State != catalog.IndexDropping })
}

// ClearDeclared removes what is left of declared indexes whose build or drop was interrupted.
func (c *Container) ClearDeclared(ctx context.Context) error {
	if s := c.declared.Load(); s == nil || !s.ruined || !c.declareMu.try() {
		return nil
	}
	defer c.declareMu.Unlock()
	l, err := c.lease(ctx, lease.Declare)
	if l == nil {
		return err
	}
	defer l.Release()
	if err := c.keepUpShared(l.Context()); err != nil {
		return err
	}
	return (&declaring{c, l.Context(), l}).clear()
}

// entriesAtOnce is the number of entries, or of items, of one commit.
const entriesAtOnce = 512

// remove removes all entries of an index. No writer makes any.
func (g *declaring) remove(num uint32) error {
	lo := keys.AppendDeclared(nil, g.c.gen, num, nil)
	for {
		snap, err := g.c.st.eng.Snapshot(g.ctx)
		if err != nil {
			return translate(err)
		}
		b := kv.Batch{Frees: true, Background: true}
		v := View{c: g.c, snap: snap}
		err = v.walk(lo, keys.After(lo), func(key, _ []byte) (bool, error) {
			b.Delete(key)
			return b.Len() < entriesAtOnce, nil
		})
		_ = snap.Close()
		if err != nil || b.Len() == 0 {
			return err
		}
		if err := g.write(&b, g.lease.Fence()); err != nil {
			return err
		}
	}
}

// write commits a batch and waits until it is durable.
func (g *declaring) write(b *kv.Batch, pre []kv.Precondition) error {
	cm, err := g.c.st.eng.Write(g.ctx, b, pre)
	if err == nil {
		err = cm.Wait()
	}
	return translate(err)
}

// fence returns when every commit that isn't visible yet will follow the present definition, or fail. A commit reads
// the declared indexes under its slot's latch. With a shared engine a commit of another process has the slot's head as
// precondition, and each head is replaced: the commit fails, and the writer reads the catalog again.
func (c *Container) fence(ctx context.Context) error {
	for place := []byte(nil); ; {
		sl := c.Slots().at(place)
		raced, err := c.touch(ctx, sl)
		if err != nil {
			return err
		}
		if raced || !c.Slots().has(sl) {
			continue
		}
		if place = sl.max; place == nil {
			return nil
		}
	}
}

// touch passes the fence in one slot. raced says that another process has written to it, or has replaced it.
func (c *Container) touch(ctx context.Context, sl *Slot) (raced bool, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if !c.st.others {
		return false, nil
	}
	if err := c.newestHead(ctx, sl); err != nil || !c.Slots().has(sl) {
		return err == nil, err
	}
	h := sl.head
	h.LSN = max(h.LSN, sl.unsure)
	if h.LSN, err = c.nextLSN(ctx, &h); err != nil {
		return false, translate(err)
	}
	h.Writer = c.st.writer
	b := kv.Batch{Frees: true}
	head := h.append(nil)
	b.Put(sl.headKey[:], head)
	cm, err := c.st.eng.Write(ctx, &b, sl.asRead())
	if err == nil {
		err = cm.Wait()
	}
	if err != nil {
		return c.lost(sl, err)
	}
	return false, c.install(ctx, sl, head)
}

// build declares indexes and gives all items their entries. The indexes stay in state IndexBuilding. ctx is that of the
// request.
func (g *declaring) build(ctx context.Context, fresh []catalog.Declared) error {
	err := g.change(func(s *catalog.Spec) error {
		s.Declared = append(s.Declared, fresh...)
		return nil
	})
	if err == nil {
		err = g.c.fence(g.ctx)
	}
	if err != nil {
		return err
	}
	var of []*index.Declared
	for _, d := range fresh {
		x, err := index.CompileDeclared(d)
		if err != nil {
			return err
		}
		of = append(of, x)
	}
	for place := []byte(nil); ; {
		sl := g.c.Slots().at(place)
		ck := entryChunk{g: g, sl: sl, of: of}
		for !ck.over {
			if err := ctx.Err(); err != nil {
				return translate(err)
			}
			if err := ck.do(); err != nil {
				return err
			}
		}
		if place = sl.max; !ck.left && place == nil {
			return nil
		}
		if ck.left {
			place = sl.min
		}
	}
}

// entryChunk makes the entries of a slot's items, one commit after the other.
type entryChunk struct {
	g    *declaring
	sl   *Slot
	of   []*index.Declared
	past []byte // key of the last item that is done
	over bool   // all are done
	left bool   // the slot has left the map: others hold its items

	// of the current commit
	seen  int
	next  []byte
	end   bool
	b     kv.Batch
	pre   []kv.Precondition
	taken map[string][]byte // who has an entry that the commit makes
	gone  [][]byte          // expired items
}

// entryRaces is the number of attempts at a commit without the latch.
const entryRaces = 3

// do does the next items.
func (ck *entryChunk) do() error {
	c := ck.g.c
	for n := 0; ; n++ {
		raced, err := ck.attempt(n >= entryRaces)
		if err != nil {
			return err
		}
		if ck.left {
			ck.over = true
			return nil
		}
		if len(ck.gone) > 0 {
			p, _, err := c.reapBatch(ck.g.ctx, ck.sl, ck.gone)
			if err := cmp.Or(err, p.wait(ck.g.ctx)); err != nil {
				return err
			}
			continue
		}
		if !raced {
			ck.past, ck.over = ck.next, ck.end
			return nil
		}
	}
}

// attempt makes one attempt at a commit. raced says that a writer has changed something in between.
func (ck *entryChunk) attempt(latched bool) (raced bool, err error) {
	c, sl := ck.g.c, ck.sl
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if err := c.newestHead(ck.g.ctx, sl); err != nil {
		return false, err
	}
	if ck.left = !c.Slots().has(sl); ck.left {
		return false, nil
	}
	seen := sl.head.LSN
	if latched {
		err = ck.collect()
	} else {
		err = sl.mu.without(ck.collect)
	}
	if err != nil || len(ck.gone) > 0 {
		return false, err
	}
	if sl.head.LSN != seen || !c.Slots().has(sl) {
		return true, nil
	}
	if ck.b.Len() == 0 {
		return false, nil
	}
	ck.b.Background = true
	err = ck.g.write(&ck.b, append(append(ck.pre, sl.asRead()...), ck.g.lease.Fence()...))
	if errors.Is(err, kv.ErrConflict) {
		return true, ck.g.ctx.Err()
	}
	return false, err
}

// collect reads the next items and the entries that they need.
func (ck *entryChunk) collect() error {
	c := ck.g.c
	ck.b.Reset()
	ck.pre, ck.gone, ck.taken, ck.end, ck.next, ck.seen = nil, nil, map[string][]byte{}, false, ck.past, 0
	snap, err := c.st.eng.Snapshot(ck.g.ctx)
	if err != nil {
		return translate(err)
	}
	defer snap.Close()
	v := View{c: c, snap: snap, now: c.st.clk.Now().Unix(), ttl: c.def.Load().DefaultTTL}
	lo, hi := keys.KindBounds(ck.sl.key, keys.KindItem)
	if ck.past != nil {
		lo = append(bytes.Clone(ck.past), 0)
	}
	ck.end = true
	return v.walk(lo, hi, func(key, val []byte) (bool, error) {
		var it Item
		suffix := bytes.Clone(key[keys.PrefixLen:])
		alive, err := v.Decode(&it, suffix, val)
		if err != nil {
			return false, err
		}
		if !alive {
			ck.gone = append(ck.gone, suffix)
		} else if err := ck.item(snap, &it, suffix); err != nil {
			return false, err
		}
		ck.next = bytes.Clone(key)
		ck.seen++
		ck.end = ck.seen < entriesAtOnce && ck.b.Len() < entriesAtOnce
		return ck.end, nil
	})
}

// item adds the entries of an item to the commit.
func (ck *entryChunk) item(snap kv.Snapshot, it *Item, suffix []byte) error {
	c := ck.g.c
	for _, of := range ck.of {
		all, err := of.Keys(it.Doc)
		if err != nil {
			return err
		}
		for i := range all {
			key := c.entryKey(of, &all[i])
			owner, err := snap.Get(nil, key)
			if errors.Is(err, kv.ErrNotFound) {
				owner, err = ck.taken[string(key)], nil
			}
			switch {
			case err != nil:
				return translate(err)
			case owner == nil:
				ck.b.Put(key, suffix)
				ck.pre = append(ck.pre, kv.Precondition{Key: key, Expect: kv.Absent})
				ck.taken[string(key)] = suffix
			case !bytes.Equal(owner, suffix):
				return duplicate(of, &all[i])
			}
		}
	}
	return nil
}

// errNotDeclared is the error of CreateContainer for an index that a new container can't have.
func errNotDeclared(name string) error {
	return status.New(status.BadRequest, "The index %q isn't one of a new container.", name)
}

// FirstDeclared makes the declared indexes of a new container ready: it has no items.
func FirstDeclared(s *catalog.Spec) error {
	for i := range s.Declared {
		d := &s.Declared[i]
		if d.State != catalog.IndexReady {
			return errNotDeclared(d.Name)
		}
		d.Num = uint32(i) + 1
	}
	return nil
}
