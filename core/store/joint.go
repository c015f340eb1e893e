package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// With a shared engine a commit takes several round trips, and a slot makes one after the other. So the writers of a
// slot queue, and the first of them, the leader, begins a commit for all that wait. The commit has its own
// goroutine. The writers do nothing but make their changes:
//
//  1. The commit takes a snapshot, and reads in it the slot's head and the items of all of them, with one GetMany.
//  2. Each writer decides what it writes, and makes its index terms, in its own goroutine.
//  3. All changes are committed with one write, under the precondition that the head is still the one of the snapshot.
//     Each change has its own LSN, in the order of the queue.
//  4. The next writer in the queue leads.
//
// A writer whose ctx ends answers for itself, the leader too. Until its commit has the slot's latch it leaves, and
// nothing of it is written. After that it waits for graceTime, and then its outcome is unknown. The commit goes on for
// the others. So it uses nothing that belongs to a caller: it has copies of the write and of its document. Functions of
// the caller are only called in the writer's own goroutine.
//
// A write that is refused, or that has nothing to write, takes no part in the commit. If the commit loses a race to
// another process, all begin again. If it fails for a reason that may concern only one of them, each is done alone: a
// full logical partition, for example. Two writes of one item are in different commits.
//
// A writer that comes while the snapshot is being taken joins. What the snapshot shows may then be older than the
// writer. If a commit with the snapshot's head as precondition succeeds, nothing has changed between the two. Otherwise
// such a writer begins again, also if it would be refused.
//
// A single writer that writes again at once need not wait for its snapshot: the commit before has asked for one
// (kv.Follower). It is older than the write, so the same holds for it. Several writers gain nothing by that: while the
// snapshot is being taken, those whose writes were acknowledged last come and join, which saves a half of the commits.
//
// Example: A creates "x" and leads. B replaces "y" and C creates "z" if it is absent, while A's snapshot is taken. One
// GetMany reads the head with LSN 7 and the three items. "z" is there. One commit writes "x" with LSN 8 and "y" with
// LSN 9. C gets Conflict: "z" was there when that commit was made.

// joint is the queue of a slot's writers.
type joint struct {
	mu      sync.Mutex
	led     bool // somebody leads, or is about to
	waiting []*joined
	next    *following // what the last leader has left; nil: nothing
}

// joined is a write in the queue of its slot.
type joined struct {
	ctx   context.Context
	w     *Write // a copy, but for what only its own goroutine uses
	ch    change
	turn  chan turnOf // what to do next; there is never more than one in it
	since time.Time
	lost  int // races

	// Both are guarded by the mutex of the queue.
	bound bool // it can't leave: it has something to do, or is being committed
	left  bool // it has left

	g    *jointCommit // that it belongs to, when it has left the queue
	late bool         // it came after the snapshot was asked for, or may have
	item int          // its item among the keys that were read; its logical partition's head is the next one
	with int          // its record among them
	made bool         // its change is ready, or it is refused or kept
	kept bool

	// The outcome. If neither again nor alone is set, it is final.
	res   Result
	err   error
	again bool
	alone bool
}

// turnOf tells a waiting write what to do.
type turnOf uint8

const (
	turnLead turnOf = iota
	turnMake        // its change
	turnEnd
)

// writeJoint is Write with a shared engine.
func (c *Container) writeJoint(ctx context.Context, w *Write) (Result, error) {
	id, err := c.identify(w)
	if err != nil {
		return Result{}, err
	}
	if err := id.slot.turns.wait(ctx, id.tuple); err != nil {
		return Result{}, err
	}
	own := *w
	if w.With != nil {
		with := *w.With
		own.With = &with
	}
	m := &joined{ctx: ctx, w: &own, turn: make(chan turnOf, 1)}
	for range maxRaces {
		if err := ctx.Err(); err != nil {
			return Result{}, translate(err)
		}
		c.relocate(&id)
		m.ch, m.g, m.made, m.kept, m.late, m.bound = change{id: id}, nil, false, false, false, false
		m.res, m.err, m.again, m.alone = Result{Slot: id.slot}, nil, true, false
		if err := c.join(m); err != nil {
			return Result{}, err
		}
		switch {
		case m.alone:
			return c.writeAlone(ctx, w)
		case !m.again:
			return m.res, m.err
		}
	}
	return Result{}, errRaces()
}

