// Package budget bounds the memory that a process holds for its requests: bodies and replies in flight, and the state
// of sorts, groups and distincts. There is one Budget for a process; each request opens an Account of it.
//
// Example: a sort keeps rows of 1 KB. It opens an account, calls Grow(1024) for each row that it keeps, and Close when
// it ends. Where Grow fails the sort fails with that error, or it writes its rows out, calls Shrink, and goes on.
package budget

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// Budget is a number of bytes that all accounts share. A nil Budget has no limit. Safe for concurrent use.
type Budget struct {
	limit int64
	share int64 // of one account
	used  atomic.Int64
	spill atomic.Int64 // accounts that can write their state out, and hold some

	mu      sync.Mutex
	waiting []waiter // in the order of their arrival
}

type waiter struct {
	n    int64
	done chan struct{}
}

// chunk is how many bytes an account takes from its budget at a time, so that small steps touch no shared memory.
const chunk = 64 << 10

// New returns a budget of limit bytes, of which one account may have share. A share of 0 is the whole.
func New(limit, share int64) *Budget {
	if share <= 0 || share > limit {
		share = limit
	}
	return &Budget{limit: limit, share: share}
}

// Limit is the number of bytes of the whole budget; 0 when there is no limit.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Used is the number of bytes that accounts hold.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// Open returns an account for what one request does. What names it in errors: "sort", "group", "request".
func (b *Budget) Open(what string) *Account {
	if b == nil {
		return nil
	}
	return &Account{b: b, what: what}
}

// take takes n bytes if there is room.
func (b *Budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// give gives n bytes back, and lets those go on who wait and fit now.
func (b *Budget) give(n int64) {
	if n == 0 {
		return
	}
	b.used.Add(-n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake()
}

// wake lets those go on who wait and fit now. The caller holds mu.
func (b *Budget) wake() {
	for len(b.waiting) > 0 && b.take(b.waiting[0].n) {
		close(b.waiting[0].done)
		b.waiting = b.waiting[1:]
	}
}

// Account is what one request holds of a Budget. A nil Account has no limit. Not safe for concurrent use.
type Account struct {
	b     *Budget
	what  string
	held  int64 // of the budget
	used  int64
	spill func() // see OnSpill
	files bool   // see Spills
	among bool   // it counts in Budget.spill
}

// OnSpill sets the function that makes room when a Grow finds none: it writes state out and calls Shrink. Grow then
// tries once more.
func (a *Account) OnSpill(f func()) {
	if a != nil {
		a.spill = f
	}
}

// Floor is what an account may hold that can write all of its state out, whatever others hold: so each of them gets on,
// in small steps. It may also hold one thing that is larger.
const Floor = 256 << 10

// Spills says that the function of OnSpill writes all state to files. Then Grow fails only where something else holds
// more than Floor of the account. When half of the budget is used, the accounts of this kind share that half equally:
// the first of ten sorts, which has all of it, spills soon after the others have begun.
func (a *Account) Spills() {
	if a != nil {
		a.files = true
	}
}

// join counts an account that spills among the others, from its first bytes on.
func (a *Account) join() {
	if a.files && !a.among {
		a.among = true
		a.b.spill.Add(1)
	}
}

// Rest says that nothing will be added for a while: the account isn't one of those any more who share half of the
// budget, until it grows again.
func (a *Account) Rest() {
	if a != nil {
		a.leave()
	}
}

func (a *Account) leave() {
	if a.among {
		a.among = false
		a.b.spill.Add(-1)
	}
}

// Take adds n bytes, also beyond the share and the limit. It is for small buffers of which each request has few, and
// without which it couldn't give memory back.
func (a *Account) Take(n int64) {
	if a == nil {
		return
	}
	if need := a.used + n - a.held; need > 0 {
		a.b.used.Add(need)
		a.held += need
	}
	a.used += n
}

// Spill makes room for others: it calls the function that OnSpill has set.
func (a *Account) Spill() {
	if a != nil && a.spill != nil {
		a.spill()
	}
}

// Used is the number of bytes that the account holds.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Grow adds n bytes. It fails with status.MemoryLimit when the account would hold more than its share, and with
// status.TooManyRequests when other requests hold the rest; nothing is added then.
func (a *Account) Grow(n int64) error {
	if a == nil || a.used+n <= a.held {
		if a != nil {
			a.used += n
		}
		return nil
	}
	a.join()
	err := a.grow(n)
	if err == nil || a.spill == nil {
		return err
	}
	a.spill()
	if err = a.grow(n); err != nil && a.files && (a.used == 0 || a.used+n <= Floor) {
		a.Take(n)
		err = nil
	}
	return err
}

func (a *Account) grow(n int64) error {
	if err := a.checkShare(n); err != nil {
		return err
	}
	need := a.used + n - a.held
	if need <= 0 {
		a.used += n
		return nil
	}
	for _, step := range []int64{(need + chunk - 1) / chunk * chunk, need} {
		if a.b.take(step) {
			a.held, a.used = a.held+step, a.used+n
			return nil
		}
	}
	e := status.New(status.TooManyRequests, "The requests that run now hold the server's %d bytes for requests: "+
		"there is no room for a %s.", a.b.limit, a.what)
	e.RetryAfter = busyRetry
	return e
}

// busyRetry is when a request may come again that found the budget spent.
const busyRetry = 100 * time.Millisecond

func (a *Account) checkShare(n int64) error {
	share := a.b.share
	if a.files && a.b.used.Load()+n > a.b.limit/2 {
		share = min(share, max(a.b.limit/2/max(a.b.spill.Load(), 1), Floor))
	}
	if a.used+n > share {
		return status.New(status.MemoryLimit, "A %s may hold %d bytes of memory, and this one needs more.",
			a.what, share)
	}
	return nil
}

// Wait adds n bytes as Grow does, but waits for other requests to give them back, until ctx ends. It is for what stands
// at a door: a body that isn't read yet holds its client back.
func (a *Account) Wait(ctx context.Context, n int64) error {
	if a == nil || a.used+n <= a.held {
		return a.Grow(n)
	}
	if err := a.checkShare(n); err != nil {
		return err
	}
	need := a.used + n - a.held
	b := a.b
	b.mu.Lock()
	if len(b.waiting) == 0 && b.take(need) {
		b.mu.Unlock()
		a.held, a.used = a.held+need, a.used+n
		return nil
	}
	w := waiter{need, make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.done:
		a.held, a.used = a.held+need, a.used+n
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	for i := range b.waiting {
		if b.waiting[i].done == w.done {
			b.waiting = slices.Delete(b.waiting, i, i+1)
			b.wake() // those behind may fit where this one didn't
			b.mu.Unlock()
			return ctx.Err()
		}
	}
	b.mu.Unlock()
	b.give(need) // it came at the same moment
	return ctx.Err()
}

// Shrink gives n bytes back.
func (a *Account) Shrink(n int64) {
	if a == nil {
		return
	}
	a.used = max(a.used-n, 0)
	if spare := a.held - a.used; spare >= 2*chunk {
		spare = spare / chunk * chunk
		a.held -= spare
		a.b.give(spare)
	}
}

// Close gives everything back. The account may be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	n := a.held
	a.held, a.used = 0, 0
	a.leave()
	a.b.give(n)
}
