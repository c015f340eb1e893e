package store

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core/index"
)

// survey finds out at load which policies the slots' index entries follow. Slots of a store of format 1 or 2, and slots
// for which it can't be known, are marked as bare. With a shared engine that is stored at once, because the other
// processes decide by the stored heads.
func (c *Container) survey(ctx context.Context) error {
	def, known := c.def.Load(), *c.known.Load()
	known = known.with(policies{{0, index.Nothing(uint64(def.Gen))}})
	to, renewed := c.wanted(), 0
	renew := func(sl *Slot, to uint32) {
		sl.head.renew(to)
		sl.unread = sl.headBytes
		renewed++
	}
	for _, sl := range c.slotList() {
		if old(sl.headBytes) {
			renew(sl, to)
		}
	}
	r, ok := between(c.heads(), known)
	if !ok {
		r = rebuild{filling: true, readable: def.IndexVersion}
		for _, sl := range c.slotList() {
			renew(sl, r.readable)
		}
	}
	if renewed > 0 && c.st.others && !c.st.lim.ReadOnly {
		if err := c.storeRenewed(ctx); err != nil {
			return err
		}
	}
	if r.filling || c.st.others { // another process may find slots that are bare
		c.known.Store(&known)
	}
	r.wake = make(chan struct{})
	c.rb = r
	c.pol.Store(known.at(r.readable))
	return nil
}

// heads returns the heads that the slots have in memory.
func (c *Container) heads() (out []*Head) {
	for _, sl := range c.slotList() {
		out = append(out, &sl.head)
	}
	return out
}

// wanted returns the policy version that a container's slots of an older format will have.
func (c *Container) wanted() (to uint32) {
	for _, sl := range c.slotList() {
		switch h := &sl.head; {
		case old(sl.headBytes):
		case h.bare():
			return h.Next
		case to == 0:
			to = h.Index
		}
	}
	if to == 0 {
		to = c.def.Load().IndexVersion
	}
	return to
}

// between finds out from the heads of all slots which rebuild is in progress, or that bare slots are being filled. ok
// is false when slots contradict each other, or follow an unknown policy.
func between(heads []*Head, known policies) (r rebuild, ok bool) {
	for _, h := range heads {
		if h.bare() {
			return filling(heads, known)
		}
		if h.Next != 0 {
			r.from, r.to = h.Index, h.Next
			r.flipped = r.flipped || h.Phase == Removing
		}
	}
	ok = true
	for _, h := range heads {
		switch {
		case r.to == 0:
			ok = ok && h.Index == heads[0].Index
		case h.Next == 0 && h.Index == r.to:
			r.flipped = true
		case h.Index != r.from || h.Next != 0 && h.Next != r.to:
			ok = false
		}
	}
	switch {
	case r.to == 0:
		r.readable = heads[0].Index
	case r.flipped:
		r.readable = r.to
	default:
		r.readable = r.from
	}
	ok = ok && known.at(r.readable) != nil && (r.to == 0 || known.at(r.from) != nil && known.at(r.to) != nil)
	return r, ok
}

// filling is between for heads of which some are bare: all slots will have the version that these name.
func filling(heads []*Head, known policies) (r rebuild, ok bool) {
	r.filling = true
	for _, h := range heads {
		if h.bare() {
			r.readable = h.Next
		}
	}
	ok = r.readable != 0 && known.at(r.readable) != nil
	for _, h := range heads {
		ok = ok && (h.bare() && h.Next == r.readable && h.Phase == Adding || h.Index == r.readable && h.Next == 0)
	}
	return r, ok
}

// readHead reads the stored head of a slot. If the slot has replaced that head in memory, it returns the replacement.
func (s *Slot) readHead(h *Head, b []byte) error {
	if err := h.decode(b); err != nil {
		return err
	}
	if s.unread != nil && bytes.Equal(b, s.unread) {
		h.renew(s.head.Next)
	}
	return nil
}
