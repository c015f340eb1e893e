package store

import (
	"context"
	"slices"
	"sync"
)

// Ordered tells a reader which items it may take in the order of their numbers. Items get their numbers before they
// are visible, so an item with a lower number may become visible later. Only writes that are registered count. With a
// shared engine there is nothing to register: see inOrder.
//
// Example: A gets the number 7 and B gets 8. B is visible first. Settled is 7 until A is visible, and then 9.
type Ordered struct {
	// Removing is held by whoever removes the oldest items of the container.
	Removing latch

	mu sync.Mutex
	on []uint64 // of each write on its way: its item's counter is at least this
}

// Ordered returns the container's Ordered.
func (c *Container) Ordered() *Ordered { return &c.ordered }

// BeginOrdered registers a write. The caller calls done when it is visible or has failed.
func (c *Container) BeginOrdered() (done func()) {
	if c.st.others {
		return c.news.tell
	}
	o := &c.ordered
	o.mu.Lock()
	defer o.mu.Unlock()
	n := c.counter.numbered() + 1
	o.on = append(o.on, n)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		i := slices.Index(o.on, n)
		o.on = slices.Delete(o.on, i, i+1)
	}
}

// SettledNumber returns a counter: every item with a lower one is visible, or never will be.
func (c *Container) SettledNumber() uint64 {
	if c.st.others {
		return allVisible
	}
	o := &c.ordered
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.on) > 0 {
		return slices.Min(o.on)
	}
	return c.counter.numbered() + 1
}

// Held returns the number of items of the container and their bytes. With a shared engine both are of one snapshot.
func (c *Container) Held(ctx context.Context) (items, bytes int64, err error) {
	if !c.st.others {
		return c.Items(), c.Bytes(), nil
	}
	v, err := c.View(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer v.Close()
	for i := range v.slots {
		items, bytes = items+v.slots[i].head.Items, bytes+v.slots[i].head.Bytes
	}
	return items, bytes, nil
}
