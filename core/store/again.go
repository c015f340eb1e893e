package store

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
)

// A writer of a shared engine reads, waits for the latch, and commits. If others of its process have committed while it
// waited, what it has read is too old: a commit that presumes it would have to read all preconditions, and meanwhile
// another process is faster. So it looks again when it has the latch, in a new snapshot, and commits from that.
//
// Example: A has read the head with LSN 7 and item "x", and waits for the latch. B, in the same process, commits LSN 8.
// A looks again: "x" is the same, and the head has LSN 9, by another process. A commits LSN 10 with the timestamp of
// this look, three round trips after it.

// again is such a look.
type again struct {
	snap  kv.Snapshot
	basis []byte    // the slot's stored head in it
	later bool      // it shows a later catalog than the one that the container follows
	vals  kv.Values // the version of the catalog, the head, and the other keys behind it
}

// lookAgain reads the head of a slot, and further keys, and takes the head over if it is newer. The caller holds the
// latch, and closes the result.
func (c *Container) lookAgain(ctx context.Context, sl *Slot, names [][]byte) (*again, error) {
	snap, err := c.st.eng.Snapshot(ctx)
	if err != nil {
		return nil, translate(err)
	}
	a := &again{snap: snap}
	if err = snap.GetMany(&a.vals, append([][]byte{catalog.VersionKey(), sl.headKey[:]}, names...)); err == nil {
		a.basis = bytes.Clone(a.vals.At(1))
		a.later, err = c.later(a.vals.At(0))
	}
	if err == nil && !a.later {
		err = c.adopt(ctx, sl, a.basis)
	}
	if err != nil {
		_ = snap.Close()
		return nil, translate(err)
	}
	return a, nil
}

// at returns the value of the i-th further key; nil when it is absent.
func (a *again) at(i int) []byte { return a.vals.At(2 + i) }

// newest reports whether the head of the look is the one of the slot, and its catalog the one that the container
// follows. Otherwise the writer begins again. If the head is another one, lookAgain has waited for the end of a copy or
// of a part of a rebuild. The caller holds the latch.
func (a *again) newest(sl *Slot) bool { return !a.later && bytes.Equal(a.basis, sl.headBytes) }

// unchanged reports whether an item is the one that was read before; nil = absent.
func (a *again) unchanged(c *Container, id *identity, old *Item, i int) (bool, error) {
	now := change{id: *id}
	if err := c.decodeOld(&now, a.at(i)); err != nil {
		return false, err
	}
	return sameVersion(old, now.old), nil
}

// changesAgain looks again at the items of changes in one slot, and reports whether they are unchanged. Then the
// changes are based on this look. They are not current any more if the look shows that other slots have replaced this
// one, or another phase of a rebuild: a commit would go into a slot that nobody reads.
func (c *Container) changesAgain(ctx context.Context, sl *Slot, chs []change) (a *again, same bool, err error) {
	names := make([][]byte, 0, 2*len(chs))
	for i := range chs {
		names = append(names, chs[i].id.itemKey(), chs[i].id.logicalKey())
	}
	if a, err = c.lookAgain(ctx, sl, names); err != nil {
		return nil, false, err
	}
	if !a.newest(sl) || !c.allCurrent(chs) {
		return a, false, nil
	}
	for i := range chs {
		ch := &chs[i]
		if same, err := a.unchanged(c, &ch.id, ch.old, 2*i); err != nil || !same {
			return a, false, err
		}
		if ch.basis = a.basis; ch.logicalRead {
			ch.logical, ch.logicalAt = a.at(2*i+1), sl.head.LSN
		}
	}
	return a, true, nil
}
