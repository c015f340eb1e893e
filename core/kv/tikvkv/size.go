package tikvkv

import (
	"context"

	"github.com/tikv/client-go/v2/tikv"
	pdhttp "github.com/tikv/pd/client/http"
)

// countedKeys is the number of keys up to which Size reads a range. Above it uses the statistics of the cluster.
const countedKeys = 4096

// statistics are those of the Placement Driver.
type statistics struct {
	codec *tikv.CodecPDClient // it encodes the keys of regions
	http  pdhttp.Client
}

// size returns the bytes of the regions with the stored keys of [lo, hi).
func (s *statistics) size(ctx context.Context, lo, hi []byte) (uint64, error) {
	lo, hi = s.codec.GetCodec().EncodeRegionRange(lo, hi)
	stats, err := s.http.GetRegionStatusByKeyRange(ctx, pdhttp.NewKeyRange(lo, hi), false)
	if err != nil {
		return 0, err
	}
	return uint64(stats.StorageSize) << 20, nil // MiB
}

// Size implements kv.Engine. A small range is read. Of a large one it is the size of the regions with its keys, which
// the cluster estimates in MiB.
func (e *Engine) Size(lo, hi []byte) (uint64, error) {
	ctx := context.Background()
	if err := e.open(ctx); err != nil {
		return 0, err
	}
	if empty, err := bothBounds(lo, hi); err != nil || empty {
		return 0, err
	}
	var size uint64
	plo, phi := e.parts(lo, hi)
	for _, r := range [][2][]byte{{e.data(lo), e.data(hi)}, {plo, phi}} {
		n, err := e.sizeOf(ctx, r[0], r[1])
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// sizeOf is Size of stored keys.
func (e *Engine) sizeOf(ctx context.Context, lo, hi []byte) (size uint64, err error) {
	within, cancel := e.bound(ctx)
	defer cancel()
	ts, err := e.timestamp(within)
	if err != nil {
		return 0, e.fail(ctx, err)
	}
	for from, keys := lo, 0; ; {
		pairs, end, err := e.scan(ctx, ts, from, hi, maxScan, false, false)
		if err != nil {
			return 0, err
		}
		for _, p := range pairs {
			size += uint64(len(p.key) + len(p.val))
		}
		if end {
			return size, nil
		}
		if keys += len(pairs); keys >= countedKeys && e.statistics != nil {
			break
		}
		from = append(pairs[len(pairs)-1].key, 0)
	}
	estimate, err := e.statistics.size(within, lo, hi)
	if err != nil {
		return 0, e.fail(ctx, err)
	}
	return max(size, estimate), nil
}

// SplitPoints implements kv.Engine. The keys are beginnings of regions, which the cluster keeps at similar sizes.
func (e *Engine) SplitPoints(lo, hi []byte, target uint64) ([][]byte, error) {
	size, err := e.Size(lo, hi)
	if err != nil || target == 0 {
		return nil, err
	}
	parts := int(size / target)
	if parts < 2 {
		return nil, nil
	}
	ctx, cancel := e.bound(context.Background())
	defer cancel()
	regions, err := e.store.GetRegionCache().LocateKeyRange(e.backoff(ctx), e.data(lo), e.data(hi))
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	regions = regions[1:] // the first one begins at lo or before it
	var cuts [][]byte
	for i := 1; i < parts && len(regions) > 0; i++ {
		r := regions[(i*len(regions))/parts]
		if key := e.key(r.StartKey); len(cuts) == 0 || string(key) != string(cuts[len(cuts)-1]) {
			cuts = append(cuts, append([]byte(nil), key...))
		}
	}
	return cuts, nil
}

// Presplit implements kv.Presplitter.
func (e *Engine) Presplit(ctx context.Context, keys [][]byte) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	at := make([][]byte, len(keys))
	for i, key := range keys {
		at[i] = e.data(key)
	}
	_, err := e.store.SplitRegions(within, at, true, nil)
	return e.fail(ctx, err)
}
