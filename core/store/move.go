package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// move replaces adjacent slots (the sources) by other slots over the same placements (the targets), while requests
// continue: a split has one source and two targets, a join two sources and one target.
//
//  1. The ids of the targets are taken, with a note that their keys are to be removed. So a crash before step 5 leaves
//     nothing but the sources.
//  2. The heads of the sources say that they are moving. From then on each commit that removes an item records that.
//     The feed records all other changes.
//  3. The items are copied: with all of their keys as sorted tables, which the engine takes over (movetables.go). If it
//     takes none, in order, in commits of bounded size. Each of these commits has its own snapshot, and the other keys
//     are computed from the item. An item keeps its bytes: number, LSN, position and time.
//  4. Rounds of catching up: the changes since the last round are found in one snapshot, and each changed item gets its
//     state of that snapshot. Rounds end when there are few changes.
//  5. Under the latches of all sources: the last round, and one commit with the next map, the heads of the targets, the
//     mark in the heads of the sources that they were replaced, and notes that the keys of the sources are to be
//     removed. When it is durable, the next map is shown.
//
// Writers that waited for a source's latch find their slot again (Container.current). A view of an earlier version
// reads the keys of the sources in its snapshot. A request without a snapshot that finds nothing looks whether the map
// has changed (Container.left).
//
// Nobody else writes keys of the targets before step 5. After a round with snapshot S the targets have the items of S.
// If other processes write to the sources too, the latches don't stop them: moveshared.go says what is different.
//
// Example: slot 3 has the placements 40 to 60 and is split at 50. Ids 9 and 10 are taken. Items a (45), b (52) and c
// (58) are copied to 9, 10 and 10. Then b is removed and a is changed: the round finds b in slot 3's list of removed
// items and a in its feed, deletes b from slot 10 and changes a in slot 9. Then the map has 9 and 10 in place of 3.
type move struct {
	pace
	upkeep  upkeep
	sources []*source
	targets []*target
	latched bool   // writers wait for the move
	place   []byte // memory of placeOf

	// With a shared engine: see moveshared.go.
	id    uint32 // of the first target: names the move in the heads of the sources
	stamp uint64 // number of commits of keys of the targets
	again bool   // there was an attempt to replace the slots
}

// source is a slot that is being copied.
type source struct {
	*Slot
	done   int64 // the targets have all of its changes up to this LSN
	marked bool  // done is known
}

// target is a slot that is being made. Its head has the counts and flags of the items so far.
type target struct {
	*Slot
	check checker // it reads items and computes their keys, as a check does

	tables kv.Tables // see copyTables
}

// Bounds of one commit of a move, and of the work between two rests. Commits become visible in their order, so those of
// requests wait for a commit of a move before them: its keys take half a millisecond. Larger commits cost less CPU time
// for each item: 46 µs with 4,096 operations, 51 with 2,048, 58 with 512 and 61 with 256.
const (
	moveOps   = 512
	moveBytes = 256 << 10
	moveBurst = time.Millisecond
	moveRests = 200 // percent
)

// The same of a move with a shared engine. A commit is some round trips to stores that work for many, and those of
// requests don't wait for it. So larger commits are better, and rests would be without use: the copy waits for the
// network most of the time.
const (
	sharedOps   = 2048
	sharedBytes = 512 << 10
)

// movePace returns the pace of a move.
func (c *Container) movePace(ctx context.Context) pace {
	return pace{c: c, ctx: ctx, burst: moveBurst, rests: moveRests, begun: realTime.Now(), distant: c.st.others}
}

// enough reports whether a batch is as large as a commit of a move may be.
func (m *move) enough(b *kv.Batch) bool {
	if m.c.st.others {
		return b.Len() >= sharedOps || b.Size() >= sharedBytes
	}
	return b.Len() >= moveOps || b.Size() >= moveBytes
}

// fewChanges is the number of changes at or below which the last round may begin. The latches are held during that
// round.
const fewChanges = 256

