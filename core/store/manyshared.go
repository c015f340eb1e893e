package store

import (
	"bytes"
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/kv"
)

// seenTogether is what several writes of one WriteMany are decided on, read with one look. With an engine that isn't
// shared it is nil: each write reads its own item.
type seenTogether struct {
	look  *look
	slots []*Slot
	// of each write, the place of its item among the keys that were read; its logical partition and its record follow
	first []int
	seenCounter
}

// seeTogether looks at the items of writes, and at the heads of their slots and logical partitions. Writes without a
// slot are left out.
func (c *Container) seeTogether(ctx context.Context, ids []identity, ws []Write) (*seenTogether, error) {
	if !c.st.others {
		return nil, nil
	}
	s := &seenTogether{first: make([]int, len(ids))}
	var err error
	s.look, err = c.look(ctx, func(of *Slots) (_ []*Slot, more [][]byte) {
		s.slots = s.slots[:0]
		for i := range ids {
			id := &ids[i]
			if id.slot == nil {
				continue
			}
			id.slot, id.version = of.at(id.place), of.m.MapVersion
			if !slices.Contains(s.slots, id.slot) {
				s.slots = append(s.slots, id.slot)
			}
			s.first[i] = len(more)
			more = append(more, id.itemKey(), id.logicalKey())
			if with := ws[i].With; with != nil {
				more = append(more, with.Name.key())
			}
		}
		return s.slots, s.wantCounter(c, more)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *seenTogether) close() {
	if s != nil {
		s.look.close()
	}
}

// ready is Container.ready for the i-th write.
func (s *seenTogether) ready(ctx context.Context, c *Container, w *Write, ch *change, res *Result, i int) (
	kept bool, err error) {
	if s == nil {
		return c.ready(ctx, w, ch, res)
	}
	res.Slot = ch.id.slot
	ch.basis = bytes.Clone(s.look.head(slices.Index(s.slots, ch.id.slot)))
	var h Head
	if err := h.decode(ch.basis); err != nil {
		return false, err
	}
	ch.seen = h.LSN
	ch.logical, ch.logicalAt = bytes.Clone(s.look.more(s.first[i]+1)), h.LSN
	ch.logicalRead = !c.def.Load().KeyIsID()
	if err := c.decodeOld(ch, bytes.Clone(s.look.more(s.first[i]))); err != nil {
		return false, err
	}
	if w.With != nil {
		if err := ch.attach(w.With, s.look.more(s.first[i]+2)); err != nil {
			return false, err
		}
	}
	return c.choose(ctx, w, ch, res)
}

// base bases the write of a draft on the snapshot in which the first change of each part has read the slot's head, if
// these are still the heads. The caller holds the latches of its slots.
func (d *draft) base(snap kv.Snapshot) {
	for i := range d.parts {
		if p := &d.parts[i]; p.chs[0].basis == nil || !bytes.Equal(p.chs[0].basis, p.sl.headBytes) {
			return
		}
	}
	d.on = snap
}
