package store

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// rebuild changes a container's index from policy A to policy B while requests continue. DESIGN.md describes the whole.
// It maintains:
//
//   - Queries use one policy, and every slot always has all entries of it. This is A until all slots also have those of
//     B, and then it is B. No entry of A is removed before.
//   - A slot's upkeep says which entries its writers keep. It changes only under the slot's latch, and is in the head
//     of every commit. So after a crash it is known which entries there may be.
//   - Both passes are idempotent. A process that finds a slot half done repeats the pass from the first item.
//
// Example: A indexes /a, B indexes /b. Slots go from Settled to Adding: a pass adds /b entries and writers keep both.
// When all slots are Ready, queries switch to B. A second pass (Removing) deletes the /a entries, and the slots are
// Settled again.
//
// Container.defMu guards it.
type rebuild struct {
	running  bool   // its goroutine is running
	readable uint32 // the version that queries use
	from, to uint32 // both 0: there is no rebuild
	flipped  bool   // queries use to
	filling  bool   // some slots are bare: they get the entries of readable first
	failed   error  // error of the last attempt, nil while one runs

	moveTurn // of rebuilds and moves
	wake     chan struct{}
}

// slotRebuild is a slot's part of a rebuild. done may be read without the latch, which guards the other fields.
type slotRebuild struct {
	done  atomic.Int64 // items processed: each item is processed twice
	extra bool         // entries only of A were written since Adding began
	fresh *indexFlags  // flags of the entries of B, if all items were processed since Adding began
}

// note adds the flags of a commit's items to fresh.
func (r *slotRebuild) note(f *indexFlags) {
	if r.fresh != nil {
		r.fresh.add(f)
	}
}

// Bounds of one commit of a rebuild.
const (
	rebuildItems = 128
	rebuildOps   = 2048
	rebuildBytes = 1 << 20
)

// Redefine changes the container's definition with f. No rebuild of this process begins or ends while f runs. f gets
// the indexing policies that index entries follow. If f changes the policy, the index is rebuilt in the background. If
// the life of items changes, no process removes an item by an earlier definition when Redefine has returned, or writes
// over it as an expired one.
func (c *Container) Redefine(ctx context.Context, f func(catalog.InUse) (*catalog.Container, error)) (
	*catalog.Container, error) {
	was, def, err := c.redefine(ctx, f)
	if err == nil {
		err = c.followLog(c.st.work.Context())
	}
	if err == nil && c.st.others && !sameLife(was, def) {
		err = c.fence(ctx)
	}
	if err != nil {
		return nil, err
	}
	return def, nil
}

// sameLife reports whether two definitions end the life of items at the same time.
func sameLife(a, b *catalog.Container) bool {
	timed := func(k *catalog.Container) []catalog.Declared {
		return slices.DeleteFunc(slices.Clone(k.Declared), func(d catalog.Declared) bool { return d.After == nil })
	}
	return reflect.DeepEqual(a.DefaultTTL, b.DefaultTTL) && reflect.DeepEqual(timed(a), timed(b))
}

// redefine is Redefine without the logs and the fence. It also returns the definition before, as this process knew it.
func (c *Container) redefine(ctx context.Context, f func(catalog.InUse) (*catalog.Container, error)) (
	was, def *catalog.Container, err error) {
	var use catalog.InUse
	if c.st.others {
		if use, err = c.named(ctx); err != nil { // before defMu, which a look may take
			return nil, nil, err
		}
	}
	c.defMu.Lock()
	defer c.defMu.Unlock()
	was = c.def.Load()
	if !c.st.others {
		use = catalog.InUse{Versions: []uint32{c.rb.readable}, Since: was.IndexVersion + 1}
		if c.rb.to != 0 {
			use.Versions = append(use.Versions, c.rb.from, c.rb.to)
		}
	}
	if def, err = f(use); err == nil {
		err = c.follow(def)
	}
	return was, def, err
}

