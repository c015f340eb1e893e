package store

import "context"

// retime gives the items of a commit the time of the latest one, or of their slot's last commit if that is later. If
// the clock was set back, they get the clock's time and an epoch begins. If the second of an item changes, its terms
// and the batch are made again. again says that the batch is made again in any case.
//
// Items of one LSN must not have different times: a search by time looks at the first one (feed).
func (d *draft) retime(ctx context.Context, again bool) error {
	for i := range d.parts {
		p := &d.parts[i]
		last := p.sl.head.Ticks
		if p.fell = 0; p.early(last) { // the clock was set back, or an item has waited long
			if now := d.c.now(); now < last-clockTolerance {
				p.fell, last = last, now
			}
		}
		for k := range p.chs {
			if it := p.chs[k].item; it != nil && p.fell == 0 {
				last = max(last, it.Ticks)
			}
		}
		for k := range p.chs {
			ch := &p.chs[k]
			if ch.item == nil {
				continue
			}
			before := ch.item.TS()
			if ch.item.Ticks = last; ch.item.TS() != before {
				ch.collect(p.sl.c.upkeepOf(ctx, p.sl))
				again = true
			}
		}
	}
	if !again {
		return nil
	}
	d.ready.Discard()
	return d.prepare()
}

// early reports whether an item's time is far below the time of the slot's last commit.
func (p *part) early(last int64) bool {
	for k := range p.chs {
		if it := p.chs[k].item; it != nil && it.Ticks < last-clockTolerance {
			return true
		}
	}
	return false
}

// outlive moves the time of the slot's last commit behind those of the items that the commit deletes. So no two
// versions under a key have the same time, not even if the first one is deleted before the second is created, and a
// time can be an etag. Times of an earlier epoch can be greater, and change nothing.
//
// Example: a create of "a" takes the time 5, and waits for the latch. Meanwhile "a" is created by another client with
// the time 7, and deleted. The first create gets the time 8: with 7, a replace of the other one would replace it.
func (p *part) outlive() {
	for _, list := range [][]change{p.chs, p.evicted} {
		for i := range list {
			if ch := &list[i]; ch.item == nil && ch.old != nil && ch.old.Ticks == p.h.Ticks {
				p.h.Ticks++
			}
		}
	}
}