// maxRounds is the number of rounds after which the last one begins in any case.
const maxRounds = 16

// SplitSlot replaces the slot that holds a placement by two slots, the second of which begins at the placement. It does
// nothing if a slot begins there. It returns the slots whose keys remain to be removed: those that were replaced, or
// after an error those that were made in vain.
func (c *Container) SplitSlot(ctx context.Context, at []byte) (rest []keys.Slot, err error) {
	return c.move(ctx, func(m *catalog.SlotMap) (*moveMap, error) {
		i := m.Slot(at)
		if len(at) == 0 || len(at) > c.placeLen() {
			return nil, status.New(status.BadRequest, "A slot can't be split at a placement of %d bytes.", len(at))
		}
		if slices.Equal(m.Slots[i].Min, at) {
			return nil, nil
		}
		min, max := m.Bounds(i, i+1)
		return &moveMap{from: []uint32{m.Slots[i].ID}, mins: [][]byte{min, slices.Clone(at)}, max: max,
			next: func(m *catalog.SlotMap, i int, to []uint32) (*catalog.SlotMap, error) {
				return m.Split(i, at, to[0], to[1]), nil
			}}, nil
	})
}

// JoinSlots replaces the two slots on both sides of a boundary by one. It does nothing if there is no such boundary.
// The slots must belong to one physical partition. The result is that of SplitSlot.
func (c *Container) JoinSlots(ctx context.Context, at []byte) (rest []keys.Slot, err error) {
	return c.move(ctx, func(m *catalog.SlotMap) (*moveMap, error) {
		i := m.Slot(at)
		if i == 0 || !slices.Equal(m.Slots[i].Min, at) {
			return nil, nil
		}
		if m.PartitionBegins(i) {
			return nil, errBetweenPartitions()
		}
		min, max := m.Bounds(i-1, i+1)
		return &moveMap{from: []uint32{m.Slots[i-1].ID, m.Slots[i].ID}, mins: [][]byte{min}, max: max,
			next: func(m *catalog.SlotMap, i int, to []uint32) (*catalog.SlotMap, error) {
				if m.PartitionBegins(i + 1) { // since the move began
					return nil, errBetweenPartitions()
				}
				return m.Join(i, to[0]), nil
			}}, nil
	})
}

func errBetweenPartitions() error {
	return status.New(status.BadRequest, "Slots of different physical partitions can't be joined.")
}

// moveMap describes a move: the ids of the sources and the placements of the targets. next makes the map after it from
// the current one, in which the first source is slot i.
type moveMap struct {
	from []uint32
	mins [][]byte
	max  []byte
	next func(m *catalog.SlotMap, i int, to []uint32) (*catalog.SlotMap, error)
}

// move makes the move that plan returns for the current map; nil: none. It waits for the end of an index rebuild, and
// for other moves. It belongs to the store's background work, so that the store isn't closed during a step.
func (c *Container) move(ctx context.Context, plan func(*catalog.SlotMap) (*moveMap, error)) (
	rest []keys.Slot, err error) {
	if c.st.lim.ReadOnly {
		return nil, status.New(status.Forbidden, "The store is read-only.")
	}
	for {
		rest, err = c.moveOnce(ctx, plan)
		if !errors.Is(err, errRebuilding) || !c.st.others {
			return rest, err
		}
		if err := c.awaitRebuild(ctx); err != nil { // another process has begun it
			return nil, err
		}
	}
}

