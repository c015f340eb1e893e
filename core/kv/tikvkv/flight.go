package tikvkv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/tikvrpc/interceptor"
	"golang.org/x/sync/semaphore"
)

// A large batch is many requests, one for each part of a value, and the client sends all of them at once. Two things on
// their way put together what arrives at the same time, by count and not by bytes: the client puts up to 128 requests
// into one message, and a store puts what it has received into one entry of its log. Entries have limits (TiKV: 8 MiB),
// and messages may have (unistore, and older versions of TiKV: 10 MiB). A message above the limit ends the connection,
// with everything else that was under way on it.
//
// So a process sends a store at most flightBytes of large requests at a time. Small ones don't count: 128 of them are
// less than that.
//
// Example: a transaction of 16 MiB is 32 parts. The first four are sent, and each of the others when the answer to one
// before it is there. If a store still refuses what it has put together, because other processes send it theirs, the
// transaction is made again and sends one part at a time.
const (
	flightBytes = 2 << 20
	largeValue  = 16 << 10
	smallBytes  = 2 * largeValue // the client makes requests of 16 KiB, to which it adds one value
)

// flights are the large requests that are under way to each store.
type flights struct {
	mu     sync.Mutex
	stores map[string]*semaphore.Weighted // by address
}

func (f *flights) to(store string) *semaphore.Weighted {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stores[store]
	if s == nil {
		if f.stores == nil {
			f.stores = map[string]*semaphore.Weighted{}
		}
		s = semaphore.NewWeighted(flightBytes)
		f.stores[store] = s
	}
	return s
}

// flight is a transaction with large requests. It implements interceptor.RPCInterceptor.
type flight struct {
	*flights
	ctx   context.Context // of the commit
	alone bool            // each large request waits for all others
	mu    sync.Mutex
	sizes map[string]int // of the large values that were sent, by key: the client drops its own at the commit
}

// Name implements interceptor.RPCInterceptor.
func (f *flight) Name() string { return "flight" }

// Wrap implements interceptor.RPCInterceptor.
func (f *flight) Wrap(next interceptor.RPCInterceptorFunc) interceptor.RPCInterceptorFunc {
	return func(store string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
		switch req.Type {
		case tikvrpc.CmdCommit:
			return f.commit(store, req, next)
		case tikvrpc.CmdPrewrite:
			return f.send(f.ctx, f.note(req.Prewrite().Mutations), store, req, next)
		}
		return next(store, req)
	}
}

// send sends a request of n bytes when it is its turn.
func (f *flight) send(ctx context.Context, n int, store string, req *tikvrpc.Request,
	next interceptor.RPCInterceptorFunc) (*tikvrpc.Response, error) {
	if n > smallBytes {
		if n = min(n, flightBytes); f.alone {
			n = flightBytes
		}
		s := f.to(store)
		if err := s.Acquire(ctx, int64(n)); err != nil {
			return nil, err
		}
		defer s.Release(int64(n))
	}
	return next(store, req)
}

// note notes the large values of a request. It returns the bytes of all.
func (f *flight) note(ms []*kvrpcpb.Mutation) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range ms {
		n += len(m.Key) + len(m.Value)
		if len(m.Value) > largeValue {
			f.sizes[string(m.Key)] = len(m.Value)
		}
	}
	return n
}

// commit sends the commit of many keys as several requests, one after the other. TiKV writes a value to its log once.
// But a store may do it again when the key is committed (unistore does), and then the keys of a request are one entry.
//
// The first portion has the primary key, if the request has it. This key alone decides: after it the transaction is
// committed, and readers commit keys that were left. So the answer for it is that of the request.
func (f *flight) commit(store string, req *tikvrpc.Request, next interceptor.RPCInterceptorFunc) (
	*tikvrpc.Response, error) {
	whole := req.Commit()
	keys := slices.Clone(whole.Keys)
	primary := slices.IndexFunc(keys, func(key []byte) bool { return bytes.Equal(key, whole.PrimaryKey) })
	if primary > 0 {
		keys[0], keys[primary] = keys[primary], keys[0]
	}
	ctx := f.ctx
	if primary < 0 { // the client does this after the write has returned
		ctx = context.WithoutCancel(ctx)
	}
	var answer *tikvrpc.Response
	for first := true; len(keys) > 0; first = false {
		n, size := f.portion(keys)
		part, some := *req, *whole
		some.Keys, part.Req, keys = keys[:n], &some, keys[n:]
		resp, err := f.send(ctx, size, store, &part, next)
		failed := err != nil || refusedCommit(resp)
		switch {
		case failed && (first || primary < 0):
			return resp, err
		case failed:
			return answer, nil
		case first:
			answer = resp
		}
	}
	return answer, nil
}

// portion returns how many of the keys are committed by one request, and the bytes of their large values.
func (f *flight) portion(keys [][]byte) (n, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := flightBytes
	if f.alone {
		most = partSize
	}
	for n < len(keys) {
		more := f.sizes[string(keys[n])]
		if n > 0 && size+more > most {
			break
		}
		size += more
		n++
	}
	return n, size
}

// refusedCommit reports whether a store has not committed.
func refusedCommit(resp *tikvrpc.Response) bool {
	if e, err := resp.GetRegionError(); e != nil || err != nil {
		return true
	}
	r, ok := resp.Resp.(*kvrpcpb.CommitResponse)
	return !ok || r.Error != nil
}

// isLarge reports whether a request of the batch may count.
func isLarge(b *kv.Batch) bool {
	if b.Size() <= largeValue {
		return false
	}
	for i := range b.Len() {
		if len(b.Op(i).Value) > largeValue {
			return true
		}
	}
	return false
}

// crowded reports whether a store has refused an entry of its log that has become too large by what others have
// written at the same time. Nothing was applied. Alone no request is large enough for that.
func crowded(err error) bool {
	return err != nil && strings.Contains(fmt.Sprint(err), "raft_entry_too_large")
}
