package kvtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
)

// Counting is a Process that counts reads of single keys, and snapshots.
type Counting struct {
	*Process
	Gets, Snapshots atomic.Int32
}

// Get implements kv.Engine.
func (e *Counting) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	e.Gets.Add(1)
	return e.Process.Get(ctx, dst, key)
}

// Snapshot implements kv.Engine.
func (e *Counting) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	e.Snapshots.Add(1)
	return e.Process.Snapshot(ctx)
}

// Taken returns the counts since the last call.
func (e *Counting) Taken() (gets, snapshots int) {
	return int(e.Gets.Swap(0)), int(e.Snapshots.Swap(0))
}

// ReadsOnce reports whether f makes no read of a single key, and has one snapshot. It calls f until it does, for ten
// seconds: something in the background may read meanwhile.
func (e *Counting) ReadsOnce(f func()) bool {
	for clk := clock.New(); clk.Elapsed() < 10*time.Second; time.Sleep(time.Millisecond) {
		e.Taken()
		f()
		if gets, snapshots := e.Taken(); gets == 0 && snapshots == 1 {
			return true
		}
	}
	return false
}
