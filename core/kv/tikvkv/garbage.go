package tikvkv

import (
	"context"
	"math"
	"strconv"
	"time"

	clientkv "github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/rangetask"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// KeptVersions is how long a snapshot can be read, by the clock of its process.
	KeptVersions = 10 * time.Minute
	// collected is the least age of versions that CollectGarbage removes. It is above KeptVersions, because clocks and
	// requests under way may be late.
	collected = KeptVersions + 2*time.Minute
	// garbageLasts is the longest time of one collection. The next one goes on where it has ended.
	garbageLasts = 24 * time.Hour
	// collectors is the number of regions that are looked at at the same time.
	collectors = 8
)

// CollectGarbage lets the cluster remove versions of keys that were replaced or deleted more than age ago, but never
// those of the last twelve minutes: snapshots can be read for ten (KeptVersions). A cluster for which nobody does this
// keeps every version.
//
// It settles transactions whose process has ended before, on the whole cluster. So it takes time, and one process calls
// it, every few minutes. The cluster keeps more if another program needs more.
func (e *Engine) CollectGarbage(ctx context.Context, age time.Duration) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	within, cancel := e.bound(ctx)
	now, err := e.timestamp(within)
	cancel()
	if err != nil {
		return e.fail(ctx, err)
	}
	safe := oracle.GoTimeToTS(oracle.GetTimeFromTS(now).Add(-max(age, collected)))
	within, cancel = lasting(ctx, garbageLasts)
	defer cancel()
	_, err = e.store.GC(within, safe)
	if status.Code(err) == codes.Unimplemented {
		err = e.collectByService(within, safe)
	}
	return e.fail(ctx, err)
}

// collectByService is CollectGarbage with the calls of Placement Drivers before version 9.
func (e *Engine) collectByService(ctx context.Context, safe uint64) error {
	driver := e.store.GetPDClient()
	least, err := driver.UpdateServiceGCSafePoint(ctx, "gc_worker", math.MaxInt64, safe)
	if err != nil {
		return err
	}
	safe = min(safe, least)
	// Clients learn the safe point from this record, and refuse to read below it.
	if err := e.store.GetSafePointKV().Put(tikv.GcSavedSafePoint, strconv.FormatUint(safe, 10)); err != nil {
		return err
	}
	locks := tikv.NewRegionLockResolver("orrery", e.store)
	settle := func(ctx context.Context, r clientkv.KeyRange) (rangetask.TaskStat, error) {
		return tikv.ResolveLocksForRange(ctx, locks, safe, r.StartKey, r.EndKey, tikv.NewGcResolveLockMaxBackoffer,
			tikv.GCScanLockLimit)
	}
	err = rangetask.NewRangeTaskRunner("orrery-garbage", e.store, collectors, settle).RunOnRange(ctx, nil, nil)
	if err != nil {
		return err
	}
	_, err = driver.UpdateGCSafePoint(ctx, safe)
	return err
}
