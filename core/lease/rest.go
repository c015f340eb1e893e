package lease

import (
	"context"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/work"
)

// looks is how often AwaitRest looks at a sign of life within its duration.
const looks = 8

// AwaitRest watches the signs of life in a store until none of their processes can be alive: each has shown the same
// number for its duration. alive is true, and the call ends early, if a process gives another sign, or begins to.
//
// A process that hasn't announced itself, and has nothing to do in the background, has no sign of life. So this finds
// all servers, and not every process.
func AwaitRest(ctx context.Context, eng kv.Engine, clk *clock.Clock) (alive bool, err error) {
	m := &Leases{eng: eng, clk: clk, seen: map[process]sight{}}
	for first := true; ; first = false {
		lives, _, err := m.all(ctx)
		if err != nil {
			return false, err
		}
		rest, least := true, defaultDuration
		for id, life := range lives {
			was, known := m.seen[id]
			if !first && (!known || was.value != string(life)) {
				return true, nil
			}
			silent, err := m.silent(id, life)
			if err != nil {
				return false, err
			}
			s, err := parseSign(life)
			if err != nil {
				return false, err
			}
			rest, least = rest && silent, min(least, s.duration)
		}
		if rest {
			return false, nil
		}
		if !work.Sleep(ctx, max(least/looks, time.Millisecond)) {
			return false, ctx.Err()
		}
	}
}

// PutEnd puts into b the end of all processes and leases of a store, and returns the preconditions: nothing has changed
// since they were read. From then on no commit that depends on one of these leases succeeds.
func PutEnd(ctx context.Context, eng kv.Engine, b *kv.Batch) (pre []kv.Precondition, err error) {
	snap, err := eng.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	lo, _ := keys.LeaseBounds()
	_, hi := keys.ProcessBounds() // signs of life follow leases; the records of APIs, of any number, are behind them
	err = each(snap, lo, hi, func(key, val []byte) error {
		k, v := append([]byte(nil), key...), append([]byte(nil), val...)
		b.Delete(k)
		pre = append(pre, kv.Precondition{Key: k, Expect: kv.Equal, Value: v})
		return nil
	})
	return pre, err
}