// update installs a newer definition. The logs of slots may not follow it yet: see followLog.
func (c *Container) update(ctx context.Context, def *catalog.Container) error {
	if err := c.defMu.LockUntil(ctx); err != nil {
		return err
	}
	defer c.defMu.Unlock()
	return c.follow(def)
}

// follow installs a newer definition and starts the rebuild that it needs. The caller holds defMu.
func (c *Container) follow(def *catalog.Container) error {
	old := c.def.Load()
	if old.Version >= def.Version {
		return nil
	}
	if old.IndexVersion != def.IndexVersion {
		pol, err := index.Compile(def.IndexingPolicy, uint64(def.Gen))
		if err != nil {
			return err
		}
		known := append(slices.Clone(*c.known.Load()), policyAt{def.IndexVersion, pol})
		if c.st.others { // this process may not know the versions in between
			if known, err = compilePolicies(def); err != nil {
				return err
			}
			known = known.with(c.known.Load().since(c.oldestPolicy(def)))
		}
		c.known.Store(&known)
	}
	set, err := compileDeclared(def)
	if err != nil {
		return err
	}
	c.declared.Store(set)
	c.def.Store(def) // last: a look with this definition goes on with the rest of it (asKnown)
	c.startRebuild()
	return nil
}

// startRebuild starts the rebuild if there is something to do and it isn't running. The caller holds defMu.
func (c *Container) startRebuild() {
	def := c.def.Load()
	if c.st.lim.ReadOnly || c.rb.running || !c.rb.filling && c.rb.to == 0 && c.rb.readable == def.IndexVersion &&
		len(def.Former) == 0 {
		return
	}
	what := "index rebuild of container " + c.Name()
	c.rb.running = c.st.work.Go(what, func() { c.runRebuild(c.st.work.Context(), what) })
}

// runRebuild rebuilds until the index follows the newest policy, the container is dropped or the store is closed. A
// panic counts as an error: the rebuild begins again after a pause.
func (c *Container) runRebuild(ctx context.Context, what string) {
	forgotten := false
	for {
		at, stored := c.stagedFor(ctx)
		c.awaitMoves(ctx)
		if stored {
			c.followStage(&at)
		}
		def := c.def.Load()
		if !c.rb.filling && c.rb.to == 0 && c.rb.readable != def.IndexVersion {
			c.rb.from, c.rb.to, c.rb.flipped = c.rb.readable, def.IndexVersion, false
		}
		j := rebuilder{pace: pace{c: c, ctx: ctx}, from: c.rb.from, to: c.rb.to, flipped: c.rb.flipped, at: at.version}
		if c.rb.filling {
			j.from, j.to = 0, c.rb.readable
		}
		ended := ctx.Err() != nil || c.dropped.Load()
		if ended || j.to == 0 && (forgotten || len(def.Former) == 0) {
			c.rb.running = false
			c.wake()
			c.defMu.Unlock()
			return
		}
		c.defMu.Unlock()
		if j.to == 0 {
			_ = c.st.cat.ForgetFormer(ctx, def.RID(), def.IndexVersion) // if it fails, the next open does it
			forgotten = true
			continue
		}
		forgotten = false
		switch err := c.st.work.Try(what, j.leased); {
		case status.Is(err, status.NotFound):
			c.dropped.Store(true)
		case errors.Is(err, errOtherStage):
			j.rest(sharedRetry)
		case err != nil:
			c.tried(err)
			j.rest(rebuildRetry)
			c.tried(nil)
		}
	}
}

// tried records the result of an attempt.
func (c *Container) tried(err error) {
	c.defMu.Lock()
	defer c.defMu.Unlock()
	c.rb.failed = err
	c.wake()
}

// wake wakes the goroutines that wait for the end of a rebuild or a move. The caller holds defMu.
func (c *Container) wake() {
	close(c.rb.wake)
	c.rb.wake = make(chan struct{})
}