// join puts a write into the queue of its slot, and returns when it has an outcome. The error says that it has left.
func (c *Container) join(m *joined) error {
	j := &m.ch.id.slot.joint
	lead, err := j.enter(m)
	if err == nil && lead {
		err = c.lead(m)
	}
	for err == nil {
		var does turnOf
		does, err = j.await(m)
		switch {
		case err != nil:
		case does == turnLead:
			err = c.lead(m)
		case does == turnMake:
			c.makeJoined(m)
		default:
			m.ch.release()
			return nil
		}
	}
	return err
}

// enter adds a write to the queue, unless it leads at once. It fails as latch.LockFor does if the queue is too long.
func (j *joint) enter(m *joined) (lead bool, err error) {
	m.since = realTime.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.led {
		j.led = true
		return true, nil
	}
	if len(j.waiting) > latchFew && m.since.Sub(j.waiting[0].since) > latchTarget {
		return false, errTooMany()
	}
	j.waiting = append(j.waiting, m)
	return false, nil
}

// await waits until the write has something to do, or its ctx ends.
func (j *joint) await(m *joined) (turnOf, error) {
	select {
	case t := <-m.turn:
		return t, nil
	case <-m.ctx.Done():
	}
	if j.leave(m, false) {
		return turnEnd, translate(m.ctx.Err())
	}
	late := time.NewTimer(graceTime)
	defer late.Stop()
	select {
	case t := <-m.turn:
		return t, nil
	case <-late.C:
		j.leave(m, true)
		return turnEnd, translate(kv.ErrUnknownOutcome)
	}
}

// leave takes a write out of the queue, or out of its commit. It returns false if the write is bound, and may not leave
// then.
func (j *joint) leave(m *joined, then bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m.bound && !then {
		return false
	}
	m.left = true
	if m.g != nil {
		m.g.endLeft()
	}
	if i := slices.Index(j.waiting, m); i >= 0 {
		j.waiting = slices.Delete(j.waiting, i, i+1)
	}
	return true
}

// pass lets the first in the queue lead.
func (j *joint) pass() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.led = len(j.waiting) > 0; j.led {
		j.waiting[0].bound = true
		j.waiting[0].turn <- turnLead
		j.waiting = slices.Delete(j.waiting, 0, 1)
	}
}

// jointCommit is a commit of several writes.
type jointCommit struct {
	c      *Container
	sl     *Slot
	ms     []*joined    // the first is the leader
	bytes  int          // of their documents
	looked bool         // the members are known
	asked  time.Time    // when the snapshot was asked for, or before
	begun  catalog.Look // the same; the zero Look if it isn't known
	look   *look
	basis  []byte // the slot's head in the snapshot
	seen   int64  // its LSN
	moved  bool   // the head was another one at the commit
	seenCounter
	hold   *hold // of the slot; nil: none
	making sync.WaitGroup
	over   context.CancelFunc // of until
}

// whatJoint names the commits in the log.
const whatJoint = "a commit of several writes"

// lead begins the commit of a write, and of others that wait.
func (c *Container) lead(m *joined) error {
	g := &jointCommit{c: c, sl: m.ch.id.slot}
	j := &g.sl.joint
	j.mu.Lock()
	m.bound = false
	g.add(m)
	j.mu.Unlock()
	if c.st.work.Go(whatJoint, g.do) {
		return nil
	}
	j.pass()
	return translate(kv.ErrClosed)
}

// do makes the commit, and tells its members. If it panics, that is the outcome of those that have none.
func (g *jointCommit) do() {
	if err := g.c.st.work.Try(whatJoint, g.run); err != nil {
		for _, m := range g.ms {
			if m.again {
				g.conclude([]*joined{m}, err)
			}
		}
	}
	for _, m := range g.ms[1:] {
		m.turn <- turnEnd
	}
	g.sl.joint.pass()
	g.ms[0].turn <- turnEnd // its next write leads at once if nobody else waits
}

// add makes a write a member.
func (g *jointCommit) add(m *joined) {
	m.g = g
	g.ms = append(g.ms, m)
	g.bytes += len(m.w.Doc)
}

