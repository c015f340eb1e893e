package store

import (
	"bytes"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/status"
)

// survey finds out at load which policies the slots' index entries follow. Slots of a store of format 1 or 2, and slots
// for which it can't be known, are marked as bare. With a shared engine they are refused: other processes would read
// the slots meanwhile.
func (c *Container) survey() error {
	def, known := c.def.Load(), *c.known.Load()
	r, ok := between(c.heads(), known)
	if _, bare := c.wanted(); c.st.others && (bare || !ok) {
		return status.New(status.Unavailable, "The index of container %q is not known. A process that has the store "+
			"for itself must make it.", def.ID)
	}
	if to, bare := c.wanted(); bare {
		r = rebuild{filling: true, readable: to}
		ok = known.at(to) != nil
		for _, sl := range c.slotList() {
			h := &sl.head
			ok = ok && (old(sl.headBytes) || h.bare() && h.Next == to && h.Phase == Adding || h.Index == to &&
				h.Next == 0)
		}
	}
	if !ok {
		r = rebuild{filling: true, readable: def.IndexVersion}
	}
	for _, sl := range c.slotList() {
		if !ok || r.filling && old(sl.headBytes) {
			sl.head.renew(r.readable)
			sl.unread = sl.headBytes
		}
	}
	if r.filling {
		known = append(policies{{0, index.Nothing(uint64(def.Gen))}}, known...)
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

// wanted returns the policy version that a container's slots will have while some are bare.
func (c *Container) wanted() (to uint32, bare bool) {
	for _, sl := range c.slotList() {
		switch h := &sl.head; {
		case old(sl.headBytes):
			bare = true
		case h.bare():
			bare, to = true, h.Next
		case to == 0:
			to = h.Index
		}
	}
	if to == 0 {
		to = c.def.Load().IndexVersion
	}
	return to, bare
}

// between finds out from the heads of all slots which rebuild is in progress. ok is false when slots contradict each
// other, or follow an unknown policy.
func between(heads []*Head, known policies) (r rebuild, ok bool) {
	for _, h := range heads {
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