// WaitIndex returns when the index follows the newest policy and no rebuild is running.
func (c *Container) WaitIndex(ctx context.Context) error {
	if c.st.others {
		return c.waitStage(ctx)
	}
	for {
		c.defMu.Lock()
		running, wake := c.rb.running, c.rb.wake
		c.defMu.Unlock()
		if err := c.Alive(); err != nil || !running {
			return err
		}
		select {
		case <-ctx.Done():
			return translate(ctx.Err())
		case <-wake:
		}
	}
}

// IndexProgress returns the completed part of an index rebuild in percent; 100 when no rebuild is needed.
func (c *Container) IndexProgress(ctx context.Context) int {
	if c.st.others {
		return c.stageProgress(ctx)
	}
	c.defMu.Lock()
	r, newest := c.rb, c.def.Load().IndexVersion
	c.defMu.Unlock()
	switch {
	case r.filling:
		n := c.filled()
		if r.readable != newest { // another rebuild follows
			n /= 3
		}
		return n
	case r.to == 0 && r.readable == newest:
		return 100
	case r.to == 0:
		return 0
	}
	var all, done int64
	for _, sl := range c.slotList() {
		n := 2 * (sl.items.Load() + 1) // an empty slot counts as work too
		all += n
		done += min(n, sl.rb.done.Load())
	}
	if r.to != newest { // another rebuild follows
		all *= 2
	}
	return int(min(99, 100*done/all))
}

// rebuilder runs one rebuild.
type rebuilder struct {
	pace
	from, to uint32
	flipped  bool
	a, b     *index.Policy
	at       uint64 // with a shared engine: the version of the catalog in which the rebuild was decided
}

func (j *rebuilder) run() error {
	known := *j.c.known.Load()
	j.a, j.b, j.begun = known.at(j.from), known.at(j.to), realTime.Now()
	if j.from == 0 {
		return j.fill()
	}
	for _, sl := range j.c.slotList() {
		sl.rb.done.Store(0)
		if j.flipped {
			sl.rb.done.Store(sl.items.Load() + 1)
		}
	}
	if !j.flipped {
		for _, sl := range j.c.slotList() {
			if err := j.add(sl); err != nil {
				return err
			}
		}
		if err := j.settle(); err != nil {
			return err
		}
		j.flip()
	}
	for _, sl := range j.c.slotList() {
		if err := j.remove(sl); err != nil {
			return err
		}
	}
	if err := j.settle(); err != nil {
		return err
	}
	j.end()
	return nil
}

// flip makes queries use the new policy: every slot has its entries.
func (j *rebuilder) flip() {
	c := j.c
	c.defMu.Lock()
	defer c.defMu.Unlock()
	c.rb.flipped, c.rb.readable = true, j.to
	if c.st.others {
		c.reads(j.to)
		return
	}
	c.pol.Store(j.b)
}

// end drops the previous policy: no slot has entries of it any more.
func (j *rebuilder) end() {
	c := j.c
	c.defMu.Lock()
	defer c.defMu.Unlock()
	c.rb.from, c.rb.to, c.rb.flipped = 0, 0, false
	c.wake()
	if c.st.others { // another process may be slower, or begin the next rebuild
		return
	}
	known := policies{}
	for _, p := range *c.known.Load() {
		if p.version >= j.to {
			known = append(known, p)
		}
	}
	c.known.Store(&known)
}

