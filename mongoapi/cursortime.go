package mongoapi

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/mongoapi/failpoint"
)

// timeLeft is what the getMores of a cursor have left of the maxTimeMS of the command that has opened it. The time
// between them doesn't count.
//
// Example: find with maxTimeMS 100 takes 30 ms. Its getMores may take 70 ms together; the one that takes longer fails
// with 50.
type timeLeft struct {
	limited bool
	d       time.Duration
}

// leave records in a new cursor how much of the command's time is left. A cursor that awaits documents has no limit:
// the maxTimeMS of its getMores is how long they wait.
func (r *request) leave(c *cursor) {
	if r.maxTimeMS > 0 && r.limit != nil && c.tail == nil {
		c.left = timeLeft{limited: true, d: r.limit.At.Sub(r.s.real.Now())}
	}
}

// limitTime limits the time of a getMore to what its cursor has left. The caller calls spent at the end of the work.
func (r *request) limitTime(c *cursor) (spent func(), err error) {
	if !c.left.limited {
		return func() {}, nil
	}
	if r.hit(failpoint.MaxTime) != nil {
		return nil, errTimeUp
	}
	r.ctx, r.cancel = context.WithTimeout(r.ctx, c.left.d)
	began := r.s.real.Now()
	return func() { c.left.d -= r.s.real.Now().Sub(began) }, nil
}
