package feed

import (
	"context"

	"github.com/orrerydb/orrery/core/store"
)

// With a shared engine each slot counts its own LSNs: the LSN of a commit is the one after that of the head that it
// replaces. So no commit of a slot can become visible below the LSN of the slot's head, and the head in the view's
// snapshot is the settled mark of the slot. A physical partition has one slot there. Where it has several, because the
// store was made by a single process or because of the settings, they are read in turn, as partitions are.
//
// Example: slot A has LSN 40 in the view, and slot B has 7. A page that reads both to their ends has the position (A
// 40, B 7).

// sharedPage is readPage with a shared engine.
func sharedPage(ctx context.Context, c *store.Container, sc Scope, pos Position, most int, log bool) (p Page,
	err error) {
	err = store.Again(func() error {
		p, err = sharedPageOnce(ctx, c, sc, pos, most, log)
		return err
	})
	return p, err
}

func sharedPageOnce(ctx context.Context, c *store.Container, sc Scope, pos Position, most int, log bool) (Page, error) {
	r, err := newSharedRead(ctx, c, sc, pos)
	if err != nil {
		return Page{}, err
	}
	defer r.view.Close()
	r.most, r.log = max(most, 1), log
	err = r.inTurn()
	r.page.Next = r.next()
	return r.page, err
}

// sharedNow is Now with a shared engine. Everything that a view shows is durable.
func sharedNow(ctx context.Context, c *store.Container, sc Scope) (Position, error) {
	var r *read
	err := store.Again(func() (err error) {
		r, err = newSharedRead(ctx, c, sc, Start())
		return err
	})
	if err != nil {
		return Position{}, err
	}
	defer r.view.Close()
	for i := range r.parts {
		for k := range r.parts[i].slots {
			r.parts[i].slots[k].seen = r.parts[i].mark
		}
	}
	return r.next(), nil
}

// newSharedRead opens a view, and makes a part of each slot of the scope. The caller closes the view.
func newSharedRead(ctx context.Context, c *store.Container, sc Scope, pos Position) (*read, error) {
	if err := c.Alive(); err != nil {
		return nil, err
	}
	if rid := c.Def().RID(); pos.rid != rid && pos.rid != [8]byte{} {
		return nil, errPosition()
	}
	parts, err := sc.parts(c, c.Slots())
	if err != nil {
		return nil, err
	}
	var lo, hi []byte // of the scope, in any version of the slot map
	if n := len(parts); n > 0 {
		last := parts[n-1].slots
		lo, hi = parts[0].slots[0].slot.Min(), last[len(last)-1].slot.Max()
	}
	view, err := c.ViewIn(ctx, lo, hi)
	if err != nil {
		return nil, err
	}
	r := &read{ctx: ctx, c: c, sc: &sc, pos: pos, slots: view.Version(), view: view}
	if err := r.sharedParts(); err != nil {
		view.Close()
		return nil, err
	}
	return r, nil
}

func (r *read) sharedParts() error {
	parts, err := r.sc.parts(r.c, r.slots)
	if err != nil {
		return err
	}
	for _, p := range parts {
		for k := range p.slots {
			one := part{slots: p.slots[k : k+1 : k+1]}
			h, err := r.view.Head(r.view.Of(p.slots[k].slot))
			if err != nil {
				return err
			}
			one.mark = h.LSN
			r.parts = append(r.parts, one)
		}
	}
	r.pos.resolve(r.slots.Map())
	r.begin()
	for i := range r.parts {
		for k := range r.parts[i].slots {
			if r.parts[i].slots[k].seen > max(r.parts[i].mark, r.c.BaseLSN()) {
				return errPosition() // the position is from an earlier or another container
			}
		}
	}
	return nil
}
