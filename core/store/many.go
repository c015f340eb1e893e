package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/orrerydb/orrery/core/kv"
)

// Outcome is the result of one write of WriteMany.
type Outcome struct {
	Result Result
	Err    error
}

// Bounds of one commit of WriteMany. The latches are held while the engine applies it.
const (
	manyWrites = 64
	manyBytes  = 512 << 10
)

// maxWaits is the number of commits for which WriteMany has not waited yet. Each holds its batch.
const maxWaits = 1024

// WriteMany does independent writes and waits once until all are durable. With ordered it stops at the first error: the
// outcomes end there, and no later write is done. If that error is UnknownOutcome, the next writes may have been done:
// they may have shared the commit.
//
// Writes into one slot share a commit of the engine. With ordered, writes into several slots do too, as long as they
// are adjacent. Each write has its own LSN, and within a slot LSNs are in the order of the call. The effect of each
// write is the same as alone: two writes of one item are in different commits, and if a commit of several writes fails,
// its writes are done one by one.
//
// Example: writes a1, b1, a2, a1' where a and b are slots and a1' writes the item of a1 again. Unordered, slot a
// commits a1 and a2 together, slot b commits b1, and a second run commits a1'.
func (c *Container) WriteMany(ctx context.Context, ws []Write, ordered bool) []Outcome {
	m := many{c: c, ctx: ctx, ws: ws, ordered: ordered, out: make([]Outcome, 0, len(ws))}
	for at := 0; at < len(ws); {
		n := 1
		if !c.single() {
			n = m.run(at)
		}
		m.do(at, n)
		if ordered && m.failed() {
			break
		}
		if at += n; len(m.waits) >= maxWaits {
			m.settle()
		}
	}
	m.settle()
	return m.out
}

// many is one call of WriteMany.
type many struct {
	c       *Container
	ctx     context.Context
	ws      []Write
	ordered bool
	out     []Outcome
	waits   []manyWait
	shown   []manyShown
	ids     []identity // of the current run
	errs    []error    // the error of a write without identity
}

// manyWait is a commit that is not known to be durable yet.
type manyWait struct {
	pending
	at    []int // its writes
	slots []slotLSN
}

// manyShown is the state of a slot on which the outcome of a write without effect depends.
type manyShown struct {
	pending
	at int
}

// slotLSN is the LSN that a commit gives to a slot.
type slotLSN struct {
	sl  *Slot
	lsn int64
}

// failed reports whether the last outcome is an error.
func (m *many) failed() bool { return m.out[len(m.out)-1].Err != nil }

// settle waits for all commits, and for the states on which outcomes without a commit depend. It begins with the last
// commit, which covers the earlier ones.
func (m *many) settle() {
	for k := len(m.waits) - 1; k >= 0; k-- {
		w := &m.waits[k]
		err := w.wait(m.ctx)
		for _, at := range w.at {
			if err != nil {
				m.out[at].Err = err
			}
		}
		for i := range w.slots {
			if err == nil {
				w.slots[i].sl.settled(w.slots[i].lsn)
			}
		}
	}
	m.waits = m.waits[:0]
	for k := len(m.shown) - 1; k >= 0; k-- {
		s := &m.shown[k]
		if s.at >= len(m.out) { // after the first error
			continue
		}
		o := &m.out[s.at]
		if err := s.wait(m.ctx); err != nil {
			o.Err = err
		} else if o.Result.Kept {
			o.Result.LSN = s.slot.durable.Load()
		}
	}
	m.shown = m.shown[:0]
}

// run returns how many writes from at on may be committed together: no item twice, and within the bounds. It fills
// m.ids.
func (m *many) run(at int) (n int) {
	m.ids, m.errs = m.ids[:0], m.errs[:0]
	size := 0
	for ; n < manyWrites && at+n < len(m.ws) && size < manyBytes; n++ {
		w := &m.ws[at+n]
		id, err := m.c.identify(w)
		if err == nil && slices.ContainsFunc(m.ids, func(o identity) bool { return bytes.Equal(o.suffix, id.suffix) }) {
			return n
		}
		m.ids, m.errs = append(m.ids, id), append(m.errs, err)
		size += len(w.Doc)
	}
	return n
}

// do does the writes [at, at+n) and appends their outcomes; with ordered up to the first error.
func (m *many) do(at, n int) {
	if n == 1 {
		m.single(at)
		return
	}
	chs := make([]change, 0, n) // those that write something
	from := make([]int, 0, n)
	shown := len(m.shown)
	m.out = m.out[:at]
	stop := at + n
	seen, err := m.c.seeTogether(m.ctx, m.ids[:n], m.ws[at:at+n])
	defer seen.close()
	for i := at; i < stop; i++ {
		var o Outcome
		if o.Err = cmp.Or(m.errs[i-at], err); o.Err == nil {
			o.Err = m.ids[i-at].slot.turns.wait(m.ctx, m.ids[i-at].tuple)
		}
		if o.Err == nil {
			ch := change{id: m.ids[i-at], order: i}
			kept := false
			if kept, o.Err = seen.ready(m.ctx, m.c, &m.ws[i], &ch, &o.Result, i-at); o.Err == nil && !kept {
				chs, from = append(chs, ch), append(from, i)
			} else {
				m.shown = append(m.shown, manyShown{ch.seenBy(ch.id.slot), i})
				ch.release()
			}
		}
		if m.out = append(m.out, o); o.Err != nil && m.ordered {
			stop = i + 1
		}
	}
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	if slices.ContainsFunc(m.ids[:n], func(id identity) bool { return id.slot != nil && m.c.left(&id) }) {
		// What was read may be old or removed, so nothing that depends on it counts.
		m.shown = m.shown[:shown]
		m.alone(at, n)
		return
	}
	if m.ordered {
		if !m.commit(chs, from, seen) {
			m.again(from)
		}
		if i := slices.IndexFunc(m.out[at:], func(o Outcome) bool { return o.Err != nil }); i >= 0 {
			m.out = m.out[:at+i+1]
		}
		return
	}
	bySlot(chs, from)
	for i := 0; i < len(chs); {
		j := i + 1
		for j < len(chs) && chs[j].id.slot == chs[i].id.slot {
			j++
		}
		if !m.commit(chs[i:j], from[i:j], seen) {
			m.again(from[i:j])
		}
		i = j
	}
}

