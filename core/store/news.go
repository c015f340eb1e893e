package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/kv"
)

// News tells those who wait for items of a container of commits in it, also of those of other processes. It is for a
// shared engine. A commit of this process is told at once. For those of others one look every newsLook reads the heads
// of all containers for which somebody waits. While nobody does it reads nothing.
//
// Example: R waits for items. Another process inserts one, and the slot has another head at the next look. R is woken,
// and reads.
type News struct {
	c *Container

	mu    sync.Mutex
	told  uint64 // goes up with what is told
	heads uint64 // the sum of what the last look has read; 0: there was none
	calls map[*func()]bool

	watched int // those who wait, or may; guarded by looks.mu
}

// newsLook is the time between two looks for commits of other processes.
const newsLook = 100 * time.Millisecond

// looks are the containers that are looked at.
type looks struct {
	mu   sync.Mutex
	on   []*News
	runs bool
}

// Watch returns the container's News. The caller calls Leave.
func (c *Container) Watch() *News {
	n, l := &c.news, &c.st.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.watched++; n.watched == 1 {
		n.c, n.heads = c, 0
		l.on = append(l.on, n)
	}
	if !l.runs {
		l.runs = c.st.work.Go("look for items of other processes", c.st.lookForNews)
	}
	return n
}

// Leave ends what Watch began.
func (n *News) Leave() {
	l := &n.c.st.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.watched--; n.watched == 0 {
		l.on = slices.DeleteFunc(l.on, func(o *News) bool { return o == n })
	}
}

// News returns a mark. If news is false, nothing was committed between the mark after and this one that a reader has
// not seen who began to read after he had asked for the former.
func (n *News) News(after uint64) (mark uint64, news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told, n.told > after
}

// Notify has wake called, once or never, when there may be news after a mark. wake must not block. stop ends that; nil:
// there may be news now.
func (n *News) Notify(after uint64, wake func()) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told > after {
		return nil
	}
	if n.calls == nil {
		n.calls = map[*func()]bool{}
	}
	n.calls[&wake] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.calls, &wake)
	}
}

// tell tells those who wait that there may be news.
func (n *News) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told++
	for wake := range n.calls {
		(*wake)()
	}
	clear(n.calls)
}

// saw takes over the sum of what a look has read.
func (n *News) saw(heads uint64) {
	n.mu.Lock()
	same := n.heads == heads
	n.heads = heads
	n.mu.Unlock()
	if !same {
		n.tell()
	}
}

// lookForNews looks as long as somebody waits.
func (s *Store) lookForNews() {
	for {
		s.looks.mu.Lock()
		on := slices.Clone(s.looks.on)
		if len(on) == 0 {
			s.looks.runs = false
			s.looks.mu.Unlock()
			return
		}
		s.looks.mu.Unlock()
		_ = s.work.Try("look for items of other processes", func() error {
			s.lookAtHeads(s.work.Context(), on)
			return nil
		})
		if !s.work.Sleep(newsLook) {
			return
		}
	}
}

// lookAtHeads tells those of a list of whose containers a head has changed. If the store can't be read, it tells all:
// those who wait read, and get the error.
func (s *Store) lookAtHeads(ctx context.Context, on []*News) {
	var names [][]byte
	ends := make([]int, len(on))
	for i, n := range on {
		for _, sl := range n.c.slotList() {
			names = append(names, sl.headKey[:])
		}
		ends[i] = len(names)
	}
	var v kv.Values
	if err := kv.GetNewest(ctx, s.eng, &v, names); err != nil {
		for _, n := range on {
			n.tell()
		}
		return
	}
	at := 0
	for i, n := range on {
		sum := xxhash.New()
		for ; at < ends[i]; at++ {
			_, _ = sum.Write(names[at]) // the slots may have been replaced
			_, _ = sum.Write(v.At(at))
		}
		n.saw(sum.Sum64())
	}
}