// add brings a slot to Ready: it has all entries of both policies.
func (j *rebuilder) add(sl *Slot) error {
	if j.c.st.others {
		return j.addShared(sl)
	}
	sl.mu.Lock()
	if h := sl.head; h.Next == 0 && h.Index == j.from {
		h.Next, h.Phase = j.to, Adding // every commit from now on stores this in its head
		if sl.facts.Load() == nil {
			sl.head = h
			sl.publish()
		} else if _, err := j.write(sl, &kv.Batch{}, h); err != nil { // without the facts that would become wrong
			sl.mu.Unlock()
			return err
		}
	}
	if sl.head.Phase != Adding { // an earlier process has completed it
		sl.rb.extra, sl.rb.fresh = true, nil
		sl.mu.Unlock()
		sl.rb.done.Store(sl.items.Load() + 1)
		return nil
	}
	sl.rb.extra, sl.rb.fresh = false, &indexFlags{}
	sl.mu.Unlock()
	return j.pass(sl, Adding)
}

// remove removes the entries that only the previous policy needs, and ends the slot's rebuild.
func (j *rebuilder) remove(sl *Slot) error {
	if j.c.st.others {
		return j.removeShared(sl)
	}
	sl.mu.Lock()
	switch {
	case sl.head.Phase == Settled:
		sl.mu.Unlock()
		sl.rb.done.Store(2 * (sl.items.Load() + 1))
		return nil
	case sl.rb.extra || sl.rb.fresh == nil:
		sl.head.Phase = Removing
		sl.publish()
		sl.mu.Unlock()
		return j.pass(sl, Removing)
	}
	defer sl.mu.Unlock()
	sl.rb.done.Add(sl.items.Load() + 1)
	_, err := j.write(sl, &kv.Batch{}, j.settled(sl, sl.head))
	return err
}

// settled returns the head of a slot whose rebuild is complete. h is the head without that.
func (j *rebuilder) settled(sl *Slot, h Head) Head {
	h.Index, h.Next, h.Phase, h.Stale = j.to, 0, Settled, false
	if f := sl.rb.fresh; f != nil {
		held := *f // the rebuild continues with its own copy
		h.flags = &held
	}
	return h
}

// pass processes all items of a slot, in commits of bounded size.
func (j *rebuilder) pass(sl *Slot, phase Phase) error {
	var after []byte
	for races := 0; ; {
		if err := j.pause(); err != nil {
			return err
		}
		ck := chunk{j: j, sl: sl, phase: phase, after: after}
		raced, err := ck.do(races > 3)
		if err != nil {
			return err
		}
		if raced {
			races++
			continue
		}
		sl.rb.done.Add(int64(ck.items))
		if ck.over {
			sl.rb.done.Add(1)
			return nil
		}
		races, after = 0, ck.after
	}
}

// write commits a batch with the slot's next head. pre are further preconditions; if one of them doesn't hold it fails.
// raced says that another process has written to the slot: nothing was written, and the caller may try again. The
// caller holds the latch.
func (j *rebuilder) write(sl *Slot, b *kv.Batch, h Head, pre ...kv.Precondition) (raced bool, err error) {
	known := sl.facts.Load().stay(b, sl, &h, j.a, j.b)
	head := h.append(nil)
	b.Put(sl.headKey[:], head)
	if h.Next == 0 {
		j.c.resets.Add(1)
	} else {
		sl.widen(&h)
	}
	all := append(sl.asRead(), pre...)
	cm, err := j.c.st.eng.Write(j.ctx, b, all)
	if at := new(kv.PreconditionError); errors.As(err, &at) && at.Index >= len(all)-len(pre) {
		return false, errOtherStage
	}
	if err != nil {
		raced, err := j.c.lost(sl, err)
		if raced && !j.c.st.others {
			err = translate(kv.ErrUnavailable)
		}
		return raced && err == nil, err
	}
	sl.head, sl.headBytes = h, head
	sl.facts.Store(known)
	sl.publish()
	j.wrote(cm)
	return false, nil
}

// chunk is one commit of a pass: the items after a key.
type chunk struct {
	j     *rebuilder
	sl    *Slot
	phase Phase
	after []byte // before do, the last item of the previous chunk; then its own last item
	items int
	over  bool // there are no more items

	suffix []byte // of the current item

	b     kv.Batch
	flags indexFlags // flags of the entries of B
	extra bool       // there are entries only of A
}

