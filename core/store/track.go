package store

import (
	"context"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// maxTrackScan is how many items a slot may have for Track to count a path in it: the count runs under the latch.
const maxTrackScan = 300_000

// Track makes every slot count the items that have a value at a path, from now on and exactly. It does nothing where a slot
// has too many items or counts enough paths already.
func (c *Container) Track(ctx context.Context, path uint64) error {
	for _, sl := range c.slots {
		if err := c.trackSlot(ctx, sl, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *Container) trackSlot(ctx context.Context, sl *slot, path uint64) error {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if len(sl.head.Tracked) >= maxTracked || sl.head.Items > maxTrackScan {
		return nil
	}
	for _, t := range sl.head.Tracked {
		if t.Path == path {
			return nil
		}
	}
	snap := c.st.eng.Snapshot()
	defer snap.Close()
	lo := keys.AppendIndexPath(nil, sl.key, path)
	t := Tracked{Path: path}
	err := each(snap, lo, keys.After(lo), func(_, val []byte) error {
		if len(val) > 0 && val[0]&index.FlagElement == 0 {
			t.Count++
		}
		return nil
	})
	if err != nil {
		return err
	}
	h := sl.head
	h.Tracked = append(h.Tracked[:len(h.Tracked):len(h.Tracked)], t)
	head := h.append(nil)
	var b kv.Batch
	b.Put(sl.headKey, head)
	_, err = c.st.eng.Write(ctx, &b, []kv.Precondition{{Key: sl.headKey, Expect: kv.Equal, Value: sl.headBytes}})
	if err != nil {
		_, err = c.lost(sl, err)
		return err
	}
	sl.head, sl.headBytes = h, head
	return nil
}

// Complete reports whether the index entries of a path name every item of a slot in this view, and whether the slot counts
// the path at all.
func (v *View) Complete(slot int, path uint64) (complete, tracked bool, err error) {
	h, err := v.Head(slot)
	if err != nil {
		return false, false, err
	}
	for _, t := range h.Tracked {
		if t.Path == path {
			return t.Count == h.Items, true, nil
		}
	}
	return h.Items == 0, h.Items == 0, nil
}
