package work

import "context"

// Lock is a mutex for work that asks the store, which may take long to answer, or not answer at all. Who waits for the
// lock stops at the end of its ctx, so a request ends with its deadline though work without one has the lock.
type Lock chan struct{}

// NewLock returns a lock that nobody has.
func NewLock() Lock { return make(Lock, 1) }

// Lock waits for the lock. It fails with the error of ctx.
func (l Lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock gives the lock back.
func (l Lock) Unlock() { <-l }