// moveOnce is one attempt. The error wraps errRebuilding if an index rebuild has to be completed first.
func (c *Container) moveOnce(ctx context.Context, plan func(*catalog.SlotMap) (*moveMap, error)) (
	rest []keys.Slot, err error) {
	if err := c.beginMove(ctx); err != nil {
		return nil, err
	}
	what, done := "copy of slots of container "+c.Name(), make(chan struct{})
	if !c.st.work.Go(what, func() {
		defer close(done)
		defer c.endMove()
		err = c.st.work.Try(what, func() (err error) {
			l, err := c.leaseLayout(ctx)
			if err != nil {
				return err
			}
			defer l.Release()
			p, err := plan(c.Slots().m)
			if err == nil && p != nil {
				rest, err = c.moveTo(l, p)
			}
			return err
		})
	}) {
		c.endMove()
		return nil, status.New(status.Unavailable, "The store is closing.")
	}
	<-done
	if status.Is(err, status.Timeout) && ctx.Err() == nil { // the lease's context has ended
		err = errTakenOver(err)
	}
	return rest, err
}

// moveTo makes a move under a lease.
func (c *Container) moveTo(l *lease.Lease, p *moveMap) (rest []keys.Slot, err error) {
	m := &move{pace: c.movePace(l.Context())}
	m.lease = l
	for _, id := range p.from {
		m.sources = append(m.sources, &source{Slot: c.Slots().all[c.Slots().m.IndexOf(id)]})
	}
	first, err := c.st.cat.ReserveSlots(m.ctx, c.Def(), len(p.mins))
	if err != nil {
		return nil, err
	}
	m.id = first
	to := make([]uint32, len(p.mins))
	for i := range to {
		to[i] = first + uint32(i)
		max := p.max
		if i+1 < len(p.mins) {
			max = p.mins[i+1]
		}
		m.targets = append(m.targets, &target{Slot: c.newSlot(to[i], p.mins[i], max)})
	}
	err = m.run(func(was *catalog.SlotMap) (*catalog.SlotMap, error) {
		i := was.IndexOf(p.from[0])
		if i < 0 || was.IndexOf(p.from[len(p.from)-1]) < 0 {
			return nil, translate(kv.ErrUnavailable) // another process has replaced them
		}
		return p.next(was, i, to)
	})
	switch {
	case status.Is(err, status.UnknownOutcome) && !c.st.others && m.again: // see Without
		return append(slotKeys(m.sources), slotKeys(m.targets)...), err
	case err != nil:
		if m.abandon(); m.shown() { // its outcome was unknown
			return slotKeys(m.sources), nil
		}
		if !c.st.others && status.Is(err, status.UnknownOutcome) { // of a commit of the copy, which is given up
			err = status.Wrap(status.Unavailable, err, "The slots could not be copied.")
		}
		return slotKeys(m.targets), err
	}
	return slotKeys(m.sources), nil
}

// slotKeys returns the names of slots in the key space.
func slotKeys[S interface{ Key() keys.Slot }](slots []S) (out []keys.Slot) {
	for _, s := range slots {
		out = append(out, s.Key())
	}
	return out
}

// nextMap makes the next slot map from the current one.
type nextMap func(*catalog.SlotMap) (*catalog.SlotMap, error)

func (m *move) run(next nextMap) error {
	for _, s := range m.sources {
		if err := m.mark(s); err != nil {
			return err
		}
	}
	for _, t := range m.targets {
		t.head.Index = uint32(m.upkeep.state >> 32)
		t.check = checker{c: m.c, ctx: m.ctx, sl: t.Slot, up: m.upkeep}
	}
	if err := m.copy(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		changes, err := m.round(m.pauseIn(n))
		if err != nil {
			return err
		}
		if changes > fewChanges && n < maxRounds {
			continue
		}
		if done, err := m.replace(next); done || err != nil {
			return err
		}
		if n >= maxRounds+maxHolds {
			return status.Wrap(status.Unavailable, kv.ErrUnavailable, "Other processes write to the slots too often.")
		}
	}
}

// pauseIn returns what a round calls between its commits. The first one may have as many changes as there were during
// the copy. Later ones have no rest, so that each is shorter than the one before.
func (m *move) pauseIn(n int) func() error {
	if n == 0 {
		return m.pause
	}
	return m.follow
}

// errRebuilding is wrapped by the error of a move that meets an index rebuild.
var errRebuilding = errors.New("the index is being rebuilt")