// do processes the chunk. The costly part runs without the latch, unless writers have interfered too often: then they
// wait for it, those of other processes too. raced says that writers have interfered, and nothing is written.
func (ck *chunk) do(latched bool) (raced bool, err error) {
	sl := ck.sl
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if latched && ck.j.c.st.others {
		defer ck.j.letGo(sl)
		err = ck.j.hold(sl)
	}
	seen := sl.head.LSN
	switch {
	case err != nil:
	case latched:
		err = ck.collect()
	default:
		err = sl.mu.without(ck.collect)
	}
	switch {
	case err != nil:
		return false, err
	case sl.head.Phase != ck.phase || sl.head.Next != ck.j.to: // an unknown outcome has undone it: begin again
		return false, translate(kv.ErrUnavailable)
	case sl.head.LSN != seen:
		return true, nil
	}
	return ck.commit()
}

func (ck *chunk) commit() (raced bool, err error) {
	sl := ck.sl
	if ck.phase == Adding {
		sl.rb.extra = sl.rb.extra || ck.extra
		sl.rb.note(&ck.flags)
	}
	h := sl.head
	h.addFlags(&ck.flags)
	h.Held = false
	switch {
	case ck.over && h.bare():
		h = ck.j.settled(sl, h)
	case ck.over && ck.phase == Adding:
		h.Phase = Ready
	case ck.over:
		h = ck.j.settled(sl, h)
	case ck.b.Len() == 0 && !sl.head.Held:
		return false, nil
	}
	return ck.j.write(sl, &ck.b, h)
}

// collect makes the batch for the next items.
func (ck *chunk) collect() error {
	snap, err := ck.j.c.st.eng.Snapshot(ck.j.ctx)
	if err != nil {
		return translate(err)
	}
	defer snap.Close()
	lo, hi := keys.KindBounds(ck.sl.key, keys.KindItem)
	if ck.after != nil {
		lo = append(bytes.Clone(ck.after), 0)
	}
	it, err := snap.Iter(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer it.Close()
	v := View{c: ck.j.c, snap: snap}
	read := 0
	for ok := it.First(); ok; ok = it.Next() {
		if ck.items >= rebuildItems || ck.b.Len() >= rebuildOps || read >= rebuildBytes {
			return nil
		}
		var item Item
		ck.suffix = it.Key()[keys.PrefixLen:]
		if _, err := v.Decode(&item, ck.suffix, it.Value()); err != nil {
			return err
		}
		ck.item(&item)
		ck.after = append(ck.after[:0:0], it.Key()...)
		ck.items++
		read += len(it.Value())
	}
	ck.over = true
	return translate(it.Err())
}

// item adds to the batch the change that the pass makes to one item's entries.
func (ck *chunk) item(it *Item) {
	a, b := collect(ck.j.a, it), collect(ck.j.b, it)
	both, extra := collectBoth(ck.j.a, ck.j.b, it)
	defer termsPool.Put(a)
	defer termsPool.Put(b)
	defer termsPool.Put(both)
	ck.extra = ck.extra || extra
	more := flagsOf(b, it.ident)
	ck.flags.add(&more)
	from, to := a, both
	if ck.phase == Removing {
		from, to = both, b
	}
	var key []byte
	if ck.j.from == 0 {
		key = keys.AppendNumber(key, ck.sl.key, it.Number)
		ck.b.Put(key, ck.suffix)
	}
	layout := ck.j.c.Entries()
	index.Diff(from, to, func(term []byte) {
		key = layout.Append(key[:0], ck.sl.key, term, it.Number, it.ident)
		ck.b.Delete(key)
	}, func(term []byte, flag byte) {
		key = layout.Append(key[:0], ck.sl.key, term, it.Number, it.ident)
		ck.b.Put(key, []byte{flag})
	})
}
