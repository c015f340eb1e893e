package mongoapi

import (
	"context"
	"sync/atomic"
	"time"
)

// idleWaits are the commands that wait for something to happen: getMore on a change stream or an oplog without news. A
// test that replaces the store (Options.Turn) doesn't wait for them: their cursors end with the store.
type idleWaits struct{ round atomic.Pointer[round] }

// round has the waits that end together.
type round struct {
	ctx context.Context
	end context.CancelFunc
}

func newRound() *round {
	ctx, end := context.WithCancel(context.Background())
	return &round{ctx, end}
}

// EndWaits ends the waits of the commands that run now, with the error for a cursor that there isn't.
func (s *Server) EndWaits() { s.waits.round.Swap(newRound()).end() }

// park waits for at most d, until notify calls its argument or the connection ends. It returns how much of the time is
// left, false if the client has left, and whether the cursor ends here, because the store is replaced.
func (r *request) park(d time.Duration, notify func(func()) func()) (left time.Duration, here, ended bool) {
	if r.c.home.o.Turn == nil {
		left, here = r.c.p.Park(d, notify)
		return left, here, false
	}
	now := r.s.waits.round.Load()
	left, here = r.c.p.Park(d, func(wake func()) func() {
		stop := notify(wake)
		if stop == nil {
			return nil
		}
		replaced, cancelled := context.AfterFunc(now.ctx, wake), context.AfterFunc(r.ctx, wake)
		return func() {
			replaced()
			cancelled()
			stop()
		}
	})
	return left, here, now.ctx.Err() != nil
}
