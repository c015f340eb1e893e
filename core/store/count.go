package store

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// A fact is made slot by slot while writers continue:
//
//  1. Under the latch: the fact is stored with counts of 0, and a snapshot is taken. From then on commits add their
//     part.
//  2. Without the latch: the entries of the path in the snapshot are counted.
//  3. Under the latch: the result is added, and the fact is exact.
//
// If a crash or an unknown outcome leaves a fact in step 2, it is counted again when a query needs it.
//
// In a store that several processes share, commits of others may come between the two halves of step 1, and the latch
// keeps none of them out of step 3. So the count has a number, which the fact has until it is exact: whoever begins
// another count, or drops the fact, takes the number away. The fact in the snapshot says what has been added before it,
// and that is taken off in step 3. Step 3 is tried again when another process was faster.
//
// Example: a path has 100 values that are cut in their entries. Step 1 stores a fact with Lossy 0 and takes a snapshot.
// During step 2 a writer adds 3 such values: the fact has Lossy 3. Step 2 counts 100 in the snapshot. Step 3 stores
// 103.

// counts holds the paths of a container that are being counted.
type counts struct {
	mu     sync.Mutex
	doing  map[uint64]chan struct{} // closed when the count has ended
	failed time.Time                // by the machine's clock
}

// countRetry is the time after a failed count before the container counts again.
const countRetry = 2 * time.Second

// Count makes every slot that doesn't know the fact of a path count its entries in the background. The channel is
// closed when all slots know the fact or the count has failed. It is nil if the slots can't count now; a query then
// does without the fact. Callers during a count wait for the same count. ctx is that of the decision, not of the count.
func (c *Container) Count(ctx context.Context, segs []string) <-chan struct{} {
	if len(segs) == 0 || c.st.lim.ReadOnly || !c.countable(ctx, segs[0]) {
		return nil
	}
	path, cs := c.Policy().PathID(segs), &c.counts
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if done := cs.doing[path]; done != nil {
		return done
	}
	if !cs.failed.IsZero() && realTime.Now().Sub(cs.failed) < countRetry {
		return nil
	}
	done := make(chan struct{})
	what := "count of a path of container " + c.Name()
	if !c.st.work.Go(what, func() {
		err := c.st.work.Try(what, func() error { return c.count(path, segs[0]) })
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if err != nil {
			cs.failed = realTime.Now()
		}
		delete(cs.doing, path)
		close(done)
	}) {
		return nil
	}
	if cs.doing == nil {
		cs.doing = map[uint64]chan struct{}{}
	}
	cs.doing[path] = done
	return done
}

// countable reports whether facts of paths that begin with a field can be counted now. They can't while an index
// rebuild changes their entries.
func (c *Container) countable(ctx context.Context, field string) bool {
	for _, sl := range c.slotList() {
		up := c.upkeepOf(ctx, sl)
		if up.lost || up.next != nil && !lasting(up.policy, up.next, field, sl.flags.Load().classes) {
			return false
		}
	}
	return true
}

// maxCounts is how often a slot is counted if its facts were reloaded during the count.
const maxCounts = 3

func (c *Container) count(path uint64, field string) error {
	ctx := c.st.work.Context()
	for _, sl := range c.slotList() {
		for n := 1; ; n++ {
			known, err := c.countSlot(ctx, sl, path, field)
			if err != nil {
				return err
			}
			if known {
				break
			}
			if n == maxCounts {
				return translate(kv.ErrUnavailable)
			}
		}
	}
	return nil
}

// counting is the count of a path in a slot.
type counting struct {
	c     *Container
	sl    *Slot
	f     *fact
	snap  kv.Snapshot
	items int64 // in the snapshot
	added Fact  // what the fact in the snapshot has: commits since the count began
}

// countSlot makes the fact of a path in a slot. known is false when the fact was lost in between.
func (c *Container) countSlot(ctx context.Context, sl *Slot, path uint64, field string) (known bool, err error) {
	n := counting{c: c, sl: sl}
	if known, err := n.begin(ctx, path, field); known || err != nil {
		return known, err
	}
	defer n.snap.Close()
	if c.st.others {
		if err := n.look(); err != nil {
			return false, err
		}
	}
	sums, err := c.countEntries(ctx, n.snap, sl, path)
	if err != nil {
		return false, err
	}
	return n.end(ctx, &sums)
}

// begin is step 1. It returns true when the fact is already exact.
func (n *counting) begin(ctx context.Context, path uint64, field string) (known bool, err error) {
	n.sl.mu.Lock()
	defer n.sl.mu.Unlock()
	for tries := 1; ; tries++ {
		known, raced, err := n.put(ctx, path, field)
		if known || err != nil {
			return known, err
		}
		if !raced {
			break
		}
		if tries == maxFactTries {
			return false, translate(kv.ErrUnavailable)
		}
	}
	n.items = n.sl.head.Items
	n.snap, err = n.c.st.eng.Snapshot(ctx) // if it fails the fact stays in step 2 until a query needs it
	return false, translate(err)
}

