package journal

import "context"

// Namespace is a container; with Coll "" a database, and with both "" the whole store.
type Namespace struct{ DB, Coll string }

// Topic tells its watchers about commits in a namespace, so that they neither look at the store while nothing happens
// nor read what others have written. It costs a commit nothing while there are no topics.
//
// Example: a reader of "shop.orders" has position 5 and waits. Others write 1,000 entries to "shop.items": the topic
// stays silent. Then "shop.orders" gets an entry with the time 1006. The reader is woken, and reads from 5 on. If it
// had asked before, its position would have moved to 1005 without reading.
type Topic struct {
	j       *Journal
	ns      Namespace
	watched int              // watchers; guarded by Journal.mu, as are the others
	last    uint64           // nothing in the namespace has a greater time
	calls   map[*func()]bool // of those who wait
}

// Watch returns the topic of a namespace. The caller calls Leave.
func (j *Journal) Watch(ns Namespace) *Topic {
	j.mu.Lock()
	tp := j.topics[ns]
	if tp == nil {
		tp = &Topic{j: j, ns: ns, last: j.Clock.Tick(j.clk.Now(), false)} // it isn't known what was before
		if j.shared {
			tp.last = j.end.last
		}
		j.topics[ns] = tp
	}
	tp.watched++
	j.mu.Unlock()
	j.activate()
	j.Nudge()
	return tp
}

// Leave ends what Watch began.
func (tp *Topic) Leave() {
	j := tp.j
	j.mu.Lock()
	if tp.watched--; tp.watched == 0 {
		delete(j.topics, tp.ns)
	}
	j.mu.Unlock()
	j.activate()
}

// activate makes commits look at the journal if there is a reason.
func (j *Journal) activate() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active.Store(len(j.topics) > 0 || len(j.scopes.Load().list) > 0)
	j.watching.Store(len(j.topics) > 0)
}

// News returns the mark. If news is false, the namespace has no entries after the position up to the mark.
func (tp *Topic) News(after uint64) (mark uint64, news bool) {
	tp.j.mu.Lock()
	defer tp.j.mu.Unlock()
	return tp.j.mark(), tp.last > after
}

// Wait returns when the namespace may have entries after a time, up to the mark. It returns false if ctx ends first.
func (tp *Topic) Wait(ctx context.Context, after uint64) bool {
	woken := make(chan struct{}, 1)
	for {
		stop := tp.Notify(after, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		if stop == nil {
			return true
		}
		select {
		case <-woken:
			stop()
		case <-ctx.Done():
			stop()
			return false
		}
	}
}

// Notify has wake called, once or never, when the namespace may have entries after a time, up to the mark. wake is
// called by a commit: it must not block or call the journal. stop ends that; nil: there may be entries now.
func (tp *Topic) Notify(after uint64, wake func()) (stop func()) {
	tp.j.mu.Lock()
	defer tp.j.mu.Unlock()
	if tp.last > after && tp.j.mark() > after {
		return nil
	}
	if tp.calls == nil {
		tp.calls = map[*func()]bool{}
	}
	tp.calls[&wake] = true
	return func() {
		tp.j.mu.Lock()
		defer tp.j.mu.Unlock()
		delete(tp.calls, &wake)
	}
}

// wakeAll wakes those who wait. The caller holds Journal.mu.
func (tp *Topic) wakeAll() {
	for wake := range tp.calls {
		(*wake)()
	}
	clear(tp.calls)
}