// take takes members from the queue, in their order; none if the writes of the container are committed singly.
func (g *jointCommit) take() {
	if g.c.single() {
		return
	}
	j := &g.sl.joint
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = slices.DeleteFunc(j.waiting, func(m *joined) bool {
		if len(g.ms) >= manyWrites || g.bytes >= manyBytes || g.has(m) {
			return false
		}
		g.add(m)
		return true
	})
}

// has reports whether a member writes the same item, or changes the same record.
func (g *jointCommit) has(m *joined) bool {
	return slices.ContainsFunc(g.ms, func(o *joined) bool {
		return bytes.Equal(o.ch.id.suffix, m.ch.id.suffix) ||
			o.w.With != nil && m.w.With != nil && o.w.With.Name == m.w.With.Name
	})
}

// until returns a ctx for what is done for all members. It has the deadline of the member that waits longest, and ends
// when all have left, or the store is closed. It has no values of their ctxs: a request that has left has no place any
// more (package yield).
func (g *jointCommit) until() (ctx context.Context, over context.CancelFunc) {
	var last time.Time
	all := true // have deadlines
	for _, m := range g.ms {
		end, ok := m.ctx.Deadline()
		all = all && ok
		if end.After(last) {
			last = end
		}
	}
	if ctx = g.c.st.work.Context(); all {
		ctx, over = context.WithDeadline(ctx, last)
	} else {
		ctx, over = context.WithCancel(ctx)
	}
	g.sl.joint.mu.Lock()
	defer g.sl.joint.mu.Unlock()
	g.over = over
	g.endLeft()
	return ctx, over
}

// endLeft ends the ctx of until if all members have left. The caller holds the mutex of the queue.
func (g *jointCommit) endLeft() {
	if g.over != nil && !slices.ContainsFunc(g.ms, func(m *joined) bool { return !m.left }) {
		g.over()
	}
}

// run does what the members want. The error is nil.
func (g *jointCommit) run() error {
	g.take()
	n := len(g.ms)
	reading, over := g.until()
	defer over()
	l, done, err := g.lookUp(reading)
	if err != nil {
		for i, m := range g.ms { // those that came late may have more time
			if i < n || reading.Err() == nil || m.ctx.Err() != nil {
				g.conclude([]*joined{m}, err)
			}
		}
		return nil
	}
	defer done()
	if !l.of.has(g.sl) {
		return nil // all look for their slots again
	}
	var h Head
	g.look, g.basis = l, bytes.Clone(l.head(0))
	if err := h.parse(g.basis, new(indexFlags)); err != nil {
		g.conclude(g.ms, err)
		return nil
	}
	g.seen = h.LSN
	g.make()
	var writes, not []*joined
	for _, m := range g.ms {
		switch {
		case !m.made: // it has left, or has panicked
		case m.err == nil && !m.kept:
			writes = append(writes, m)
		default:
			not = append(not, m)
		}
	}
	committed := len(writes) > 0 && g.commit(writes)
	if g.look.trusts() && len(not) > 0 {
		g.sl.calm.Store(false)
	}
	for _, m := range not {
		m.again = m.late && (!committed || g.moved) || g.look.trusts()
	}
	return nil
}

// lookUp looks for what the members want. It holds the slot first if one of them has lost too often. The caller calls
// done when the commit is over.
func (g *jointCommit) lookUp(ctx context.Context) (l *look, done func(), err error) {
	lost := 0
	for _, m := range g.ms {
		lost = max(lost, m.lost)
	}
	if g.sl.contested(lost) {
		g.asked = realTime.Now()
		if g.hold, err = g.c.hold(ctx, g.sl); err != nil {
			return nil, nil, err
		}
	}
	if l, err = g.c.lookFrom(ctx, g.snapshot, g.hold == nil && g.sl.calm.Load(), g.want); err != nil {
		g.hold.end()
		return nil, nil, err
	}
	return l, func() {
		l.close()
		g.hold.end()
	}, nil
}

