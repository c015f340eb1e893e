package journal

import (
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// trimShare is the part of the retention after which entries are removed again. Each removal leaves a mark in the
// engine for the removed range, so there should be few.
const trimShare = 8

// Trim removes entries that are too old or too many, and stops recording what nobody reads. The background calls it
// periodically. It reports whether it has removed anything.
func (j *Journal) Trim(ctx context.Context) (bool, error) {
	if j.shared {
		return j.trimShared(ctx)
	}
	if err := j.stateMu.Lock(ctx); err != nil {
		return false, kv.Status(err)
	}
	defer j.stateMu.Unlock()
	if j.stored == nil || j.set.ReadOnly {
		return false, nil
	}
	now := j.clk.Now()
	list, changed := j.idle(now)
	floor, err := j.beyond(ctx, now, len(list) == 0)
	if err != nil || floor <= j.floor.Load() && !changed {
		return false, err
	}
	floor = max(floor, j.floor.Load())
	var b kv.Batch
	b.Frees = true
	was := j.scopes.Load()
	if changed {
		j.show(&scopes{version: was.version + 1, list: list})
	}
	if _, err := j.writeState(ctx, &b, list, floor); err != nil {
		if changed {
			j.show(&scopes{version: was.version + 2, list: was.list})
		}
		return false, err
	}
	j.floor.Store(floor)
	j.trimAt = now.Add(j.set.Age / trimShare)
	lo, _ := keys.JournalBounds()
	return true, kv.Status(j.eng.DropRange(ctx, lo, keys.AppendJournal(nil, floor+1, 0)))
}

// Used returns about how many bytes the entries have that are kept at present.
func (j *Journal) Used(ctx context.Context) (used int64, err error) {
	err = j.fromFirst(ctx, func(_ kv.Iterator, first *Entry, total uint64) error {
		used = int64(max(total, first.total) - first.total) // without the first one
		return nil
	})
	return used, err
}

// fromFirst calls f with an iterator on the first entry that is kept, what that entry says, and the bytes of all
// entries that there ever were. Without entries f isn't called.
func (j *Journal) fromFirst(ctx context.Context, f func(it kv.Iterator, first *Entry, total uint64) error) error {
	j.mu.Lock()
	total := j.total
	j.mu.Unlock()
	snap, err := j.eng.Snapshot(ctx)
	if err != nil {
		return kv.Status(err)
	}
	defer snap.Close()
	_, hi := keys.JournalBounds()
	it, err := snap.Iter(keys.AppendJournal(nil, j.floor.Load()+1, 0), hi)
	if err != nil {
		return kv.Status(err)
	}
	defer it.Close()
	if !it.First() {
		return kv.Status(it.Err())
	}
	var first Entry
	if _, err := first.head(it.Value()); err != nil {
		return err
	}
	return f(it, &first, total)
}

// beyond returns the time up to which entries are too old or too many. With all that is everything.
func (j *Journal) beyond(ctx context.Context, now time.Time, all bool) (uint64, error) {
	mark, _ := j.settled()
	if all {
		return mark, nil
	}
	if last := time.Unix(int64(mark>>32), 0); j.shared && last.Before(now) {
		now = last // or a process whose clock is ahead would remove what others have just written
	}
	floor := uint64(0)
	if old := now.Add(-j.set.Age); old.Unix() > 0 && !now.Before(j.trimAt) {
		floor = min(Wall(old), mark)
	}
	limit := uint64(j.set.Bytes)
	err := j.fromFirst(ctx, func(it kv.Iterator, e *Entry, total uint64) (err error) {
		first, _, _ := keys.ParseJournal(it.Key())
		switch {
		case total-e.total > limit:
			// The entry that seven eighths of the limit still have.
			var last uint64
			last, err = within(it, first, mark, total-limit/trimShare*(trimShare-1))
			floor = max(floor, last)
		case first > floor: // there is nothing to remove
			floor = 0
		}
		return err
	})
	return floor, err
}

// within returns the time from first to mark of the first entry before which there were so many bytes of entries, by
// bisection.
func within(it kv.Iterator, first, mark, bytes uint64) (uint64, error) {
	var failed error
	n := sort.Search(int(mark-first), func(i int) bool {
		if failed != nil || !it.SeekGE(keys.AppendJournal(nil, first+uint64(i), 0)) {
			return true
		}
		var e Entry
		_, failed = e.head(it.Value())
		return e.total >= bytes
	})
	if failed == nil {
		failed = kv.Status(it.Err())
	}
	return min(first+uint64(n), mark), failed
}

// trimWait is the time between the commit of a floor and the removal of what is below it, in a store that several
// processes share: snapshots that don't show the floor may be read until then. It is twice the age at which long
// readers take another one.
const trimWait = 2 * time.Minute

// trimShared is Trim in a store that several processes share. All of them do it: a floor only rises, and what is below
// it is never used again. What nobody reads is left to the catalog (Idle).
func (j *Journal) trimShared(ctx context.Context) (bool, error) {
	if err := j.Reload(ctx); err != nil {
		return false, kv.Status(err)
	}
	if err := j.stateMu.Lock(ctx); err != nil {
		return false, kv.Status(err)
	}
	none := j.stored == nil || j.set.ReadOnly
	j.stateMu.Unlock()
	if none {
		return false, nil
	}
	if err := j.Gather(ctx); err != nil {
		return false, err
	}
	if err := j.stateMu.Lock(ctx); err != nil {
		return false, kv.Status(err)
	}
	defer j.stateMu.Unlock()
	raised, err := j.raise(ctx)
	if err != nil {
		return false, err
	}
	if floor := j.floor.Load(); j.dropTo == 0 && floor > j.dropped {
		j.dropTo, j.dropAt = floor, j.clk.Elapsed()+trimWait
	}
	if j.dropTo == 0 || j.clk.Elapsed() < j.dropAt {
		return raised, nil
	}
	lo, _ := keys.JournalBounds()
	if err := j.eng.DropRange(ctx, lo, keys.AppendJournal(nil, j.dropTo+1, 0)); err != nil {
		return raised, kv.Status(err)
	}
	j.dropped, j.dropTo = j.dropTo, 0
	return true, nil
}

// raise raises the floor, and tells other processes which scopes this one uses. The caller holds stateMu.
func (j *Journal) raise(ctx context.Context) (bool, error) {
	now := j.clk.Now()
	list, changed := slices.Clone(j.scopes.Load().list), false
	for i := range list {
		s := &list[i]
		if u := s.used.Load(); u > s.told.Load() && now.Unix()-s.told.Load() >= int64(j.set.Age/trimShare/time.Second) {
			s.count++
			s.told.Store(now.Unix())
			changed = true
		}
	}
	floor, err := j.beyond(ctx, now, len(list) == 0)
	if err != nil || floor <= j.floor.Load() && !changed {
		return false, err
	}
	var b kv.Batch
	b.Frees = true
	floor = max(floor, j.floor.Load())
	raised := floor > j.floor.Load()
	if _, err := j.writeState(ctx, &b, list, floor); err != nil {
		if errors.Is(err, kv.ErrConflict) { // the next call reads what another process has written
			err = nil
		}
		return false, err
	}
	if raised {
		j.trimAt = now.Add(j.set.Age / trimShare)
	}
	return raised, j.readState(j.stored)
}
