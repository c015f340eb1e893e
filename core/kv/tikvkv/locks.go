package tikvkv

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikvrpc"
	"github.com/tikv/client-go/v2/tikvrpc/interceptor"
)

// A transaction locks its keys in its first phase, and each lock says how long it lives from the transaction's
// timestamp (lock_ttl of TiKV's protocol). Whoever meets a lock waits for so long. Then it undoes the transaction, if
// that isn't committed, whether its process is alive or not. So the time is what others wait for a process that was
// killed in a commit, and what a living one has for the first phase.
//
// The client gives three seconds, and more to a transaction above 256 KiB. Here a transaction has lockLife and the time
// that its bytes need. A commit takes milliseconds, so only one in many meets an end that comes too early, for example
// while stores elect a leader. It has changed nothing, and is made again, with locks that live twice as long. So stores
// that are slower than lockLife make a commit late, not impossible.
//
// The client compares a lock's end with the last timestamp that it was given. It asks for one every lockLife / 4, in
// case nobody else in the process does.
//
// Example: a process is killed between the phases of a commit of 2 KB. A writer meets the lock 0.2 s later, and waits
// for 0.8 s. If its process does nothing else, it may notice a quarter of a second later that this time is over.
//
// A commit that meets a lock asks what has become of its transaction. If that is still under way, the client waits,
// each time twice as long: 0.1 s, 0.2, and so on up to the end of the lock. That is for nothing: when the other
// transaction is committed, this one is refused, because a key of it was written since its timestamp. So a commit that
// meets the same lock for the second time is refused at once, and made again from what is stored then. Otherwise a
// writer that has waited for a dead process's lock would wait for up to a second at each lock of a living one after it.
//
// Other locks of the same transaction are met for the first time: it may have ended and left some, which the client
// removes one after the other.
const (
	lockLife       = time.Second
	mostDoubleLife = 4 // times that the life is doubled at most
)

// life returns how long the locks of a transaction live. late is how many times it has taken longer than they did.
func life(b *kv.Batch, late int) time.Duration {
	return (lockLife + time.Duration(b.Size()/bytesPerSecond)*time.Second) << min(late, mostDoubleLife)
}

// lockTTL gives the locks of a transaction a time to live. It implements interceptor.RPCInterceptor.
type lockTTL struct {
	begun time.Time     // when the transaction's timestamp was asked for, from which the time counts
	life  time.Duration // from the request on
}

// Name implements interceptor.RPCInterceptor.
func (lockTTL) Name() string { return "lock TTL" }

// Wrap implements interceptor.RPCInterceptor.
func (l lockTTL) Wrap(next interceptor.RPCInterceptorFunc) interceptor.RPCInterceptorFunc {
	return func(store string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
		ms := uint64((time.Since(l.begun) + l.life).Milliseconds())
		switch req.Type {
		case tikvrpc.CmdPrewrite:
			req.Prewrite().LockTtl = ms
		case tikvrpc.CmdPessimisticLock:
			lock := req.PessimisticLock()
			lock.LockTtl, lock.WaitTimeout = ms, min(lock.WaitTimeout, holdLook.Milliseconds())
		}
		return next(store, req)
	}
}

// meetings are the locks that a commit has met. It implements interceptor.RPCInterceptor.
type meetings struct {
	mu   sync.Mutex
	met  map[meeting]bool
	held atomic.Pointer[[]byte] // the key of one that is of a writer who holds it
}

// meeting is a lock: its key, and the timestamp of its transaction.
type meeting struct {
	key string
	ts  uint64
}

// Name implements interceptor.RPCInterceptor.
func (m *meetings) Name() string { return "meetings" }

// Wrap implements interceptor.RPCInterceptor.
func (m *meetings) Wrap(next interceptor.RPCInterceptorFunc) interceptor.RPCInterceptorFunc {
	return func(store string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
		resp, err := next(store, req)
		if err != nil || req.Type != tikvrpc.CmdPrewrite {
			return resp, err
		}
		if r, ok := resp.Resp.(*kvrpcpb.PrewriteResponse); ok {
			for i, e := range r.Errors {
				l := e.Locked
				if l == nil {
					continue
				}
				held := holds(l, req.Prewrite().StartVersion)
				if held {
					m.held.Store(&l.Key)
				}
				if held || m.again(meeting{string(l.Key), l.LockVersion}) {
					r.Errors[i] = &kvrpcpb.KeyError{Conflict: &kvrpcpb.WriteConflict{
						StartTs: req.Prewrite().StartVersion, ConflictTs: l.LockVersion,
						Key: l.Key, Primary: l.PrimaryLock, Reason: kvrpcpb.WriteConflict_Optimistic,
					}}
				}
			}
		}
		return resp, nil
	}
}

// holds reports whether a lock is of a writer that holds the key, and hasn't ended at a timestamp.
func holds(l *kvrpcpb.LockInfo, ts uint64) bool {
	return l.LockType == kvrpcpb.Op_PessimisticLock &&
		oracle.ExtractPhysical(ts) < oracle.ExtractPhysical(l.LockVersion)+int64(l.LockTtl)
}

// again reports whether a lock has been met before.
func (m *meetings) again(lock meeting) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.met == nil {
		m.met = map[meeting]bool{}
	}
	before := m.met[lock]
	m.met[lock] = true
	return before
}
