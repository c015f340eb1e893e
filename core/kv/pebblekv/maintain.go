package pebblekv

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/cockroachdb/pebble/v2"
	"github.com/orrerydb/orrery/core/kv"
)

// enterRange begins a call with a key range. If it returns nil, the caller has to leave the gate.
func (e *Engine) enterRange(lo, hi []byte) error {
	if len(lo) == 0 || len(hi) == 0 {
		return fmt.Errorf("%w: a range needs both bounds", kv.ErrContract)
	}
	if !e.gate.enter() {
		return kv.ErrClosed
	}
	return nil
}

// DropRange implements kv.Engine; it is durable when it returns.
func (e *Engine) DropRange(ctx context.Context, lo, hi []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	if err := e.enterRange(lo, hi); err != nil {
		return err
	}
	defer e.gate.leave()
	if bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	if err := e.disk.admit(true); err != nil {
		return err
	}
	defer e.disk.fail.recovered()
	err := e.db.DeleteRange(lo, hi, pebble.Sync)
	e.pace.dropped()
	e.values.forget(lo, hi) // after an error too: the deletion may have been applied
	if err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
	}
	return nil
}

// Size implements kv.Engine: the compressed bytes in tables. Data that is only in memtables isn't counted.
func (e *Engine) Size(lo, hi []byte) (uint64, error) {
	if err := e.enterRange(lo, hi); err != nil {
		return 0, err
	}
	defer e.gate.leave()
	if bytes.Compare(lo, hi) >= 0 {
		return 0, nil
	}
	n, err := e.db.EstimateDiskUsage(lo, hi)
	return n, translate(err)
}

// SplitPoints implements kv.Engine: it returns boundaries of tables. For a range that was never flushed it returns
// none.
func (e *Engine) SplitPoints(lo, hi []byte, target uint64) ([][]byte, error) {
	if err := e.enterRange(lo, hi); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if bytes.Compare(lo, hi) >= 0 || target == 0 {
		return nil, nil
	}
	levels, err := e.db.SSTables(pebble.WithKeyRangeFilter(lo, hi))
	if err != nil {
		return nil, translate(err)
	}
	var tables []pebble.SSTableInfo
	for _, l := range levels {
		tables = append(tables, l...)
	}
	sort.Slice(tables, func(i, j int) bool {
		return bytes.Compare(tables[i].Smallest.UserKey, tables[j].Smallest.UserKey) < 0
	})
	var cuts [][]byte
	var n uint64
	for _, t := range tables {
		k := t.Smallest.UserKey
		if n >= target && bytes.Compare(k, lo) > 0 && bytes.Compare(k, hi) < 0 {
			cuts, n = append(cuts, bytes.Clone(k)), 0
		}
		n += t.Size
	}
	return cuts, nil
}

// Metrics are the figures that /metrics and /status publish.
type Metrics struct {
	DiskBytes      uint64 `json:"diskBytes"`
	WALBytes       uint64 `json:"logBytes"`
	Written        uint64 `json:"writtenBytes"` // to logs and tables since the store was opened
	MemTableBytes  uint64 `json:"memtableBytes"`
	CacheBytes     uint64 `json:"cacheBytes"`
	CacheHits      int64  `json:"cacheHits"`
	CacheMisses    int64  `json:"cacheMisses"`
	Values         int64  `json:"values"` // cached one by one
	ValueHits      int64  `json:"valueHits"`
	ValueMisses    int64  `json:"valueMisses"`
	Compactions    int64  `json:"compactions"`
	Flushes        int64  `json:"flushes"`
	CompactionDebt uint64 `json:"compactionDebtBytes"`
	Tables         int64  `json:"tables"`
	Runs           int64  `json:"runs"` // of L0: flushed, not yet merged into the tree (see pace)
}

// Metrics returns the current figures; after Close the zero value.
func (e *Engine) Metrics() Metrics {
	if !e.gate.enter() {
		return Metrics{}
	}
	defer e.gate.leave()
	m := e.db.Metrics()
	t := m.Total()
	out := Metrics{
		DiskBytes: m.DiskSpaceUsage(), WALBytes: m.WAL.Size, MemTableBytes: m.MemTable.Size,
		CacheBytes: uint64(m.BlockCache.Size),
		CacheHits:  m.BlockCache.Hits, CacheMisses: m.BlockCache.Misses,
		Compactions: m.Compact.Count, Flushes: m.Flush.Count, CompactionDebt: m.Compact.EstimatedDebt,
		Tables: t.TablesCount,
		Runs:   int64(m.Levels[0].Sublevels),
		// The total counts the bytes of logs, and of tables that were made elsewhere, as flushed.
		Written: t.TableBytesFlushed + t.TableBytesCompacted,
	}
	if v := e.values; v != nil {
		out.Values, out.ValueHits, out.ValueMisses = v.cache.EntryCount(), v.hits.Load(), v.misses.Load()
	}
	return out
}
