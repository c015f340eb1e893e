package store

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
)

// Work that only one process at a time should do to a container has a lease. What it writes is right without it:
//
//   - An expired item is deleted by a commit with the slot's head as precondition, after it was read again.
//   - A floor of a log only rises, and what is below it is deleted by commits.
//   - A commit of a rebuild has the slot's head, which has the phase of the rebuild, as precondition. So a process
//     that was paused can't continue a pass after another one has continued it.
//   - The keys of a copy, and deletes without the head as precondition, have the lease as precondition (rebuilder
//     .deleted, move.writeShared). So does the commit that replaces slots: otherwise a process that was paused could
//     show slots whose keys another one is removing.
//
// If the engine isn't shared, a lease is granted at once and nothing here reads anything.

// lease returns the lease of a kind for this container, nil if somebody else has it.
func (c *Container) lease(ctx context.Context, kind lease.Kind) (*lease.Lease, error) {
	l, err := c.st.leases.Try(ctx, lease.Name{Kind: kind, Gen: c.gen})
	return l, translate(err)
}

// leaseLayout waits for the lease of everything that changes which keys a container has: rebuilds, copies of slots, and
// the removal of slots. Another process may have held it before, so definition, slots and heads are read again.
func (c *Container) leaseLayout(ctx context.Context) (*lease.Lease, error) {
	l, err := c.st.leases.Acquire(ctx, lease.Name{Kind: lease.Layout, Gen: c.gen})
	if err != nil {
		return nil, translate(err)
	}
	if err := c.Refresh(l.Context()); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// refused returns the error of a commit whose preconditions are the lease's fence, and then that a slot has a head.
func (j *pace) refused(sl *Slot, cause error) error {
	var at *kv.PreconditionError
	if errors.As(cause, &at) && at.Index < len(j.lease.Fence()) {
		return errTakenOver(cause)
	}
	return j.headless(sl)
}

// headless returns the error of background work whose slot has no head: another process has taken the work over and
// has replaced the slot, or the container was dropped.
func (j *pace) headless(sl *Slot) error {
	if _, err := j.c.remap(j.ctx); err != nil {
		return err
	}
	if !j.c.Slots().has(sl) {
		return errTakenOver(nil)
	}
	return j.c.gone()
}

func errTakenOver(cause error) error {
	return status.Wrap(status.Unavailable, cause, "Another process has taken the work over.")
}

// leased runs the rebuild when this process has the lease for it. Another process may have completed it before: then
// the heads say so, and nothing is done.
func (j *rebuilder) leased() error {
	l, err := j.c.leaseLayout(j.ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	run := *j
	run.ctx, run.lease = l.Context(), l
	return run.run()
}
