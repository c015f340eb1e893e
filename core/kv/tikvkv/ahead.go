package tikvkv

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/tikvrpc/interceptor"
)

// A transaction begins with a request for a timestamp. The one that follows another at once, as in a partition that is
// written to all the time, need not wait for that request: it is made beside the last request of the commit before.
// The timestamp must be greater than that of the commit, or its snapshot wouldn't show the commit. So the request is
// made:
//
//   - with two phases beside the second one: the commit has its timestamp then;
//   - with one phase beside that one: the store chooses the timestamp of the commit, and which of the two is greater is
//     seen afterwards. Nearly always it is the one that was asked for later.
//
// If the keys lie in several regions, their locks go only after the commit is acknowledged. A read at once would meet
// them, and ask what has become of the transaction. So such a commit asks for nothing: the time of a new request is
// what the locks need.
//
// Example: a commit in two phases is a request for a timestamp, a read, the first phase, a request for the commit's
// timestamp, and the second phase. Each takes 2 ms. The next one has its timestamp when the first is over, so it takes
// 8 ms, not 10.

// ahead is the timestamp that is asked for while a transaction commits. It implements interceptor.RPCInterceptor.
type ahead struct {
	e     *Engine
	keys  int // of the transaction
	asked atomic.Bool
	got   chan struct{} // closed when the request is over

	taken time.Time // before the request
	ts    uint64
	err   error
}

func (e *Engine) newAhead(keys int) *ahead { return &ahead{e: e, keys: keys, got: make(chan struct{})} }

// Name implements interceptor.RPCInterceptor.
func (a *ahead) Name() string { return "ahead" }

// Wrap implements interceptor.RPCInterceptor.
func (a *ahead) Wrap(next interceptor.RPCInterceptorFunc) interceptor.RPCInterceptorFunc {
	return func(store string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
		if a.last(req) && !a.asked.Swap(true) {
			a.taken = time.Now()
			go a.ask()
		}
		return next(store, req)
	}
}

// last reports whether a request is the only one of the last phase.
func (a *ahead) last(req *tikvrpc.Request) bool {
	switch req.Type {
	case tikvrpc.CmdPrewrite:
		return req.Prewrite().TryOnePc
	case tikvrpc.CmdCommit:
		return len(req.Commit().Keys) == a.keys
	}
	return false
}

func (a *ahead) ask() {
	defer close(a.got)
	ctx, cancel := a.e.bound(context.Background())
	defer cancel()
	a.ts, a.err = a.e.timestamp(ctx)
}

// followed is the Commit of a transaction that has asked for a timestamp. It implements kv.Follower.
type followed struct {
	committed
	at    uint64 // the commit's timestamp
	ahead *ahead
	given atomic.Bool
}

// After implements kv.Follower. The timestamp is that of one transaction at most, so it is given once.
func (f *followed) After(ctx context.Context) (kv.Snapshot, time.Time) {
	a := f.ahead
	if f.given.Swap(true) {
		return nil, time.Time{}
	}
	select {
	case <-a.got:
	case <-ctx.Done():
		return nil, time.Time{}
	}
	if a.err != nil || a.ts <= f.at || a.e.closed.Load() {
		return nil, time.Time{}
	}
	return newSnapshot(ctx, a.e, a.ts, a.taken), a.taken
}