// maxFactTries is how often a commit of a fact is tried while other processes write to the slot. Each takes two round
// trips or three.
const maxFactTries = 100

// put stores the fact with counts of 0, unless it is exact. raced says that another process has written to the slot.
func (n *counting) put(ctx context.Context, path uint64, field string) (known, raced bool, err error) {
	c, sl := n.c, n.sl
	if err := c.Alive(); err != nil {
		return false, false, err
	}
	if err := c.certain(sl); err != nil {
		return false, false, err
	}
	if err := c.newestHead(ctx, sl); err != nil {
		return false, false, err
	}
	if !c.Slots().has(sl) { // the query finds other slots, and asks again
		return true, false, nil
	}
	before := sl.facts.Load()
	if f := before.get(path); f != nil && f.exact {
		f.asked.Store(true)
		return true, false, nil
	}
	h := sl.head
	up := c.upkeepOf(ctx, sl)
	if up.lost || up.next != nil && !lasting(up.policy, up.next, field, h.stored().classes) {
		return false, false, status.Wrap(status.Unavailable, kv.ErrUnavailable,
			"The index of the path is being rebuilt.")
	}
	var b kv.Batch
	if before != nil && len(before.list) >= maxFacts && before.get(path) == nil {
		idle := before.idle()
		before = before.without(&b, sl, &h, func(f *fact) bool { return f == idle })
	}
	n.f = &fact{path: path, field: field}
	if c.st.others {
		n.f.count = uint64(c.st.clk.Int63()) | 1
	}
	n.f.asked.Store(true)
	b.Put(keys.AppendFact(nil, sl.key, path), n.f.stored())
	if raced, err := c.writeFacts(ctx, sl, &b, h); raced || err != nil {
		return false, raced, err
	}
	sl.facts.Store(before.with(n.f))
	return false, false, nil
}

// look reads what the snapshot of a shared store shows. It fails if another count has begun.
func (n *counting) look() error {
	var v kv.Values
	names := [][]byte{n.sl.headKey[:], keys.AppendFact(nil, n.sl.key, n.f.path)}
	if err := n.snap.GetMany(&v, names); err != nil {
		return translate(err)
	}
	var h Head
	var f fact
	if v.At(0) == nil || v.At(1) == nil {
		return translate(kv.ErrUnavailable)
	}
	if err := cmp.Or(h.decode(v.At(0)), f.decode(v.At(1))); err != nil {
		return err
	}
	if f.count != n.f.count {
		return translate(kv.ErrUnavailable)
	}
	n.items, n.added = h.Items, f.Fact
	return nil
}

// countEntries is step 2.
func (c *Container) countEntries(ctx context.Context, snap kv.Snapshot, sl *Slot, path uint64) (index.Counts, error) {
	var sums index.Counts
	lo := keys.AppendIndexPath(nil, sl.key, path)
	n := 0
	err := each(snap, lo, keys.After(lo), func(key, val []byte) error {
		if n++; n&1023 == 0 {
			if err := c.Alive(); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return translate(err)
			}
		}
		if len(key) == len(lo) || len(val) == 0 {
			return status.New(status.Corruption, "malformed index entry")
		}
		sums.Add(val[0], key[len(lo)], 1)
		return nil
	})
	return sums, err
}

// end is step 3.
func (n *counting) end(ctx context.Context, sums *index.Counts) (known bool, err error) {
	sl := n.sl
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for range maxFactTries {
		if err := n.c.newestHead(ctx, sl); err != nil {
			return false, err
		}
		f := sl.facts.Load().get(n.f.path)
		if f == nil || f != n.f && (f.count != n.f.count || f.count == 0) {
			return f != nil && f.exact, nil
		}
		next := &fact{Fact: f.after(n.items, sums).without(n.added), path: f.path, field: f.field, exact: true}
		next.asked.Store(true)
		var b kv.Batch
		b.Put(keys.AppendFact(nil, sl.key, f.path), next.stored())
		raced, err := n.c.writeFacts(ctx, sl, &b, sl.head)
		if err != nil {
			return false, err
		}
		if !raced {
			sl.facts.Store(sl.facts.Load().with(next))
			return true, nil
		}
	}
	return false, translate(kv.ErrUnavailable)
}

// writeFacts commits only facts, with the head h and its next number of facts. raced says that another process has
// written to the slot: nothing was written. The caller holds the latch.
func (c *Container) writeFacts(ctx context.Context, sl *Slot, b *kv.Batch, h Head) (raced bool, err error) {
	h.Facts++
	head := h.append(nil)
	b.Put(sl.headKey[:], head)
	_, err = c.st.eng.Write(ctx, b, []kv.Precondition{{Key: sl.headKey[:], Expect: kv.Equal, Value: sl.headBytes}})
	if err != nil {
		raced, err := c.lost(sl, err)
		if raced && !c.st.others {
			err = translate(kv.ErrUnavailable)
		}
		return raced && err == nil, err
	}
	sl.head, sl.headBytes = h, head
	return false, nil
}