// want returns the keys that a look reads. The look calls it when it has its snapshot.
func (g *jointCommit) want(of *Slots) (slots []*Slot, more [][]byte) {
	if !g.looked {
		g.looked = true
		g.take()
	}
	for _, m := range g.ms {
		m.late = !m.since.Before(g.asked)
	}
	if !of.has(g.sl) {
		return nil, nil
	}
	logical := !g.c.def.Load().KeyIsID()
	for _, m := range g.ms {
		m.ch.id.version = of.m.MapVersion
		m.item = len(more)
		if more = append(more, m.ch.id.itemKey()); logical {
			more = append(more, m.ch.id.logicalKey())
		}
		if m.w.With != nil {
			m.with = len(more)
			more = append(more, m.w.With.Name.key())
		}
		m.ch.logicalRead = logical
	}
	return []*Slot{g.sl}, g.wantCounter(g.c, more)
}

// make has all members that have not left make their changes, and waits for them: they read what was looked up.
func (g *jointCommit) make() {
	g.sl.joint.mu.Lock()
	for _, m := range g.ms {
		if !m.left {
			m.bound = true
			g.making.Add(1)
			m.turn <- turnMake
		}
	}
	g.sl.joint.mu.Unlock()
	g.making.Wait()
}

// makeJoined makes the change of a member.
func (c *Container) makeJoined(m *joined) {
	g := m.g
	defer g.making.Done()
	g.makeOne(m)
	g.sl.joint.mu.Lock()
	m.bound = false
	g.sl.joint.mu.Unlock()
}

// bind returns those of members that have not left. They can't leave any more: they are being committed.
func (g *jointCommit) bind(ms []*joined) (bound []*joined) {
	g.sl.joint.mu.Lock()
	defer g.sl.joint.mu.Unlock()
	for _, m := range ms {
		if !m.left {
			m.bound = true
			bound = append(bound, m)
		}
	}
	return bound
}

// makeOne makes the change of a member, from what was read.
func (g *jointCommit) makeOne(m *joined) {
	ch := &m.ch
	ch.basis, ch.seen = g.basis, g.seen
	if ch.logicalRead {
		ch.logical, ch.logicalAt = bytes.Clone(g.look.more(m.item+1)), g.seen
	}
	m.err = g.c.decodeOld(ch, bytes.Clone(g.look.more(m.item)))
	if m.err == nil && m.w.With != nil {
		m.err = ch.attach(m.w.With, g.look.more(m.with))
	}
	if m.err == nil {
		m.kept, m.err = g.c.choose(m.ctx, m.w, ch, &m.res)
	}
	if m.kept {
		m.res.LSN = g.sl.durable.Load()
	}
	if m.err == nil && !m.kept {
		ch.own()
	}
	m.made = true
}

// own makes the change independent of the memory of its writer, who may leave.
func (ch *change) own() {
	if ch.item != nil {
		ch.item.Doc = bytes.Clone(ch.item.Doc)
	}
	ch.note = bytes.Clone(ch.note)
}

// conclude gives members an error as their outcome.
func (g *jointCommit) conclude(ms []*joined, err error) {
	for _, m := range ms {
		m.err, m.again = err, false
	}
}

// eachAlone lets members be done alone.
func (g *jointCommit) eachAlone(ms []*joined) {
	for _, m := range ms {
		m.again, m.alone = false, true
	}
}

