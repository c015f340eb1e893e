// Package budget bounds the memory that a process holds for its requests: bodies and replies that are being processed,
// and the state of sorts, groups and distincts. A process has one Budget. Each request opens an Account of it.
//
// Example: a sort keeps rows of 1 KB. It opens an account, calls Grow(1024) for each row that it keeps, and Close when
// it ends. If Grow fails, the sort either fails with that error, or writes its rows to a file, calls Shrink and
// continues.
package budget

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/status"
)

// Budget is a number of bytes that all accounts share. A nil Budget has no limit. It is safe for concurrent use.
type Budget struct {
	limit int64
	share int64 // the limit of one account
	used  atomic.Int64
	spill atomic.Int64 // the number of accounts that hold memory and can write their state to files

	mu      sync.Mutex
	waiting []waiter // in the order of arrival
}

type waiter struct {
	n    int64
	done chan struct{}
}

// chunk is the number of bytes that an account takes from its budget at a time. So most calls of Grow touch no shared
// memory.
const chunk = 64 << 10

// New returns a budget of limit bytes. One account may hold up to share bytes; 0 means the whole limit.
func New(limit, share int64) *Budget {
	if share <= 0 || share > limit {
		share = limit
	}
	return &Budget{limit: limit, share: share}
}

// Limit returns the size of the whole budget in bytes, 0 when there is no limit.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Used returns the number of bytes that accounts hold.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// Open returns an account for one request. what names its use in errors: "sort", "group", "request".
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

// give returns n bytes and wakes those waiters that fit now.
func (b *Budget) give(n int64) {
	if n == 0 {
		return
	}
	b.used.Add(-n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake()
}

// wake wakes those waiters that fit now. The caller holds mu.
func (b *Budget) wake() {
	for len(b.waiting) > 0 && b.take(b.waiting[0].n) {
		close(b.waiting[0].done)
		b.waiting = b.waiting[1:]
	}
}

// Account is the memory that one request holds of a Budget. A nil Account has no limit. It is not safe for concurrent
// use.
type Account struct {
	b     *Budget
	what  string
	held  int64 // bytes taken from the budget
	used  int64
	bufs  int64  // the part of used that is buffers, see TakeBuffer
	spill func() // see OnSpill
	files bool   // see Spills
	among bool   // the account is counted in Budget.spill
}

// OnSpill sets the function that Grow calls when it finds no memory. The function writes state to files and calls
// Shrink. Grow then tries once more.
func (a *Account) OnSpill(f func()) {
	if a != nil {
		a.spill = f
	}
}

// Floor is the number of bytes that an account may hold in any case if it can write all of its state to files. So each
// such account makes progress, in small steps, whatever the others hold. It may also hold one element that is larger.
const Floor = 256 << 10

// Spills says that the function of OnSpill writes all state to files. Then Grow fails only if the account still holds
// more than Floor after that. When half of the budget is used, all accounts of this kind share that half equally.
//
// Example: the first of ten sorts holds the whole half. It spills soon after the other nine have begun.
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

// Rest says that nothing will be added for a while. Until the account grows again, it isn't counted among those that
// share half of the budget.
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

// TakeBuffer adds n bytes, even beyond the share and the limit. It is for buffers of which each request has few, and
// which it needs in order to give memory back: Floor bytes can be held beside them. GiveBuffer returns them.
func (a *Account) TakeBuffer(n int64) {
	if a != nil {
		a.Take(n)
		a.bufs += n
	}
}

// GiveBuffer returns n bytes that TakeBuffer has added.
func (a *Account) GiveBuffer(n int64) {
	if a != nil {
		a.bufs -= n
		a.Shrink(n)
	}
}

// Take adds n bytes, even beyond the share and the limit. It is for an element that is needed for progress.
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

// Spill frees memory for others: it calls the function that OnSpill has set.
func (a *Account) Spill() {
	if a != nil && a.spill != nil {
		a.spill()
	}
}

// Used returns the number of bytes that the account holds.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Grow adds n bytes. It fails with status.MemoryLimit when the account would hold more than its share, and with
// status.TooManyRequests when other requests hold the remaining memory. If it fails, nothing is added.
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
	if a.files && a.used-a.bufs+n <= min(Floor, a.b.share) { // others hold the rest: don't write tiny runs
		a.Take(n)
		return nil
	}
	a.spill()
	if err = a.grow(n); err != nil && a.files && (a.used == a.bufs || a.used-a.bufs+n <= Floor) {
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

// busyRetry is the time after which a client may repeat a request that was refused because the budget was used up.
const busyRetry = 100 * time.Millisecond

func (a *Account) checkShare(n int64) error {
	share := a.b.share
	if a.files && a.b.used.Load()+n > a.b.limit/2 {
		share = min(share, max(a.b.limit/2/max(a.b.spill.Load(), 1), Floor))
	}
	if a.used-a.bufs+n > share {
		return status.New(status.MemoryLimit, "A %s may hold %d bytes of memory, and this one needs more.",
			a.what, share)
	}
	return nil
}

// Wait adds n bytes as Grow does, but if there is no memory it waits until other requests give some back, or ctx ends.
// It is for the admission of requests: while a body isn't read, its client has to wait.
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
			b.wake() // later waiters may fit although this one didn't
			b.mu.Unlock()
			return ctx.Err()
		}
	}
	b.mu.Unlock()
	b.give(need) // the memory was given at the same moment
	return ctx.Err()
}

// Shrink returns n bytes.
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

// Close returns all bytes. The account may be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	n := a.held
	a.held, a.used, a.bufs = 0, 0, 0
	a.leave()
	a.b.give(n)
}
