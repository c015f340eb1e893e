package spill

import (
	"sync"
	"time"
)

// State is what a query has computed and not yet given.
type State interface {
	// Held is how many bytes of memory it holds.
	Held() int64
	// Close gives up memory and files.
	Close()
}

// Kept keeps states of queries between two pages, so that the next page needn't compute everything again. A state is
// found by a number that stands in the page's continuation, and only by its owner: a hash of who asked and what. It is
// lost after KeptFor, when there are too many, when they hold too much memory, and when the process ends; whoever finds
// nothing computes it again. Safe for concurrent use.
type Kept struct {
	now  func() time.Time
	id   func() uint64
	mem  int64 // bytes that all states may hold
	mu   sync.Mutex
	m    map[uint64]*kept
	held int64
	shut bool
}

type kept struct {
	id, owner uint64
	s         State
	held      int64
	until     time.Time
}

// How long a state is kept, and how many are.
const (
	KeptFor = 5 * time.Minute
	maxKept = 256
)

// NewKept returns an empty Kept, whose states may hold so many bytes of memory together. now gives the time, id numbers
// that nobody can guess.
func NewKept(mem int64, now func() time.Time, id func() uint64) *Kept {
	return &Kept{now: now, id: id, mem: mem, m: map[uint64]*kept{}}
}

// Most is how many bytes of memory one state may hold to be kept: 0 where none is kept.
func (k *Kept) Most() int64 {
	if k == nil {
		return 0
	}
	return k.mem / 4
}

// Put keeps a state and returns its number, which isn't 0. The state is the Kept's from now on. It is closed at once,
// and the number is 0, when it holds too much.
func (k *Kept) Put(owner uint64, s State) uint64 {
	held := s.Held()
	if held > k.Most() {
		s.Close()
		return 0
	}
	k.mu.Lock()
	if k.shut {
		k.mu.Unlock()
		s.Close()
		return 0
	}
	x := &kept{owner: owner, s: s, held: held, until: k.now().Add(KeptFor)}
	for x.id == 0 || k.m[x.id] != nil {
		x.id = k.id()
	}
	k.m[x.id] = x
	k.held += held
	gone := k.expired()
	for len(k.m) > maxKept || k.held > k.mem {
		gone = append(gone, k.remove(k.oldest()))
	}
	k.mu.Unlock()
	closeAll(gone)
	return x.id
}

// Take returns the state with a number and forgets it; nil when it is lost, or another owner's.
func (k *Kept) Take(owner, id uint64) State {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	gone := k.expired()
	x := k.m[id]
	if x != nil && x.owner != owner {
		x = nil
	}
	if x != nil {
		k.remove(x)
	}
	k.mu.Unlock()
	closeAll(gone)
	if x == nil {
		return nil
	}
	return x.s
}

// Len is how many states there are.
func (k *Kept) Len() int {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.m)
}

// Sweep gives up states that are older than KeptFor.
func (k *Kept) Sweep() {
	k.mu.Lock()
	gone := k.expired()
	k.mu.Unlock()
	closeAll(gone)
}

// Drop gives up all states.
func (k *Kept) Drop() {
	k.mu.Lock()
	var gone []State
	for _, x := range k.m {
		gone = append(gone, k.remove(x))
	}
	k.mu.Unlock()
	closeAll(gone)
}

// Close gives up all states, and those that come later at once.
func (k *Kept) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.shut = true
	k.mu.Unlock()
	k.Drop()
}

// expired takes out the states that are too old. The caller holds mu.
func (k *Kept) expired() (gone []State) {
	now := k.now()
	for _, x := range k.m {
		if now.After(x.until) {
			gone = append(gone, k.remove(x))
		}
	}
	return gone
}

// oldest is the state that expires first. The caller holds mu; there is one.
func (k *Kept) oldest() (o *kept) {
	for _, x := range k.m {
		if o == nil || x.until.Before(o.until) {
			o = x
		}
	}
	return o
}

// remove takes a state out. The caller holds mu.
func (k *Kept) remove(x *kept) State {
	delete(k.m, x.id)
	k.held -= x.held
	return x.s
}

func closeAll(gone []State) {
	for _, s := range gone {
		s.Close()
	}
}
