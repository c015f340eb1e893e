// Package feed reads the change feed: the latest version of every item in the order of its last write, or all versions
// and deletions from a container's log.
//
// A slot has exactly one feed entry for each live item, by LSN. The feed of a physical partition is the merge of its
// slots by LSN, up to the settled mark: no commit at or below it can still become visible. So the position in a
// physical partition is one number for all of its slots: "everything up to this LSN". A wider feed reads its partitions
// in turn, and its position has a number for each.
//
// Example: slot A has entries 3 and 9, slot B has 4 and 7, and the commit with LSN 8 isn't visible yet. The mark is 7,
// and a page from the start has 3, 4 and 7. The position is 7. When 8 is visible, the next page has 8 and then 9.
package feed

import (
	"bytes"
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// Page is a part of the feed. No page ends inside a commit.
type Page struct {
	Items   []*store.Item
	Changes []*store.LogEntry // instead of items, in a page of ReadLog
	Next    Position
	More    bool // there may be more now, even after a page without items

	bytes int // of the items' documents
	work  int // feed entries that gave no item
}

// Bounds of a page in addition to the requested number of items.
const (
	maxBytes = 4 << 20 // of documents
	maxWork  = 10_000  // feed entries that give no item
)

// full reports whether a page of at most most items takes no further commit.
func (p *Page) full(most int) bool { return len(p.Items)+len(p.Changes) >= most || p.bytes >= maxBytes }

// add appends an item.
func (p *Page) add(it *store.Item) { p.Items, p.bytes = append(p.Items, it), p.bytes+len(it.Doc) }

// Read returns up to most items of a scope that were written after a position, and the next position. The items of a
// physical partition are in LSN order. There are fewer items if they are large, and there may be more because a commit
// is never split. A page that has read too many entries outside of its scope ends with the items it has, perhaps none,
// and with More set. Everything that it returns or passes is durable.
func Read(ctx context.Context, c *store.Container, sc Scope, pos Position, most int) (Page, error) {
	return readPage(ctx, c, sc, pos, most, false)
}

func readPage(ctx context.Context, c *store.Container, sc Scope, pos Position, most int, log bool) (Page, error) {
	if c.Shared() {
		return sharedPage(ctx, c, sc, pos, most, log)
	}
	r, err := newRead(ctx, c, sc, pos)
	if err != nil {
		return Page{}, err
	}
	r.most, r.log = max(most, 1), log
	if r.behind() {
		if r.view, err = c.View(ctx); err != nil { // the view holds everything up to the marks
			return Page{}, err
		}
		defer r.view.Close()
		if r.view.Version() != r.slots { // the marks belong to other slots
			return readPage(ctx, c, sc, pos, most, log)
		}
		err = r.inTurn()
	}
	r.page.Next = r.next()
	return r.page, err
}

// Now returns the position from which a reader gets every commit into the scope that is not durable yet. It may also
// get some that became durable just before.
func Now(ctx context.Context, c *store.Container, sc Scope) (Position, error) {
	if c.Shared() {
		return sharedNow(ctx, c, sc)
	}
	r, err := newRead(ctx, c, sc, Start())
	if err != nil {
		return Position{}, err
	}
	for i := range r.parts {
		for k := range r.parts[i].slots {
			r.parts[i].slots[k].seen = r.durable
		}
	}
	return r.next(), nil
}

// read is the state of one call of Read.
type read struct {
	ctx   context.Context
	c     *store.Container
	sc    *Scope
	pos   Position
	slots *store.Slots // the version of the slot map with which the parts were made
	parts []part

	// The settled marks of all slots of the scope. All physical partitions use one LSN scale, so one pair of marks is
	// enough. With a shared engine they are those of the part that is read: see sharedPage.
	mark, durable int64

	turn int  // the part to read first
	log  bool // the log is read, not the feed
	view *store.View
	most int
	page Page
}

func newRead(ctx context.Context, c *store.Container, sc Scope, pos Position) (*read, error) {
	if err := c.Alive(); err != nil {
		return nil, err
	}
	if rid := c.Def().RID(); pos.rid != rid && pos.rid != [8]byte{} {
		return nil, errPosition()
	}
	slots := c.Slots()
	parts, err := sc.parts(c, slots)
	if err != nil {
		return nil, err
	}
	pos.resolve(slots.Map())
	if pos.greatest() > c.GivenLSN() && pos.greatest() > c.ReservedLSN() {
		return nil, errPosition() // the position is from an earlier or another container
	}
	r := &read{ctx: ctx, c: c, sc: &sc, pos: pos, slots: slots, parts: parts}
	if len(parts) == 0 {
		return r, nil
	}
	r.mark, r.durable = c.Settled(r.scope())
	r.begin()
	return r, nil
}

// begin sets how far each piece was read, and the part to read first.
func (r *read) begin() {
	for i := range r.parts {
		sl := r.pos.cut(r.parts[i].slots)
		r.parts[i].slots = sl
		if bytes.Compare(sl[0].slot.Min(), r.pos.turn) <= 0 {
			r.turn = i
		}
	}
}

// scope returns the slots of the scope.
func (r *read) scope() (out []*store.Slot) {
	for i := range r.parts {
		for k := range r.parts[i].slots {
			out = append(out, r.parts[i].slots[k].slot)
		}
	}
	return out
}

// behind reports whether there may be something to read.
func (r *read) behind() bool {
	return slices.ContainsFunc(r.parts, func(p part) bool {
		return slices.ContainsFunc(p.slots, func(s piece) bool { return s.seen < r.mark })
	})
}

// inTurn reads the parts in turn, beginning with the part of the position. The next page begins with the part after the
// one in which this page ends. So a part that is written to all the time doesn't delay the others.
func (r *read) inTurn() error {
	first := r.turn
	for i := range r.parts {
		at := (first + i) % len(r.parts)
		if r.page.full(r.most) || r.page.work >= maxWork {
			r.page.More, r.turn = true, at
			return nil
		}
		more, err := r.part(&r.parts[at])
		if err != nil {
			return err
		}
		if more {
			r.page.More, r.turn = true, (at+1)%len(r.parts)
		}
	}
	return nil
}

// next returns the position after what was read. It is an LSN for one physical partition, and for a whole container
// that was read to its end.
func (r *read) next() Position {
	if len(r.parts) == 0 {
		return r.pos
	}
	var p Position
	for i := range r.parts {
		for k := range r.parts[i].slots {
			p.add(r.parts[i].slots[k].begin(), r.parts[i].slots[k].seen)
		}
	}
	first, last := r.parts[0].slots[0], r.parts[len(r.parts)-1].slots
	end := last[len(last)-1].slot.Max()
	all := len(first.slot.Min()) == 0 && end == nil
	if (len(r.parts) == 1 || all) && r.level() {
		return After(first.seen)
	}
	if end != nil {
		p.add(end, 0)
	}
	p.wide, p.rid, p.turn = true, r.c.Def().RID(), r.parts[r.turn].slots[0].slot.Min()
	return p
}

// level reports whether the position is the same LSN in all slots.
func (r *read) level() bool {
	lsn := r.parts[0].slots[0].seen
	return !slices.ContainsFunc(r.parts, func(p part) bool {
		return slices.ContainsFunc(p.slots, func(s piece) bool { return s.seen != lsn })
	})
}

// part reads one physical partition. more says that it has more to read.
func (r *read) part(p *part) (more bool, err error) {
	if r.c.Shared() {
		r.mark = p.mark
	}
	m := merge{read: r, part: p}
	defer m.close()
	if err := m.open(); err != nil {
		return false, err
	}
	end, more, err := m.run()
	if err != nil {
		return false, err
	}
	for i := range p.slots {
		p.slots[i].seen = max(p.slots[i].seen, end)
	}
	return more, nil
}

// take adds the item with a suffix of a slot. If the item has expired or is too old, it only counts as work.
func (r *read) take(slot *store.ViewSlot, suffix []byte) error {
	item := &store.Item{}
	found, err := r.view.FetchSuffix(item, slot, suffix, &store.Mem{})
	return r.taken(item, found, err)
}

// taken does the same with an item that was already read.
func (r *read) taken(item *store.Item, found bool, err error) error {
	if err == nil && found && item.TS() >= r.sc.Since {
		r.page.add(item)
	} else {
		r.page.work++
	}
	return err
}

// gone returns an error when the reader has disconnected.
func (r *read) gone() error {
	if err := r.ctx.Err(); err != nil {
		return status.Wrap(status.Timeout, err, "The request took too long.")
	}
	return nil
}
