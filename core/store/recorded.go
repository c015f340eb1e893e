package store

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/journal"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

// Commits of a container whose changes are recorded (core/journal) have entries of the journal in their batch. The
// ticket is taken under the latches, so the entries of an item are in the order of its versions.

// recorded reports whether the container's changes are recorded now.
func (c *Container) recorded() bool {
	if !c.st.jou.Active() {
		return false
	}
	d := c.def.Load()
	return c.st.jou.Records(d.Database, d.ID)
}

// roomForJournal is about the number of bytes that a part's changes add to the journal.
func (p *part) roomForJournal() (n int) {
	for i := range p.chs {
		ch := &p.chs[i]
		n += 192 + 2*len(ch.id.ident) + itemSize(ch.old) + itemSize(ch.item) + len(ch.note)
	}
	return n
}

// writeRecorded is write of a draft whose changes somebody may want to know.
func (d *draft) writeRecorded(ctx context.Context) (pending, error) {
	news, err := d.news()
	if err != nil {
		recycle(d.b)
		d.ready.Discard()
		d.ready = nil
		return pending{}, err
	}
	size := 0
	for i := range news {
		size += news[i].Room()
	}
	t := d.ticket(len(news), size)
	defer t.End(nil) // of a panic too
	for i := range d.parts {
		if c := d.parts[i].sl.c; i == 0 || c != d.parts[i-1].sl.c {
			def := c.def.Load()
			t.Touch(def.Database, def.ID)
		}
	}
	for i := range news {
		t.Put(d.late, &news[i])
	}
	p, err := d.writeNow(ctx)
	if err != nil {
		return p, err
	}
	if t.End(p.commit); len(news) > 0 {
		p.time = t.Time()
	}
	return p, nil
}

// recorded reports whether the journal has a part's changes.
func (p *part) recorded() bool {
	if p.sl.c.st.others {
		return p.h.Recorded != 0
	}
	def := p.sl.c.def.Load()
	return p.sl.c.st.jou.Records(def.Database, def.ID)
}

// pend adds what waits for the journal of a shared store to a draft, and its time to the heads.
func (d *draft) pend() error {
	after := uint64(0)
	for i := range d.parts {
		after = max(after, d.parts[i].h.Recorded)
	}
	if after == 0 {
		return nil
	}
	news, err := d.news()
	if err != nil || len(news) == 0 {
		return err
	}
	size := 0
	for i := range news {
		size += news[i].Room()
	}
	first, last := d.c.st.jou.Take(after, len(news), size, d.together)
	d.c.st.jou.PutPending(d.late, news, first, last, d.together)
	for i := range d.parts {
		if p := &d.parts[i]; p.h.Recorded != 0 {
			p.h.Recorded = last
		}
	}
	d.time = last
	return nil
}

// ticket returns the ticket of a commit with n entries of a size.
func (d *draft) ticket(n, size int) *journal.Ticket {
	if d.together {
		return d.c.st.jou.BeginTogether(size)
	}
	return d.c.st.jou.Begin(n, size)
}

// news returns the entries of a draft's changes in containers whose changes are recorded, in the order of the request's
// writes. Expired items that the commit removes come before the items that take their ids and unique values.
func (d *draft) news() (out []journal.Entry, err error) {
	var order []int
	add := func(ch *change, op journal.Op, expired bool) {
		if err != nil {
			return
		}
		c := ch.id.slot.c
		def := c.def.Load()
		e := journal.Entry{Op: op, Expired: expired, Images: def.Images, DB: def.Database, Coll: def.ID,
			RID: def.RID(), Note: ch.note}
		if e.Key, err = c.keyDoc(ch.id.ident); err != nil {
			return
		}
		if op != journal.Delete {
			e.Current = ch.item.Doc
		}
		if op == journal.Update || def.Images && op != journal.Create {
			e.Previous = ch.old.Doc
		}
		out, order = append(out, e), append(order, ch.order)
	}
	for i := range d.parts {
		p := &d.parts[i]
		if !p.recorded() {
			continue
		}
		for k := range p.evicted {
			p.evicted[k].order = -1
			add(&p.evicted[k], journal.Delete, true)
		}
		for k := range p.chs {
			ch := &p.chs[k]
			if ch.expired {
				add(ch, journal.Delete, true)
			}
			switch {
			case ch.item == nil && ch.expired:
			case ch.item == nil:
				add(ch, journal.Delete, false)
			case ch.live() == nil:
				add(ch, journal.Create, false)
			case ch.partial:
				add(ch, journal.Update, false)
			default:
				add(ch, journal.Replace, false)
			}
		}
	}
	if !slices.IsSorted(order) {
		sort.Stable(&byOrder{out, order})
	}
	return out, err
}

