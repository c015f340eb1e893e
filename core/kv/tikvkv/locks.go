package tikvkv

import (
	"time"

	"github.com/orrerydb/orrery/core/kv"
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
const (
	lockLife       = time.Second
	mostDoubleLife = 4 // times that the life is doubled at most
)

// life returns how long the locks of a transaction live. late is how many times it has taken longer than they did.
func life(b *kv.Batch, late int) time.Duration {
	return (lockLife + time.Duration(b.Size()/bytesPerSecond)*time.Second) << min(late, mostDoubleLife)
}

// lockTTL gives the locks of a transaction a time to live, in milliseconds. It implements interceptor.RPCInterceptor.
type lockTTL uint64

// Name implements interceptor.RPCInterceptor.
func (lockTTL) Name() string { return "lock TTL" }

// Wrap implements interceptor.RPCInterceptor.
func (ms lockTTL) Wrap(next interceptor.RPCInterceptorFunc) interceptor.RPCInterceptorFunc {
	return func(store string, req *tikvrpc.Request) (*tikvrpc.Response, error) {
		if req.Type == tikvrpc.CmdPrewrite {
			req.Prewrite().LockTtl = uint64(ms)
		}
		return next(store, req)
	}
}
