package tikvkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
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
// Until a silent store answers a question it gets no requests. Those for its ranges are told that it doesn't lead them,
// and that the leader is unknown. So the client asks the stores with the other copies at once, again and again until
// they have elected a leader. Such a request was not sent, so it has done nothing.
//
// Example: a store is paused for a minute. A write waits for 0.3 s, the question for as long, and the client's question
// for a second. Then the client asks the other stores who leads the range, and the write goes on there. A read that
// begins after the first question asks them without a wait.
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
	if w.isSilent(addr) {
		return w.unsent(addr, req)
	}
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
	// The client asks each store for its safe timestamp every two seconds, and concludes nothing about its health.
	if err != nil && !errors.Is(err, context.Canceled) && req.Type != tikvrpc.CmdStoreSafeTS {
		w.note(addr)
	}
	return resp, err
}

// unsent answers a request in place of a silent store.
func (w *watched) unsent(addr string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
	if region := req.Context.RegionId; region != 0 {
		resp, err := tikvrpc.GenRegionErrorResp(req, &errorpb.Error{
			Message: errSilent.Error(), NotLeader: &errorpb.NotLeader{RegionId: region},
		})
		if err == nil {
			return resp, nil
		}
	}
	w.note(addr)
	return nil, errSilent
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
	q.answered = isAnswer(err)
	w.mu.Lock()
	delete(w.questions, addr)
	if !q.answered {
		w.hush(addr)
	}
	w.mu.Unlock()
	close(q.over)
	return q.answered
}

// hush notes that a store is silent, which ends when it answers a question. Its caller holds the lock.
func (w *watched) hush(addr string) {
	w.silent[addr] = true
	if s := w.stores[addr]; s == unknown || s == serves {
		w.stores[addr] = asked
		go w.look(addr)
	}
}

// isAnswer reports whether what a question for the health of a store has returned says that the store has answered.
func isAnswer(err error) bool {
	return err == nil || errors.Is(err, errNoHealth) || errors.Is(err, errIll)
}

func (w *watched) isSilent(addr string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent[addr]
}
