package pebblekv

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// footprint describes the keys of a write: the hashes of the keys of its preconditions, and the set of keys that it
// writes as a bloom filter. The filter grows with the batch, so that a large batch doesn't seem to write every key.
type footprint struct {
	pre  []uint64      // hashes of the keys of preconditions
	bits []uint64      // the filter; its length is a power of two
	done chan struct{} // closed at the end of the write; made by a write that waits, under admission's mutex
}

// footprintBits is the number of bits for each written key. A key sets two bits. So at most one other key in a thousand
// seems to be written.
const footprintBits = 64

// maxFootprint is the largest capacity, in words, of a footprint that is reused.
const maxFootprint = 1 << 14

var footprints = sync.Pool{New: func() any { return new(footprint) }}

// begin empties the footprint and makes room for the keys of n operations.
func (f *footprint) begin(n int) {
	words := 1 << bits.Len(uint(n*footprintBits/64))
	f.pre, f.done = f.pre[:0], nil
	if cap(f.bits) < words {
		f.bits = make([]uint64, words)
		return
	}
	f.bits = f.bits[:words]
	clear(f.bits)
}

// addWritten adds a written key and returns its hash.
func (f *footprint) addWritten(key []byte) (hash uint64) {
	hash = xxhash.Sum64(key)
	h := hash
	for range 2 {
		f.bits[h>>6&uint64(len(f.bits)-1)] |= 1 << (h & 63)
		h = bits.RotateLeft64(h, 32)
	}
	return hash
}

func (f *footprint) writes(h uint64) bool {
	g := bits.RotateLeft64(h, 32)
	return f.bits[h>>6&uint64(len(f.bits)-1)]&(1<<(h&63)) != 0 && f.bits[g>>6&uint64(len(f.bits)-1)]&(1<<(g&63)) != 0
}

// meets reports whether one of the two writes may change what the other one checks.
func (f *footprint) meets(o *footprint) bool {
	return slices.ContainsFunc(f.pre, o.writes) || slices.ContainsFunc(o.pre, f.writes)
}

// free releases the memory.
func (f *footprint) free() {
	if cap(f.bits) <= maxFootprint {
		footprints.Put(f)
	}
}

// admission ensures that between the check and the apply of a write no other write changes what it has checked.
// Invariants:
//
//  1. Of two writes that meet (see footprint), the later one continues when the earlier one has left.
//  2. A write waits only for writes that entered before it. So there are no deadlocks and no endless waits.
//
// Writes that don't meet run concurrently, however large they are. Two writes of the same key that check other keys
// don't meet either: the store orders them.
//
// Example: W1 checks the head of slot A and writes it. W2 does the same and meets W1, so it waits until W1 has left.
// Then its check of the head fails. W3 in slot B runs at the same time.
type admission struct {
	mu sync.Mutex
	in []*footprint // in the order in which they entered
}

// enter returns when every earlier write that meets f has left.
func (a *admission) enter(f *footprint) {
	var few [4]chan struct{}
	wait := few[:0]
	a.mu.Lock()
	for _, o := range a.in {
		if f.meets(o) {
			if o.done == nil {
				o.done = make(chan struct{})
			}
			wait = append(wait, o.done)
		}
	}
	a.in = append(a.in, f)
	a.mu.Unlock()
	for _, c := range wait {
		<-c
	}
}

// leave ends a write that entered.
func (a *admission) leave(f *footprint) {
	a.mu.Lock()
	i := slices.Index(a.in, f)
	a.in = slices.Delete(a.in, i, i+1)
	done := f.done
	a.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// gate counts the users of the store, so that Close doesn't close it while one is active. n is the count. shut adds
// closing to n, which makes it negative forever.
type gate struct {
	n    atomic.Int64
	idle chan struct{} // capacity 1: gets a token when the last user leaves after shut
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

// shut refuses further users. It returns false when the gate was shut before.
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

// wait waits up to d after shut, and reports whether all users have left.
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