// byOrder sorts entries by numbers.
type byOrder struct {
	entries []journal.Entry
	order   []int
}

func (b *byOrder) Len() int           { return len(b.order) }
func (b *byOrder) Less(i, j int) bool { return b.order[i] < b.order[j] }
func (b *byOrder) Swap(i, j int) {
	b.entries[i], b.entries[j] = b.entries[j], b.entries[i]
	b.order[i], b.order[j] = b.order[j], b.order[i]
}

// keyDoc returns the values of the partition key and the id in an identity as a BSON document. Paths have dots between
// their names. A value that is absent in the item is absent here.
func (c *Container) keyDoc(ident []byte) ([]byte, error) {
	at, b := bson.Begin(make([]byte, 0, 64))
	for _, segs := range c.keyPaths() {
		v, rest, err := keys.DecodeExact(ident)
		if err != nil {
			return nil, err
		}
		if name := strings.Join(segs, "."); name != "_id" && v.IsDefined() {
			b = value.AppendElement(b, name, v)
		}
		ident = rest
	}
	id, _, err := keys.DecodeExact(ident)
	if err != nil {
		return nil, err
	}
	return bson.End(value.AppendElement(b, "_id", id), at), nil
}

// Quiet waits until every commit into a namespace that was decided before the call is visible or has failed.
func (s *Store) Quiet(ctx context.Context, ns journal.Namespace) error {
	if err := s.cat.Quiet(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	var all []*Container
	for _, h := range s.open {
		if c := h.get(); c != nil {
			all = append(all, c)
		}
	}
	s.mu.RUnlock()
	for _, c := range all {
		d := c.def.Load()
		if ns.DB != "" && d.Database != ns.DB || ns.Coll != "" && d.ID != ns.Coll {
			continue
		}
		for seen := (*Slots)(nil); seen != c.Slots(); { // slots may be replaced meanwhile
			seen = c.Slots()
			for _, sl := range seen.all {
				if err := sl.mu.LockFor(ctx); err != nil {
					return err
				}
				sl.mu.Unlock()
			}
		}
	}
	return nil
}

// FollowJournal makes the heads of all slots of a container say whether the journal has its commits, in a store that
// several processes share. When it returns, every commit that is made later does what the heads say, at whichever
// process it was decided.
func (c *Container) FollowJournal(ctx context.Context) error {
	if err := c.keepUp(ctx); err != nil {
		return translate(err)
	}
	def := c.def.Load()
	return c.journalTo(ctx, c.st.jou.Records(def.Database, def.ID))
}

// BeginJournal makes the heads of all slots say that the journal has their commits. What isn't recorded is dropped
// later.
func (c *Container) BeginJournal(ctx context.Context) error { return c.journalTo(ctx, true) }

// journalTo makes the heads of all slots say whether the journal has their commits.
func (c *Container) journalTo(ctx context.Context, on bool) error {
	for seen := (*Slots)(nil); seen != c.Slots(); { // slots may be replaced meanwhile
		seen = c.Slots()
		for _, sl := range seen.all {
			if err := c.journalSlot(ctx, sl, on); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Container) journalSlot(ctx context.Context, sl *Slot, on bool) error {
	for range maxRaces {
		if err := sl.mu.LockFor(ctx); err != nil {
			return err
		}
		raced, err := c.journalLatched(ctx, sl, on)
		sl.mu.Unlock()
		if err != nil || !raced {
			return err
		}
	}
	return errRaces()
}

// journalLatched is one attempt. The caller holds the latch.
func (c *Container) journalLatched(ctx context.Context, sl *Slot, on bool) (raced bool, err error) {
	if err := c.newestHead(ctx, sl); err != nil {
		return false, translate(err)
	}
	if on == (sl.head.Recorded != 0) || !c.Slots().has(sl) {
		return false, nil
	}
	h := sl.head
	if h.Writer = c.st.writer; on {
		h.Recorded = max(c.st.jou.Clock.Last(), 1)
	} else {
		h.Recorded = 0
	}
	head := h.append(nil)
	b := kv.Batch{Frees: true}
	b.Put(sl.headKey[:], head)
	if _, err := c.st.eng.Write(ctx, &b, sl.asRead()); err != nil {
		return c.lost(sl, err)
	}
	sl.head, sl.headBytes = h, head
	sl.publish()
	return false, nil
}
