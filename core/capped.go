package core

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// A capped container keeps its newest items, in the order of creation: a write that makes it too large removes the
// oldest ones. Until it has done so the container may have more. It also tells a reader which items it may take in the
// order of their numbers: items get their numbers before they are visible, so a lower number may become visible later.
//
// Example: A gets the number 7 and B gets 8. B is visible first. A reader that has seen 6 takes nothing yet, because A
// is on its way. When A is visible it takes 7 and 8.
//
// In a store that several processes share, commits take the numbers (package store, inOrder). So a reader may take all
// that its snapshot shows.

// Capped are the limits of a capped container.
type Capped = catalog.Capped

// begin registers a write. The caller calls done when it is visible or has failed.
func (c *Container) begin() (done func()) {
	over := c.rt.BeginOrdered()
	if c.rt.Shared() {
		return over
	}
	return func() {
		over()
		if j := c.e.Journal(); j.Active() { // those who wait look again
			t := j.Begin(0, 0)
			t.Touch(c.Database(), c.ID())
			t.End(nil)
		}
	}
}

// Settled returns a counter: every item of a capped container with a lower one is visible, or never will be.
func (c *Container) Settled() uint64 { return c.rt.SettledNumber() }

// CounterOf returns the counter of an item: in a container, items that were created later have greater ones.
func CounterOf(it *Item) uint64 { return store.Counter(it.Number) }

// News tells a reader of a capped container when there may be more items.
type News interface {
	// News returns a mark. If news is false, a reader has seen everything that there is who has begun to read after he
	// had the mark after.
	News(after uint64) (mark uint64, news bool)
	// Notify has wake called, once or never, when there may be news after a mark. wake must not block, or call News.
	// stop ends that; nil: there may be news now.
	Notify(after uint64, wake func()) (stop func())
	// Leave ends the News.
	Leave()
}

// Changed returns the News of the container. The caller calls Leave.
func (c *Container) Changed() News {
	if c.rt.Shared() {
		return c.rt.Watch()
	}
	return c.e.Journal().Watch(journal.Namespace{DB: c.Database(), Coll: c.ID()})
}

// writeCapped is Write in a capped container.
func (c *Container) writeCapped(ctx context.Context, w *Write) (Result, error) {
	if n := int64(len(w.Doc)); n > c.def.Capped.Bytes {
		return Result{}, errCapped()
	}
	done := c.begin()
	res, err := c.rt.Write(ctx, w)
	done()
	if err == nil && !res.Kept && !res.Deleted {
		err = c.KeepNewest(ctx)
	}
	return res, err
}

// doMany is WriteMany without the limits of throughput.
func (c *Container) doMany(ctx context.Context, ws []Write, ordered bool) []Outcome {
	if c.def.Capped != nil {
		return c.writeManyCapped(ctx, ws, ordered)
	}
	return c.rt.WriteMany(ctx, ws, ordered)
}

// writeManyCapped is doMany in a capped container.
func (c *Container) writeManyCapped(ctx context.Context, ws []Write, ordered bool) []Outcome {
	for i := range ws {
		if int64(len(ws[i].Doc)) > c.def.Capped.Bytes { // one by one the others may succeed
			return c.writeEachCapped(ctx, ws, ordered)
		}
	}
	done := c.begin()
	out := c.rt.WriteMany(ctx, ws, ordered)
	done()
	if err := c.KeepNewest(ctx); err != nil {
		c.e.log.Warn("The oldest items of a capped container can't be removed; the next write tries it again",
			"database", c.Database(), "container", c.ID(), "error", err)
	}
	return out
}

func (c *Container) writeEachCapped(ctx context.Context, ws []Write, ordered bool) (out []Outcome) {
	for i := range ws {
		res, err := c.writeCapped(ctx, &ws[i])
		out = append(out, Outcome{Result: res, Err: err})
		if err != nil && ordered {
			break
		}
	}
	return out
}

func errCapped() error {
	return status.New(status.BadRequest, "object to insert exceeds cappedMaxSize")
}

// removedAtOnce is the largest number of items that are looked at in one query for the oldest.
const removedAtOnce = 256

// KeepNewest removes the oldest items while the container is too large. It never removes the only one. An API
// calls it when the limits were lowered.
func (c *Container) KeepNewest(ctx context.Context) error {
	o := c.rt.Ordered()
	for more := true; more && c.mayExceed(); {
		if err := o.Removing.LockUntil(ctx); err != nil {
			return err
		}
		var err error
		if more = c.mayExceed(); more {
			more, err = c.removeOldest(ctx)
		}
		o.Removing.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// mayExceed reports whether the container may be above its limits. Of one with several slots other processes may have
// written to one of which this process hasn't heard.
func (c *Container) mayExceed() bool {
	return c.rt.Shared() && len(c.rt.Slots().All()) > 1 || c.exceeds(c.rt.Items(), c.rt.Bytes())
}

// exceeds reports whether a number of items with so many bytes is above the limits of the container.
func (c *Container) exceeds(items, bytes int64) bool {
	lim := c.rt.Def().Capped
	return lim != nil && items > 1 && (lim.Items > 0 && items > lim.Items || bytes > lim.Bytes)
}

// oldest is an item that may have to be removed.
type oldest struct {
	Write
	bytes int64 // that the container counts for it
	each  int64 // those of them that aren't its document's
}

// removeOldest removes the oldest items as far as necessary. more says that it should be called again.
//
// Several processes may do so at once. All remove the oldest item first, and stop at one that is gone. So if an item is
// still there, none that is younger was removed since they were read, and the counts, which are read after that, say
// how many are too many.
//
// Example: the limit is 5, and A and B have inserted the items 6 and 7. A reads 1 to 7, and removes 1 and 2. B has read
// the same. 1 is gone, so B begins again, and finds that nothing is to be removed.
func (c *Container) removeOldest(ctx context.Context) (more bool, err error) {
	list, err := c.listOldest(ctx)
	if err != nil {
		return false, err
	}
	items, bytes, err := c.rt.Held(ctx)
	if err != nil {
		return false, err
	}
	var ws []Write
	for i := 0; i < len(list) && c.exceeds(items, bytes-items*list[i].each); i++ {
		ws = append(ws, list[i].Write)
		items, bytes = items-1, bytes-list[i].bytes
	}
	if len(ws) == 0 {
		return false, nil
	}
	out := c.rt.WriteMany(ctx, ws, true)
	if err = out[len(out)-1].Err; status.Is(err, status.NotFound) && status.From(err).Sub == 0 {
		err = nil
	}
	return true, err
}

// listOldest returns the oldest items, as deletions of these very items: one of their ids may be created again.
func (c *Container) listOldest(ctx context.Context) (list []oldest, err error) {
	rows, err := exec.Open(ctx, c.rt, &exec.Query{PlanHash: 1, Shown: exec.Oldest, Limit: removedAtOnce, NoFiles: true},
		c.e.bud, c.e.spill)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		it := rows.Item()
		number, each := it.Number, c.rt.ItemOverhead(it)
		pk := slices.Clone(it.PK())
		for i := range pk {
			pk[i] = pk[i].Clone()
		}
		list = append(list, oldest{bytes: each + int64(len(it.Doc)), each: each, Write: Write{Kind: Delete, PK: pk,
			ID: it.ID().Clone(), Check: func(old *Item) error {
				if old == nil || old.Number != number {
					return status.New(status.NotFound, "The item is another one.")
				}
				return nil
			}}})
	}
	return list, rows.Err()
}