// commit commits the changes of members. It reports whether it did; otherwise the members have other outcomes, or begin
// again. The changes are planned under the latch, because members may leave while it is waited for.
func (g *jointCommit) commit(from []*joined) bool {
	ctx, over := g.until()
	defer over()
	if err := g.sl.lockFor(ctx, g.hold); err != nil {
		g.conclude(from, err)
		return false
	}
	defer g.sl.mu.Unlock()
	defer g.sl.taken()
	if from = g.bind(from); len(from) == 0 {
		return false
	}
	if !g.calm() && g.look.trusts() {
		return false
	}
	if g.hold.inTheWay(g.basis) {
		g.look.close()
		if err := g.c.adopt(ctx, g.sl, g.basis); err != nil {
			g.eachAlone(from)
		}
		return false
	}
	chs := make([]change, len(from))
	for i, m := range from {
		chs[i] = m.ch
		m.ch.oldTerms, m.ch.newTerms = nil, nil // they belong to chs now
	}
	defer func() {
		for i := range chs {
			chs[i].release()
		}
	}()
	d, err := g.c.plan(chs)
	if err != nil {
		g.eachAlone(from)
		return false
	}
	if err := g.c.adopt(ctx, g.sl, g.basis); err != nil {
		d.free()
		g.eachAlone(from)
		return false
	}
	g.moved = !bytes.Equal(g.basis, g.sl.headBytes)
	snap, same, err := g.unchanged(ctx, chs)
	if snap != g.look.snap {
		defer snap.Close()
	}
	if err != nil || !same {
		d.free() // after an error too they begin again: nothing was written
		for _, m := range from {
			m.lost++
		}
		return false
	}
	d.base(snap)
	if err = g.knownTo(d, g.c, g.look); err == nil {
		err = d.fill(ctx, true)
	}
	if err != nil {
		d.free()
		g.eachAlone(from)
		return false
	}
	g.conclude(from, translate(kv.ErrUnknownOutcome)) // should the engine panic
	d.b.Followed = len(g.ms) == 1
	began := realTime.Now()
	p, err := d.write(ctx)
	d.done()
	if err == nil {
		if err = p.wait(ctx); err == nil {
			g.leave(p.commit, p.lsn, began)
			if v, ok := g.look.version(); ok {
				g.c.st.cat.Saw(g.begun, v)
			}
		}
	} else if errors.Is(err, kv.ErrTooLarge) || errors.Is(err, kv.ErrFull) {
		g.eachAlone(from)
		return false
	} else {
		raced := false
		if raced, err = g.c.lost(g.sl, err); raced {
			g.sl.calm.Store(false)
			for _, m := range from {
				m.err, m.again = nil, true
				m.lost++
			}
			return false
		}
	}
	g.conclude(from, err)
	for i := range chs {
		if err == nil {
			chs[i].result(&from[i].res)
			from[i].res.Time = p.time
		}
	}
	return err == nil
}

// unchanged reports whether the items of changes are what was read, and returns the snapshot for which that is known.
func (g *jointCommit) unchanged(ctx context.Context, chs []change) (snap kv.Snapshot, same bool, err error) {
	records := slices.ContainsFunc(chs, func(ch change) bool { return ch.with != nil })
	if records || bytes.Equal(g.basis, g.sl.headBytes) || !g.c.allCurrent(chs) { // what is known of records is older
		same, err = g.c.allUnchanged(ctx, g.sl, chs)
		return g.look.snap, same, err
	}
	a, same, err := g.c.changesAgain(ctx, g.sl, chs)
	if a == nil {
		return g.look.snap, false, err
	}
	return a.snap, same, err
}

// allUnchanged is unchanged for several changes of a slot. If somebody has committed since they were read, it reads all
// of their items again, with one request.
func (c *Container) allUnchanged(ctx context.Context, sl *Slot, chs []change) (bool, error) {
	if !c.allCurrent(chs) {
		return false, nil
	}
	if sl.head.LSN == chs[0].seen {
		return true, nil
	}
	var names [][]byte
	for i := range chs {
		names = append(names, chs[i].id.itemKey(), chs[i].id.logicalKey())
	}
	var v kv.Values
	if err := kv.GetNewest(ctx, c.st.eng, &v, names); err != nil {
		return false, translate(err)
	}
	for i := range chs {
		now := change{id: chs[i].id}
		if err := c.decodeOld(&now, v.At(2*i)); err != nil {
			return false, err
		}
		if !sameVersion(chs[i].old, now.old) {
			return false, nil
		}
		if chs[i].logicalRead { // what is read under the latch is of the head in memory, or the commit fails
			chs[i].logical, chs[i].logicalAt = bytes.Clone(v.At(2*i+1)), sl.head.LSN
		}
	}
	return true, nil
}

// errRaces is the error of a write that has lost too many races.
func errRaces() error {
	return status.New(status.RetryWith, "Conflicting request to resource has been attempted. Retry to avoid conflicts.")
}

// Waiting returns the number of writes that wait for a commit of others before their own can begin. With an engine that
// isn't shared it is 0.
func (c *Container) Waiting() (n int) {
	for _, sl := range c.slotList() {
		sl.joint.mu.Lock()
		n += len(sl.joint.waiting)
		sl.joint.mu.Unlock()
	}
	return n
}
