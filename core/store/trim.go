package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// trimShare is the part of the retention after which a log is trimmed again. Each trim leaves a mark in the engine for
// the removed range, so there should be few.
const trimShare = 8

// Logged reports whether the container's commits are logged, or should be.
func (c *Container) Logged() bool { return c.def.Load().LogMinutes > 0 || c.logs.Load() }

// LogOn reports whether the container's definition asks for a log.
func (c *Container) LogOn() bool { return c.def.Load().LogMinutes > 0 }

// BeginLogs returns when the commits of all slots are logged, if the definition asks for it. So a reader that begins
// "now" may call it first: the definition may just have been changed, by another process too.
func (c *Container) BeginLogs(ctx context.Context) error {
	if !c.LogOn() {
		return nil
	}
	return c.followLog(ctx)
}

// followLog begins or ends the logs of all slots, as the definition says. It returns when that is durable.
//
// It takes the latches of slots. Who has one of them must not wait for it, and so not for logMu either. A writer that
// holds a slot has its latch, and catches up with the catalog. So whoever catches up only takes the definition over
// (update): the logs are the business of the process that has changed it, and of the reaper if that process has ended.
func (c *Container) followLog(ctx context.Context) error {
	if c.st.lim.ReadOnly {
		return nil
	}
	if err := c.logMu.LockUntil(ctx); err != nil {
		return err
	}
	defer c.logMu.Unlock()
	switch {
	case c.LogOn():
		return c.beginLogs(ctx)
	case !c.logs.Load():
		return nil
	}
	for slots := (*Slots)(nil); slots != c.Slots(); { // slots may be replaced meanwhile
		slots = c.Slots()
		for _, sl := range slots.all {
			if err := c.endLog(ctx, sl); err != nil {
				return err
			}
		}
	}
	c.logs.Store(false)
	return nil
}

// beginLogs begins the logs of the slots that have none: every commit from then on is logged. It does so under the
// latches of all slots, so no commit is in flight. When it returns, all commits from before are durable, and their
// slots know it. So a reader that begins "now" never begins before the logs. The caller holds logMu.
func (c *Container) beginLogs(ctx context.Context) error {
	of := c.Slots()
	slots := slices.Clone(of.all)
	if begun, err := c.allLogged(ctx, slots); err != nil || begun {
		return err
	}
	c.logs.Store(true)
	slices.SortFunc(slots, func(a, b *Slot) int { return cmp.Compare(a.ID(), b.ID()) }) // the order of all latches
	w, err := c.beginLatched(ctx, of, slots)
	if errors.Is(err, errLeft) {
		return c.beginLogs(ctx)
	}
	if w != nil {
		err = errors.Join(err, translate(w.Wait())) // a later commit is durable only after the earlier ones
	}
	for _, sl := range slots {
		if err == nil {
			err = sl.waitDurable(ctx, sl.lsn.Load())
		}
	}
	return err
}

// allLogged reports whether the commits of all slots are logged. With a shared engine it reads the stored heads, all at
// once and without a latch.
func (c *Container) allLogged(ctx context.Context, slots []*Slot) (bool, error) {
	if !c.st.others {
		for _, sl := range slots {
			if logged, err := sl.logged(ctx); err != nil || !logged {
				return false, err
			}
		}
		return true, nil
	}
	names := make([][]byte, len(slots))
	for i, sl := range slots {
		names[i] = sl.headKey[:]
	}
	var heads kv.Values
	if err := kv.GetNewest(ctx, c.st.eng, &heads, names); err != nil {
		return false, translate(err)
	}
	for i := range slots {
		var h Head
		b := heads.At(i)
		if b == nil { // others have replaced it
			return false, nil
		}
		if err := h.decode(b); err != nil || h.LogFloor == 0 {
			return false, err
		}
	}
	return true, nil
}

