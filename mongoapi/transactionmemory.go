package mongoapi

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// What a transaction has written is in memory until its end. It is a part of the memory of all requests. A write waits
// a moment for it. If there is none, the transaction ends with an error after which drivers run it again. While memory
// is short, the transactions that no command has used for some seconds are aborted, so that others can go on.
//
// Example: ten transactions have written 10 MB each, and their clients do nothing. With 112 MB for all requests the
// next one that writes 10 MB is refused. The sweep finds the ten idle, and it is answered when it is run again.

const (
	// transactionWait is how long a write of a transaction waits for memory.
	transactionWait = time.Second
	// transactionRest is the longest idle time of a transaction that has written something while memory is short.
	transactionRest = 10 * time.Second
	// writtenSize is about what a transaction keeps of a write besides documents, in bytes.
	writtenSize = 512
)

// scarce reports whether requests hold so much memory that what is idle must give its own up.
func scarce(b *budget.Budget) bool { return b.Limit() > 0 && b.Used() > b.Limit()/4*3 }

// hold counts n bytes that the transaction keeps until its end.
func (t *transaction) hold(ctx context.Context, b *budget.Budget, n int64) error {
	own := b.Open("transaction") // an account has one user, and others may end the transaction while this one waits
	defer own.Close()
	err := own.Grow(n)
	if status.Is(err, status.TooManyRequests) {
		limited, cancel := context.WithTimeout(ctx, transactionWait)
		defer cancel()
		err = own.Wait(limited, n)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return merr.New(merr.WriteConflict, "The server has no memory for what the transaction writes. Please retry "+
			"your operation or multi-document transaction.")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != transactionRuns {
		return t.errAborted()
	}
	if t.mem == nil {
		t.mem = b.Open("transaction")
	}
	t.mem.Take(n)
	return nil
}

// rests reports whether no command has used the transaction for a while, though it holds memory.
func (t *transaction) rests(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.busy.Load() && t.mem.Used() > 0 && now.Sub(t.time) > transactionRest
}

// leave is called when a command of the transaction has ended.
func (t *transaction) leave(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time = now
	t.busy.Store(false)
}
