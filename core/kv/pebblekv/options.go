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

// Options choose the profile. The zero value is the small one: it is what a laptop or a small container should run.
type Options struct {
	CacheMB    int  // cache of values and blocks in MiB; 0 means DefaultCacheMB
	MemTableMB int  // one memtable in MiB; 0 means DefaultMemTableMB; up to six exist while flushes lag (see pace)
	BlockKB    int  // data block in KiB; 0 means DefaultBlockKB
	Relaxed    bool // Wait returns at once: a crash may lose the last moments, never tear a batch (see logTimer)

	// ReadOnly opens a store that is there, and changes nothing in its directory: writes fail with kv.ErrUnavailable.
	ReadOnly bool

	// Upgrade opens a store of an older format for writing, and gives it the present one: there is no way back.
	Upgrade   bool
	anyFormat bool // a store of an older format may be opened

	// Restoring opens a store that is being restored, see Restore; other opens refuse it.
	Restoring bool

	// Scanned reports keys that are only ever scanned, never got: bloom filters leave them out. It must not change for
	// the life of a store. nil: filters hold all keys.
	Scanned func(key []byte) bool

	// Kept reports keys that are got one by one, and got again: their values are kept in three quarters of CacheMB.
	// nil: all of it is for blocks.
	Kept func(key []byte) bool

	MinFree int64 // bytes of the disk that new data leaves free; 0: 256 MiB, or 5 % of a disk below 5 GiB
	// how long the disk may take before writes are refused, a sixth of when the process ends; 0: DefaultStall
	Stall time.Duration
	Fatal func(error) // ends the process when the store can't go on; nil: it logs the reason and exits with status 1

	Logger *slog.Logger // nil: silent but for fatal errors
	FS     vfs.FS       // nil: the operating system's
}

// The small profile: 300 MiB of resident memory with 100,000 documents. Memory is about cache + 2 x memtable, which
// blocks and up to six memtables share. Both grow with use (a memtable starts at 256 KiB), so idle costs little. Blocks
// of 8 KiB: BenchmarkBlockSize reads single keys a sixth faster than with 16 KiB, runs of 100 a quarter slower.
const (
	DefaultCacheMB    = 144
	DefaultMemTableMB = 16
	DefaultBlockKB    = 8
)

// storeFormat is the version of Pebble's files. A later one makes stores that older servers can't open: docs/formats.md
// names it.
const storeFormat = pebble.FormatValueSeparation

// tuned maps Options to Pebble's. What differs from Pebble's defaults, and why:
//   - larger memtables, and merges of L0 that wait for their time (see pace) although they are asked for from one run
//     on, because Pebble counts each run twice: that saves a third of a write's CPU;
//   - a dropped range is flushed after a second: until then its space can't come back;
//   - a base level of up to 256 MiB (less on a small disk, see space), so that most stores have one level below L0,
//     where queries look;
//   - used logs are deleted, not kept for the next ones (see cleaner);
//   - bloom filters of 10 bits on every level: Has on an absent key reads no data block (see probe). Keys that are
//     only scanned are not in them (see filterPolicy);
//   - tables of 8 MiB in L0 (less on a small disk) and twice that a level below, with index blocks of up to 512 KiB: a
//     query's seeks are spread over the whole key space, and opening a table or reading a second level of its index
//     cost an equality over 100,000 items a sixth;
//   - Fastest compression: the size of Snappy at a cheaper scan;
//   - the byte order stays Pebble's default. Its Split is the whole key, so a filter answers for exact keys, which is
//     all that Has asks for.
func tuned(o Options, cache *pebble.Cache, p *pace, room *space) *pebble.Options {
	log := o.Logger
	po := &pebble.Options{
		Cache:                       cache,
		FS:                          namesFirst{slimLogs{o.FS}},
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

// quiet drops Pebble's chatter and passes errors on.
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

// Fatalf implements pebble.Logger. Pebble calls it when the manifest can't be written or a file is lost, where going on
// could acknowledge what is not durable.
func (q quiet) Fatalf(f string, a ...any) { q.fail.now(f, a...) }