// alone does the writes [at, at+n) one by one; with ordered up to the first error.
func (m *many) alone(at, n int) {
	from := make([]int, n)
	for i := range from {
		from[i] = at + i
	}
	m.out = append(m.out[:at], make([]Outcome, n)...)
	m.again(from)
}

// single does one write alone and appends its outcome.
func (m *many) single(at int) {
	m.out = append(m.out[:at], Outcome{})
	m.one(at)
}

// one does one write alone.
func (m *many) one(at int) {
	res, p, err := m.c.apply(m.ctx, &m.ws[at])
	m.out[at] = Outcome{res, err}
	switch {
	case p.commit != nil:
		m.waits = append(m.waits, manyWait{pending: p, at: []int{at}})
	case p.slot != nil:
		m.shown = append(m.shown, manyShown{p, at})
	}
}

// again does the writes of a failed commit one by one. With ordered, writes after the first error have no outcome.
func (m *many) again(from []int) {
	slices.Sort(from)
	for _, i := range from {
		if m.one(i); m.ordered && m.out[i].Err != nil {
			m.out = m.out[:i+1]
			return
		}
	}
}

// bySlot sorts changes by slot and keeps their order within a slot.
func bySlot(chs []change, from []int) {
	order := make([]int, len(chs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := chs[a].id.slot.key, chs[b].id.slot.key
		return cmp.Or(cmp.Compare(x.Gen, y.Gen), cmp.Compare(x.ID, y.ID))
	})
	c, f := slices.Clone(chs), slices.Clone(from)
	for i, o := range order {
		chs[i], from[i] = c[o], f[o]
	}
}

// commit makes changes visible in one commit of the engine. It returns false when nothing was written and each change
// must be tried alone. seen is what the changes were decided on, with a shared engine. The batch is made before the
// latches of all slots are taken, in their order.
func (m *many) commit(chs []change, from []int, seen *seenTogether) bool {
	if len(chs) < 2 {
		return len(chs) == 0
	}
	bySlot(chs, from)
	d, err := m.c.plan(chs)
	if err != nil {
		return false
	}
	unlock, err := d.lock(m.ctx)
	if err != nil {
		d.free()
		return false
	}
	defer unlock()
	if d.adopt(m.ctx) != nil || !d.unchanged(m.ctx) {
		d.free()
		return false
	}
	if seen != nil {
		d.base(seen.look.snap)
		err = seen.knownTo(d, m.c, seen.look)
	}
	if err != nil || d.fill(m.ctx, true) != nil {
		d.free()
		return false
	}
	slots := make([]slotLSN, len(d.parts))
	for i := range d.parts {
		slots[i] = slotLSN{d.parts[i].sl, d.parts[i].h.LSN}
	}
	p, err := d.write(m.ctx)
	d.done()
	if errors.Is(err, kv.ErrTooLarge) || errors.Is(err, kv.ErrFull) { // one by one some may succeed: deletes
		return false
	}
	if err != nil {
		return m.lost(slots, from, err)
	}
	for i := range chs {
		chs[i].result(&m.out[from[i]].Result)
		m.out[from[i]].Result.Time = p.time
	}
	m.waits = append(m.waits, manyWait{p, slices.Clone(from), slots})
	return true
}

// lock takes the latches of a draft's slots, in their order. It returns the function that releases them.
func (d *draft) lock(ctx context.Context) (unlock func(), err error) {
	slots := make([]*Slot, 0, len(d.parts))
	unlock = func() {
		for _, sl := range slots {
			sl.taken()
			sl.mu.Unlock()
		}
	}
	for i := range d.parts {
		sl := d.parts[i].sl
		if err := sl.mu.LockFor(ctx); err != nil {
			unlock()
			return nil, err
		}
		slots = append(slots, sl)
	}
	return unlock, nil
}

// adopt takes over the heads that were read with the items of a draft. The caller holds the latches.
func (d *draft) adopt(ctx context.Context) error {
	for i := range d.parts {
		for k := range d.parts[i].chs {
			if err := d.parts[i].sl.c.adopt(ctx, d.parts[i].sl, d.parts[i].chs[k].basis); err != nil {
				return err
			}
		}
	}
	return nil
}

// unchanged reports whether all items of a draft are still the ones that were read. The caller holds the latches.
func (d *draft) unchanged(ctx context.Context) bool {
	for i := range d.parts {
		if d.c.st.others {
			if same, err := d.c.allUnchanged(ctx, d.parts[i].sl, d.parts[i].chs); err != nil || !same {
				return false
			}
			continue
		}
		for k := range d.parts[i].chs {
			if same, err := d.c.unchanged(ctx, d.parts[i].sl, &d.parts[i].chs[k]); err != nil || !same {
				return false
			}
		}
	}
	return true
}

// lost finds out the state of the slots after the engine has refused a commit. It returns false when nothing was
// written.
func (m *many) lost(slots []slotLSN, from []int, cause error) bool {
	var fatal error
	for i := range slots {
		if _, err := m.c.lost(slots[i].sl, cause); err != nil {
			fatal = err
		}
	}
	for _, i := range from {
		m.out[i].Err = fatal
	}
	return fatal != nil
}
