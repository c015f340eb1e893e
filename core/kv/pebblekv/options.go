package pebblekv

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure a store. The zero value is the small profile, for a laptop or a small container.
type Options struct {
	CacheMB    int  // cache of values and blocks in MiB; 0 means DefaultCacheMB
	MemTableMB int  // one memtable in MiB; 0 means DefaultMemTableMB; up to six exist while flushes lag (see pace)
	BlockKB    int  // data block in KiB; 0 means DefaultBlockKB
	Relaxed    bool // Wait returns at once: a crash may lose the last writes, never a part of a batch (see logTimer)

	// ReadOnly opens an existing store and changes nothing in its directory. Writes fail with kv.ErrUnavailable.
	ReadOnly bool

	// Upgrade allows to open a store of an older format for writing, and changes it to the current one for good.
	Upgrade   bool
	anyFormat bool // a store of any older format may be opened

	// Restoring opens a store that is being restored (see Restore). Without it Open refuses such a store.
	Restoring bool

	// Scanned reports keys that are only scanned, never read with Get or Has. Bloom filters leave them out. It must
	// never change for a store. nil: filters hold all keys.
	Scanned func(key []byte) bool

	// Kept reports keys that are read one by one, and more than once. Their values are cached in three quarters of
	// CacheMB. nil: all of CacheMB is for blocks.
	Kept func(key []byte) bool

	// Shared is the cache of blocks of several stores. CacheMB doesn't count then. nil: the store has one of its own.
	Shared *Cache

	// Reserve opens a store that may never be used: it merges nothing until Work is called.
	Reserve bool

	MinFree int64 // bytes of the disk that new data leaves free; 0: 256 MiB, or 5 % of a disk below 5 GiB
	// Stall is how long a disk operation may take before writes are refused; after six times as long the process ends.
	// 0: DefaultStall
	Stall time.Duration
	Fatal func(error) // ends the process when the store can't continue; nil: it logs the reason and exits with status 1

	Logger *slog.Logger // nil: only fatal errors are reported, on standard error
	FS     vfs.FS       // nil: the operating system's
}

// The small profile takes 300 MiB of resident memory with 100,000 documents: about the cache and two memtables. Blocks
// and up to six memtables share that memory. Both grow with use, and a memtable starts at 256 KiB, so an idle store
// takes little. Blocks have 8 KiB: in BenchmarkBlockSize single keys are read a sixth faster than with 16 KiB, and runs
// of 100 keys a quarter slower.
const (
	DefaultCacheMB    = 144
	DefaultMemTableMB = 16
	DefaultBlockKB    = 8
)

// storeFormat is the version of Pebble's files. Older servers can't open stores of a later version. docs/formats.md
// names it.
const storeFormat = pebble.FormatValueSeparation

// tuned maps Options to Pebble's. It differs from Pebble's defaults in:
//   - larger memtables, and fewer merges of L0, which saves a third of a write's CPU. Pebble offers a merge from one
//     run on (it counts each run twice), and pace decides when it runs;
//   - the tombstone of a dropped range is flushed after a second, because its space can't be freed before that;
//   - a base level of up to 256 MiB (less on a small disk, see space), so that most stores have only one level below L0
//     for a query to search;
//   - obsolete logs are deleted, not kept for reuse (see cleaner), and new ones grow in steps (see logFiles);
//   - bloom filters of 10 bits on every level: Has of an absent key reads no data block (see probe). Keys that are only
//     scanned are not in them (see filterPolicy);
//   - tables of 8 MiB in L0 (less on a small disk) and twice that on each further level, with index blocks of up to
//     512 KiB. The seeks of a query are spread over the whole key space, and opening a table or reading a second index
//     level cost a sixth of an equality query over 100,000 items;
//   - Fastest compression: the size of Snappy with a faster scan;
//   - the key order stays Pebble's default. Its Split is the whole key, so a filter answers for whole keys, which is
//     all that Has asks for.
func tuned(o Options, cache *pebble.Cache, p *pace, room *space) *pebble.Options {
	log := o.Logger
	po := &pebble.Options{
		Cache:                       cache,
		FS:                          namesFirst{logFiles{o.FS}},
		Cleaner:                     cleaner{},
		FormatMajorVersion:          storeFormat,
		MemTableSize:                uint64(room.memTable),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       stopRuns,
		LBaseMaxBytes:               room.base,
		WALBytesPerSync:             512 << 10,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(2, runtime.GOMAXPROCS(0)/2) },
		FlushDelayDeleteRange:       time.Second,
		EventListener: &pebble.EventListener{
			WriteStallBegin: func(i pebble.WriteStallBeginInfo) { log.Warn("Writes are stalled", "reason", i.Reason) },
			WriteStallEnd:   func() { log.Info("Writes go on") },
		},
	}
	for i := range po.TargetFileSizes {
		po.TargetFileSizes[i] = room.base / 32 << min(i, 4)
	}
	po.Experimental.CompactionScheduler = p
	filter := newFilterPolicy(o.Scanned)
	for i := range po.Levels {
		l := &po.Levels[i]
		l.BlockSize = o.BlockKB << 10
		l.IndexBlockSize = 512 << 10
		l.FilterPolicy = filter
		l.FilterType = pebble.TableFilter
		l.Compression = func() *block.CompressionProfile { return block.FastestCompression }
	}
	return po
}

// Cache is a cache of blocks that several stores share, so that each store takes little memory of its own.
type Cache struct{ blocks *pebble.Cache }

// NewCache makes a cache of so many MiB; 0 means DefaultCacheMB. The memtables of its stores count too. The caller
// closes it; its memory is freed when its last store is closed.
func NewCache(mb int) *Cache {
	if mb <= 0 {
		mb = DefaultCacheMB
	}
	return &Cache{pebble.NewCache(int64(mb) << 20)}
}

// Close ends the use by the caller.
func (c *Cache) Close() { c.blocks.Unref() }

// use returns the cache for another store, nil if c is nil.
func (c *Cache) use() *pebble.Cache {
	if c == nil {
		return nil
	}
	c.blocks.Ref()
	return c.blocks
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		v   *int
		def int
	}{{&o.CacheMB, DefaultCacheMB}, {&o.MemTableMB, DefaultMemTableMB}, {&o.BlockKB, DefaultBlockKB}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Stall <= 0 {
		o.Stall = DefaultStall
	}
	if o.Fatal == nil {
		o.Fatal = endProcess(o.Logger)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// quiet drops Pebble's info messages and passes errors on, one a minute.
type quiet struct {
	log  *slog.Logger
	fail *failure
	said *everyMinute
}

// Infof implements pebble.Logger.
func (quiet) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (q quiet) Errorf(f string, a ...any) {
	if left, ok := q.said.pass(); ok {
		q.log.Error("Store error", "message", fmt.Sprintf(f, a...), "others", left)
	}
}

// Fatalf implements pebble.Logger. Pebble calls it when the manifest can't be written or a file is lost. Continuing
// could then acknowledge writes that are not durable.
func (q quiet) Fatalf(f string, a ...any) { q.fail.now(f, a...) }