// logged reports whether the slot's commits are logged.
func (s *Slot) logged(ctx context.Context) (bool, error) {
	if err := s.mu.LockUntil(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	err := s.c.newestHead(ctx, s)
	return s.head.LogFloor != 0, err
}

// beginLatched takes the latches of slots and writes their heads. It returns the last commit. The error is errLeft if
// the slots are not those of the current map.
func (c *Container) beginLatched(ctx context.Context, of *Slots, slots []*Slot) (last kv.Commit, err error) {
	for _, sl := range slots {
		if err := sl.mu.LockFor(ctx); err != nil {
			return nil, err
		}
		defer sl.mu.Unlock()
	}
	if c.Slots() != of { // with the latches held, no slot leaves the map
		return nil, errLeft
	}
	for _, sl := range slots {
		for raced := true; raced && err == nil && sl.head.LogFloor == 0; {
			var w kv.Commit
			if w, raced, err = c.putLogFloor(ctx, sl, sl.head.LSN+1); w != nil {
				last = w
			}
			if raced && !c.Slots().has(sl) { // another process has replaced it
				return last, errLeft
			}
		}
	}
	return last, err
}

// endLog ends the log of a slot and removes it. If the process ends before the head says so, the next trim does it
// again.
func (c *Container) endLog(ctx context.Context, sl *Slot) error {
	if logged, err := sl.logged(ctx); err != nil || !logged {
		return err
	}
	for _, floor := range []func(*Head) int64{
		func(h *Head) int64 { return h.LSN + 1 },
		func(*Head) int64 { return 0 }, // what was written in between is removed then
	} {
		if err := c.setLogFloor(ctx, sl, floor); err != nil {
			return err
		}
		if err := c.dropLog(ctx, sl); err != nil {
			return err
		}
	}
	return nil
}

// setLogFloor writes a slot's head with the floor that f returns. It returns when the head is durable, and with it all
// commits before.
func (c *Container) setLogFloor(ctx context.Context, sl *Slot, f func(*Head) int64) error {
	for range maxRaces {
		w, raced, err := c.tryLogFloor(ctx, sl, f)
		switch {
		case err != nil:
			return err
		case w != nil:
			return translate(w.Wait())
		case !raced:
			return nil
		}
	}
	return status.New(status.RetryWith, "The slot's head has changed too often.")
}

func (c *Container) tryLogFloor(ctx context.Context, sl *Slot, f func(*Head) int64) (kv.Commit, bool, error) {
	if err := sl.mu.LockFor(ctx); err != nil {
		return nil, false, err
	}
	defer sl.mu.Unlock()
	floor := f(&sl.head)
	if floor == sl.head.LogFloor || !c.Slots().has(sl) {
		return nil, false, nil
	}
	return c.putLogFloor(ctx, sl, floor)
}

// putLogFloor writes a slot's head with another floor. raced says that the head was not the expected one, which is read
// again. The caller holds the latch.
func (c *Container) putLogFloor(ctx context.Context, sl *Slot, floor int64) (w kv.Commit, raced bool, err error) {
	h := sl.head
	h.LogFloor = floor
	head := h.append(nil)
	b := kv.Batch{Frees: true}
	b.Put(sl.headKey[:], head)
	w, err = c.st.eng.Write(ctx, &b, []kv.Precondition{{Key: sl.headKey[:], Expect: kv.Equal, Value: sl.headBytes}})
	if err != nil {
		raced, err = c.lost(sl, err)
		return nil, raced, err
	}
	sl.head, sl.headBytes = h, head
	sl.publish()
	return w, false, nil
}

// dropLog removes a slot's entries below its floor, and all up to its last commit if its commits aren't logged. Another
// process may begin the log again meanwhile: its entries are later ones.
func (c *Container) dropLog(ctx context.Context, sl *Slot) error {
	sl.mu.Lock()
	floor := sl.head.LogFloor
	if floor == 0 {
		floor = sl.head.LSN + 1
	}
	sl.mu.Unlock()
	lo, _ := keys.KindBounds(sl.key, keys.KindLog)
	hi := keys.AppendLog(nil, sl.key, uint64(floor), 0)
	if c.st.others { // an older snapshot of another process reads the range: the keys are deleted by commits
		j := rebuilder{pace: pace{c: c, ctx: ctx, begun: realTime.Now()}}
		return j.deleteIn(sl, lo, hi)
	}
	return translate(c.st.eng.DropRange(ctx, lo, hi))
}

// TrimLog removes the entries of a slot's log that are older than the container's retention. It also begins or ends the
// log if the definition has changed and the slot doesn't follow it yet. It reports whether it has removed anything.
func (c *Container) TrimLog(ctx context.Context, sl *Slot) (bool, error) {
	switch logged, err := sl.logged(ctx); {
	case err != nil:
		return false, err
	case !logged || !c.LogOn():
		return false, c.followLog(ctx)
	}
	keep := time.Duration(c.def.Load().LogMinutes) * time.Minute
	if keep == 0 {
		return false, nil
	}
	now, wait := c.now(), int64(keep/trimShare/(time.Second/ticksPerSecond))
	sl.mu.Lock()
	early := now < sl.trimAt && now > sl.trimAt-2*wait // a clock that was set back doesn't delay it
	sl.mu.Unlock()
	if early {
		return false, nil
	}
	floor, err := c.expiredLog(ctx, sl, now-wait*trimShare)
	if err != nil {
		return false, err
	}
	sl.mu.Lock()
	sl.trimAt = now + wait
	raise := floor > sl.head.LogFloor
	sl.mu.Unlock()
	if !raise {
		return false, nil
	}
	l, err := c.lease(ctx, lease.Expiry)
	if l == nil { // another process trims it
		return false, err
	}
	defer l.Release()
	ctx = l.Context()
	if err := c.setLogFloor(ctx, sl, func(h *Head) int64 { return max(h.LogFloor, floor) }); err != nil {
		return false, err
	}
	return true, c.dropLog(ctx, sl)
}

// expiredLog returns the LSN after the last durable entry of a slot's log that was written at limit (in ticks) or
// earlier. Within a run times don't decrease, so it is found by bisection. If anything in a run has expired, then so
// has all that was written before that run.
func (c *Container) expiredLog(ctx context.Context, sl *Slot, limit int64) (int64, error) {
	view, err := c.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	slot := view.Of(sl)
	if slot == nil { // the slot was removed in the meantime
		return 0, nil
	}
	h, err := view.Head(slot)
	if err != nil {
		return 0, err
	}
	w := logWalk{view: view, slot: slot.key}
	_, hi := keys.KindBounds(slot.key, keys.KindLog)
	if w.it, err = view.Iter(keys.AppendLog(nil, slot.key, uint64(h.LogFloor), 0), hi); err != nil {
		return 0, err
	}
	defer w.it.Close()
	runs, end := h.Runs(), min(h.LSN, sl.durable.Load())+1
	for i := len(runs) - 1; i >= 0; i-- {
		from := h.LogFloor
		if i > 0 {
			from = max(from, runs[i-1].End)
		}
		if to := min(runs[i].End, end); from < to {
			if n, err := w.expired(runs[i], from, to, limit); err != nil || n > from {
				return n, err
			}
		}
	}
	return h.LogFloor, nil
}

// logWalk looks for the end of what has expired in a log.
type logWalk struct {
	view *View
	slot keys.Slot
	it   kv.Iterator
}

// expired returns the LSN after the last entry of a run that has expired, among the LSNs [from, to); from if there is
// none.
func (w *logWalk) expired(r Run, from, to, limit int64) (int64, error) {
	if r.Mixed {
		if r.Latest <= limit {
			return to, nil
		}
		return from, nil
	}
	var failed error
	n := sort.Search(int(to-from), func(i int) bool {
		if failed != nil || !w.it.SeekGE(keys.AppendLog(nil, w.slot, uint64(from)+uint64(i), 0)) {
			return true
		}
		var e LogEntry
		if failed = w.view.DecodeLog(&e, w.it.Key(), w.it.Value()); failed != nil {
			return true
		}
		return e.LSN >= to || e.Ticks > limit
	})
	if failed == nil {
		failed = translate(w.it.Err())
	}
	return from + int64(n), failed
}

// SettleLog does what SettleHead does, for a reader of the log: floor is the LSN from which the log has every commit, 0
// if commits aren't logged.
func (v *View) SettleLog(ctx context.Context, slot *ViewSlot, after int64) (last, floor int64, err error) {
	h, err := v.Head(slot)
	if err != nil || h.LSN <= after {
		return h.LSN, h.LogFloor, err
	}
	return h.LSN, h.LogFloor, slot.waitDurable(ctx, h.LSN)
}