// mark begins to record what commits remove from a source.
func (m *move) mark(s *source) error {
	if m.c.st.others {
		return m.markShared(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := m.c.certain(s.Slot); err != nil {
		return err
	}
	if err := m.follows(s); err != nil {
		return err
	}
	h := s.head
	h.Moving = true
	if err := m.putHead(s.Slot, h); err != nil {
		return err
	}
	s.done = h.LSN
	return nil
}

// follows checks that a source isn't between two indexing policies, and that it has the policy of the other sources.
// The caller holds the latch.
func (m *move) follows(s *source) error {
	up := m.c.upkeepOf(m.ctx, s.Slot)
	if up.lost || up.next != nil || s.head.bare() || m.upkeep.policy != nil && m.upkeep.state != up.state {
		return status.Wrap(status.Unavailable, errors.Join(kv.ErrUnavailable, errRebuilding),
			"The index is being rebuilt.")
	}
	m.upkeep = up
	return nil
}

// putHead commits a source's next head alone. The caller holds the latch.
func (m *move) putHead(sl *Slot, h Head) error {
	head := h.append(nil)
	var b kv.Batch
	b.Put(sl.headKey[:], head)
	cm, err := m.c.st.eng.Write(m.ctx, &b, sl.asRead())
	if err != nil {
		raced, err := m.c.lost(sl, err)
		if raced {
			err = translate(kv.ErrUnavailable)
		}
		return err
	}
	sl.head, sl.headBytes = h, head
	m.wrote(cm)
	return nil
}

// asRead is the precondition that a slot's stored head is the one that the slot remembers.
func (s *Slot) asRead() []kv.Precondition {
	return []kv.Precondition{{Key: s.headKey[:], Expect: kv.Equal, Value: s.headBytes}}
}

// replace is step 5. done is false if another process has written to a source meanwhile, and another attempt may
// succeed.
func (m *move) replace(next nextMap) (done bool, err error) {
	if err := m.settle(); err != nil { // so that the wait under the latches is short
		return false, err
	}
	for _, s := range m.inOrder() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if done, err := m.hold(s); done || err != nil {
			return done, err
		}
	}
	m.latched, m.again = true, true
	defer func() { m.latched = false }()
	if _, err := m.round(m.follow); err != nil {
		return false, err
	}
	var b kv.Batch
	pre := m.lease.Fence()
	for _, s := range m.sources {
		h := s.head
		h.Moving, h.Moved, h.Move, h.Held, h.Writer = false, true, 0, false, m.c.st.writer
		b.Put(s.headKey[:], h.append(nil))
		pre = append(pre, s.asRead()...)
	}
	slots := make([]*Slot, len(m.targets))
	for i, t := range m.targets {
		m.complete(t)
		b.Put(t.headKey[:], t.headBytes)
		slots[i] = t.Slot
	}
	if err := m.c.mapMu.LockUntil(m.ctx); err != nil {
		return false, err
	}
	defer m.c.mapMu.Unlock()
	err = m.c.changeMap(m.ctx, slots,
		func(was *catalog.SlotMap) (*catalog.SlotMap, *kv.Batch, []kv.Precondition, error) {
			to, err := next(was)
			return to, &b, pre, err
		})
	if m.c.st.others {
		return m.replaced(err)
	}
	for _, s := range m.sources {
		if status.Is(err, status.UnknownOutcome) {
			s.begun.Store(s.head.LSN + 1) // the next holder of the latch finds out: see certain
		} else if err == nil {
			s.settled(s.head.LSN)
		}
	}
	return err == nil, err
}

// hold makes sure that a source still records what commits remove. Its latch is held. done says that the slots are
// replaced already: see holdShared.
func (m *move) hold(sl *Slot) (done bool, err error) {
	if m.c.st.others {
		return m.holdShared(sl)
	}
	if err := m.c.certain(sl); err != nil {
		return false, err
	}
	if !sl.head.Moving { // an unknown outcome has undone it
		return false, translate(kv.ErrUnavailable)
	}
	return false, nil
}

// inOrder returns the sources in the order in which latches are taken.
func (m *move) inOrder() []*Slot {
	out := make([]*Slot, len(m.sources))
	for i, s := range m.sources {
		out[i] = s.Slot
	}
	slices.SortFunc(out, func(a, b *Slot) int { return cmp.Compare(a.ID(), b.ID()) })
	return out
}

// complete makes the head of a target. Its floors are those of the sources, and it has no facts. Of several sources the
// order of commit times is not known, so the LSNs up to now are an epoch in which times may fall.
func (m *move) complete(t *target) {
	h, first := &t.head, m.sources[0].head
	h.Lowest, h.FeedFloor, h.LogFloor = first.Lowest, first.FeedFloor, first.LogFloor
	logged := first.LogFloor != 0
	latest := int64(0)
	for _, s := range m.sources {
		h.LSN, h.Ticks = max(h.LSN, s.head.LSN), max(h.Ticks, s.head.Ticks)
		latest = max(latest, s.head.latest())
		h.Lowest, h.FeedFloor = min(h.Lowest, s.head.Lowest), min(h.FeedFloor, s.head.FeedFloor)
		h.Recorded = max(h.Recorded, s.head.Recorded)
		h.LogFloor, logged = max(h.LogFloor, s.head.LogFloor), logged && s.head.LogFloor != 0
	}
	if h.LogFloor != 0 && !logged { // not all sources have a log: it begins now
		h.LogFloor = h.LSN + 1
	}
	h.Epochs = slices.Clone(first.Epochs)
	if len(m.sources) > 1 && latest > 0 {
		h.Epochs = []Epoch{{0, latest}, {h.LSN + 1, latest}}
		h.Ticks = latest
	}
	m.giveBlock(t)
	h.Writer = m.c.st.writer
	t.headBytes = h.append(nil)
	t.publish()
	t.durable.Store(h.LSN)
}

// abandon ends a move that failed: commits no longer record what they remove, and the records are removed. What it
// can't write is harmless: it is removed with the slot, or by the next move.
func (m *move) abandon() {
	if m.c.st.others {
		m.abandonShared()
		return
	}
	m.ctx = m.c.st.work.Context()
	for _, s := range m.sources {
		s.mu.Lock()
		if s.head.Moving && m.c.Slots().has(s.Slot) {
			s.head.Moving = false // the next commit stores it
		}
		s.mu.Unlock()
		_ = m.tidy(s.Slot)
	}
}

// endMoves ends the moves that the end of the previous process has interrupted. Nobody else has the container yet. It
// is for an engine that isn't shared: see EndMoves.
func (c *Container) endMoves() {
	var moving []*Slot
	for _, sl := range c.slotList() {
		if sl.head.Moving || sl.head.Move != 0 {
			sl.head.Moving, sl.head.Move, sl.head.Held = false, 0, false // the next commit stores it
			moving = append(moving, sl)
		}
	}
	if len(moving) == 0 || c.st.lim.ReadOnly {
		return
	}
	c.rb.moving = true
	m := &move{pace: c.movePace(c.st.work.Context())}
	if !c.st.work.Go("end of an interrupted copy of container "+c.Name(), func() {
		defer c.endMove()
		for _, sl := range moving {
			_ = m.tidy(sl) // if it fails, the next start does it, or the next move
		}
	}) {
		c.rb.moving = false
	}
}

// tidy removes the records of a slot that isn't moving, and stores its head.
func (m *move) tidy(sl *Slot) error {
	j := rebuilder{pace: m.pace}
	if err := j.deleteAll(sl, keys.KindRemoved); err != nil {
		return err
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if err := m.c.certain(sl); err != nil || sl.head.Moving {
		return err
	}
	return m.putHead(sl, sl.head)
}
