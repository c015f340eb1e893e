package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tikv/client-go/v2/tikvrpc"
)

// A store that is killed closes its connections, and the client looks for another one at once. A store that is paused,
// or whose machine is gone, closes nothing. The client waits for its answer for 30 s, although the stores with the
// other copies have long elected a leader.
//
// So a store that has not answered a request for silentAfter is asked for its health, on a connection of its own. If it
// doesn't answer that for as long either, the requests that wait for it fail as if the store was gone. The client then
// asks once more, for a second, before it looks for another store. A store that is only slow answers, and has the time
// of the client.
//
// Example: a store is paused for a minute. A write waits for 0.3 s, the question for as long, and the client's question
// for a second. Then the client asks the other stores who leads the range, and the write goes on there.
const silentAfter = 300 * time.Millisecond

// errSilent is the cause of a request that was ended because its store answers nothing. To the client it is a failure
// of the store.
var errSilent = fmt.Errorf("tikvkv: the store is silent: %w", context.DeadlineExceeded)

// question is a question for the health of a store, which several requests may wait for.
type question struct {
	over     chan struct{}
	answered bool // in some way
}

// SendRequest implements tikv.Client.
func (w *watched) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	call, end := context.WithCancelCause(ctx)
	defer end(nil)
	listens := time.AfterFunc(silentAfter, func() {
		for w.answers(addr) {
			if !pause(call, silentAfter) {
				return
			}
		}
		end(errSilent)
	})
	defer listens.Stop()
	resp, err := w.Client.SendRequest(call, addr, req, d)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(call), errSilent) {
		err = errSilent
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		w.note(addr)
	}
	return resp, err
}

// answers asks a store for its health, and reports whether it answers. Requests that wait at the same time share one
// question.
func (w *watched) answers(addr string) bool {
	w.mu.Lock()
	q := w.questions[addr]
	if q != nil {
		w.mu.Unlock()
		<-q.over
		return q.answered
	}
	q = &question{over: make(chan struct{})}
	w.questions[addr] = q
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.life, silentAfter)
	err := w.ask(ctx, addr)
	cancel()
	w.mu.Lock()
	delete(w.questions, addr)
	w.mu.Unlock()
	q.answered = err == nil || errors.Is(err, errNoHealth) || errors.Is(err, errIll)
	close(q.over)
	return q.answered
}
