package core

import (
	"context"

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

// Capped are the limits of a capped container.
type Capped = catalog.Capped

// begin registers a write. The caller calls done when it is visible or has failed.
func (c *Container) begin() (done func()) {
	over := c.rt.BeginOrdered()
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

// Changed returns the topic of the container. The caller calls Leave.
func (c *Container) Changed() *journal.Topic {
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
	for c.tooLarge(0) {
		o.Removing.Lock()
		more, err := c.removeOldest(ctx)
		o.Removing.Unlock()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// tooLarge reports whether the container is above its limits. each is the number of bytes that an item takes beyond
// its document.
func (c *Container) tooLarge(each int64) bool {
	n := c.rt.Items()
	lim := c.rt.Def().Capped
	return lim != nil && n > 1 && (lim.Items > 0 && n > lim.Items || c.rt.Bytes()-n*each > lim.Bytes)
}

// removeOldest removes the oldest items as far as necessary. more says that it should be called again.
func (c *Container) removeOldest(ctx context.Context) (more bool, err error) {
	rows, err := exec.Open(ctx, c.rt, &exec.Query{PlanHash: 1, Shown: exec.Oldest, Limit: removedAtOnce, NoFiles: true},
		c.e.bud, c.e.spill)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		it := rows.Item()
		if !c.tooLarge(c.rt.ItemOverhead(it)) {
			return false, nil
		}
		_, err := c.rt.Write(ctx, &Write{Kind: Delete, PK: it.PK(), ID: it.ID()})
		if err != nil && !status.Is(err, status.NotFound) {
			return false, err
		}
	}
	return n > 0, rows.Err()
}
