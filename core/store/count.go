package store

import (
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
// does without the fact. Callers during a count wait for the same count.
func (c *Container) Count(segs []string) <-chan struct{} {
	if len(segs) == 0 || c.st.lim.ReadOnly || !c.countable(segs[0]) {
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
func (c *Container) countable(field string) bool {
	for _, sl := range c.slotList() {
		if up := c.upkeepOf(sl); up.next != nil && !lasting(up.policy, up.next, field, sl.flags.Load().classes) {
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

// countSlot makes the fact of a path in a slot. known is false when the fact was lost in between.
func (c *Container) countSlot(ctx context.Context, sl *Slot, path uint64, field string) (known bool, err error) {
	f, snap, items, err := c.beginCount(ctx, sl, path, field)
	if err != nil || f == nil {
		return err == nil, err
	}
	var sums index.Counts
	func() {
		defer snap.Close()
		sums, err = c.countEntries(ctx, snap, sl, path)
	}()
	if err != nil {
		return false, err
	}
	return c.endCount(ctx, sl, f, items, &sums)
}

// beginCount is step 1. It returns the number of items in the snapshot. It returns no fact when the fact is already
// exact.
func (c *Container) beginCount(ctx context.Context, sl *Slot, path uint64, field string) (
	*fact, kv.Snapshot, int64, error,
) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if err := c.Alive(); err != nil {
		return nil, nil, 0, err
	}
	if err := c.certain(sl); err != nil {
		return nil, nil, 0, err
	}
	if err := c.newestHead(ctx, sl); err != nil {
		return nil, nil, 0, err
	}
	if !c.Slots().has(sl) { // the query finds other slots, and asks again
		return nil, nil, 0, nil
	}
	before := sl.facts.Load()
	if f := before.get(path); f != nil && f.exact {
		f.asked.Store(true)
		return nil, nil, 0, nil
	}
	h := sl.head
	if up := c.upkeepOf(sl); up.next != nil && !lasting(up.policy, up.next, field, h.stored().classes) {
		return nil, nil, 0, status.Wrap(status.Unavailable, kv.ErrUnavailable,
			"The index of the path is being rebuilt.")
	}
	var b kv.Batch
	if before != nil && len(before.list) >= maxFacts && before.get(path) == nil {
		idle := before.idle()
		before = before.without(&b, sl, &h, func(f *fact) bool { return f == idle })
	}
	f := &fact{path: path, field: field}
	f.asked.Store(true)
	b.Put(keys.AppendFact(nil, sl.key, path), f.stored())
	if err := c.writeFacts(ctx, sl, &b, h); err != nil {
		return nil, nil, 0, err
	}
	sl.facts.Store(before.with(f))
	snap, err := c.st.eng.Snapshot(ctx)
	if err != nil { // the fact stays in step 2 until a query needs it
		return nil, nil, 0, translate(err)
	}
	return f, snap, h.Items, nil
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

// endCount is step 3.
func (c *Container) endCount(ctx context.Context, sl *Slot, f *fact, items int64, sums *index.Counts) (bool, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.facts.Load().get(f.path) != f {
		return false, nil
	}
	was := f.Fact
	f.Fact, f.exact = f.after(items, sums), true
	var b kv.Batch
	b.Put(keys.AppendFact(nil, sl.key, f.path), f.stored())
	if err := c.writeFacts(ctx, sl, &b, sl.head); err != nil {
		f.Fact, f.exact = was, false
		return false, err
	}
	return true, nil
}

// writeFacts commits only facts, with the head h and its next number of facts. The caller holds the latch.
func (c *Container) writeFacts(ctx context.Context, sl *Slot, b *kv.Batch, h Head) error {
	h.Facts++
	head := h.append(nil)
	b.Put(sl.headKey[:], head)
	_, err := c.st.eng.Write(ctx, b, []kv.Precondition{{Key: sl.headKey[:], Expect: kv.Equal, Value: sl.headBytes}})
	if err != nil {
		if raced, err := c.lost(sl, err); !raced {
			return err
		}
		return translate(kv.ErrUnavailable)
	}
	sl.head, sl.headBytes = h, head
	return nil
}
