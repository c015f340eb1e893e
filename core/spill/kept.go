package spill

import (
	"sync"
	"time"
)

// State is what a query has computed and not yet returned.
type State interface {
	// Held returns the number of bytes of memory that it holds.
	Held() int64
	// Close releases memory and files.
	Close()
}

// Kept keeps states of queries between two pages, so that the next page needn't compute everything again. A state has a
// number, which is part of the page's continuation. Only its owner can take it: owner is a hash of the user and the
// query. A state is lost after KeptFor, when there are too many, when they hold too much memory, and when the process
// ends. A query whose state is lost is computed again. Kept is safe for concurrent use.
//
// Example: a sort gives page 1. Put keeps the sort and returns 77, which goes into the continuation. The request for
// page 2 calls Take(owner, 77) and continues the sort.
type Kept struct {
	now  func() time.Time
	id   func() uint64
	mem  int64 // bytes that all states together may hold
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

// Limits: how long a state is kept, and how many states are kept.
const (
	KeptFor = 5 * time.Minute
	maxKept = 256
)

// NewKept returns an empty Kept. Its states together may hold mem bytes of memory. now gives the time. id gives numbers
// that can't be guessed.
func NewKept(mem int64, now func() time.Time, id func() uint64) *Kept {
	return &Kept{now: now, id: id, mem: mem, m: map[uint64]*kept{}}
}

// Most returns the number of bytes of memory that one state may hold to be kept; 0 if no state is kept.
func (k *Kept) Most() int64 {
	if k == nil {
		return 0
	}
	return k.mem / 4
}

// Put keeps a state and returns its number, which isn't 0. Kept then owns the state. If the state holds too much
// memory, Put closes it and returns 0.
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

// Take returns the state with a number and removes it. It returns nil when the state is lost or has another owner.
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

// Len returns the number of states.
func (k *Kept) Len() int {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.m)
}

// Sweep closes the states that are older than KeptFor.
func (k *Kept) Sweep() {
	k.mu.Lock()
	gone := k.expired()
	k.mu.Unlock()
	closeAll(gone)
}

// Drop closes all states.
func (k *Kept) Drop() {
	k.mu.Lock()
	var gone []State
	for _, x := range k.m {
		gone = append(gone, k.remove(x))
	}
	k.mu.Unlock()
	closeAll(gone)
}

// Close closes all states. States that are put later are closed immediately.
func (k *Kept) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.shut = true
	k.mu.Unlock()
	k.Drop()
}

// expired removes and returns the states that are too old. The caller holds mu.
func (k *Kept) expired() (gone []State) {
	now := k.now()
	for _, x := range k.m {
		if now.After(x.until) {
			gone = append(gone, k.remove(x))
		}
	}
	return gone
}

// oldest returns the state that expires first. The caller holds mu, and there is at least one state.
func (k *Kept) oldest() (o *kept) {
	for _, x := range k.m {
		if o == nil || x.until.Before(o.until) {
			o = x
		}
	}
	return o
}

// remove removes a state. The caller holds mu.
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
