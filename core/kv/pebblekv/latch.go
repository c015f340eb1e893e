package pebblekv

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// stripeCount is a power of two. More stripes than keys of all writes in flight keep false sharing of a latch rare.
const stripeCount = 1024

// latches are striped locks over keys.
type latches [stripeCount]sync.Mutex

// stripes is a set of latches as bits: built without sorting, walked in ascending order, so that no two writes can wait for
// each other in a circle.
type stripes [stripeCount / 64]uint64

func (s *stripes) add(key []byte) {
	h := xxhash.Sum64(key) % stripeCount
	s[h/64] |= 1 << (h % 64)
}

// addAll takes the keys of the preconditions and the written keys: a write without preconditions must not slip between
// another write's check and its apply.
func (s *stripes) addAll(b *kv.Batch, pre []kv.Precondition) {
	for i := range pre {
		s.add(pre[i].Key)
	}
	for i, n := 0, b.Len(); i < n; i++ {
		s.add(b.Op(i).Key)
	}
}

func (l *latches) lock(s *stripes) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			l[w*64+bits.TrailingZeros64(word)].Lock()
		}
	}
}

func (l *latches) unlock(s *stripes) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			l[w*64+bits.TrailingZeros64(word)].Unlock()
		}
	}
}

// gate counts the users of the store, so that Close ends none of them. n is the count; shut adds closing to it, which makes
// it negative for good.
type gate struct {
	n    atomic.Int64
	idle chan struct{} // capacity 1: told when the last user leaves after shut
}

const closing = int64(-1) << 62

func (g *gate) enter() bool {
	if g.n.Add(1) < 0 {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.n.Add(-1) == closing {
		select {
		case g.idle <- struct{}{}:
		default:
		}
	}
}

// shut refuses further users; it reports false when the gate was shut before.
func (g *gate) shut() bool {
	for {
		n := g.n.Load()
		if n < 0 {
			return false
		}
		if g.n.CompareAndSwap(n, n+closing) {
			if n == 0 {
				g.idle <- struct{}{}
			}
			return true
		}
	}
}

// wait returns whether all users have left within d of shut.
func (g *gate) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-g.idle:
			if g.n.Load() == closing {
				return true
			}
		case <-t.C:
			return g.n.Load() == closing
		}
	}
}
