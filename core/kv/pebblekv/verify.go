package pebblekv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
)

// Watch has functions that get the results and the progress of an examination. Both may be nil.
type Watch struct {
	Report   func(Problem)
	Progress func(done, total int64) // bytes of files; tables in a salvage
}

func (w *Watch) report(p Problem) {
	p.What = oneLine(p.What)
	if w.Report != nil {
		w.Report(p)
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Examine reads every file of the store in dir from beginning to end, and changes nothing. It returns the store, open
// for reading, or nil if it can't be opened; that has been reported. An error is one of the examination, not of the
// store.
func Examine(ctx context.Context, dir string, o Options, w Watch) (*Engine, error) {
	o.ReadOnly = true
	o = o.withDefaults()
	fs := readOnlyFS{o.FS}
	if _, err := fs.Stat(dir); files.IsMissing(err) {
		return nil, ErrNoStore
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		return nil, lockError(dir, err)
	}
	l, err := inspect(fs, dir, o.Restoring, w.report)
	if err = errors.Join(err, lock.Close()); err != nil {
		return nil, claiming(err)
	}
	if l.fresh {
		return nil, ErrNoStore
	}
	var e *Engine
	tables := l.tables
	if !l.broken {
		if e, err = openWatched(dir, o); err != nil {
			w.report(Problem{What: fmt.Sprintf("the store can't be opened: %v", err), Level: Broken})
		} else if tables, err = e.liveTables(tables); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if err := verifyTables(ctx, fs, dir, tables, w); err != nil {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
		return nil, err
	}
	return e, nil
}

// openWatched opens a store that may be damaged. Pebble panics at some kinds of damage.
func openWatched(dir string, o Options) (e *Engine, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, fmt.Errorf("%w: %v", kv.ErrCorruption, r)
		}
	}()
	o.Logger = nil
	return Open(dir, o)
}

// liveTables returns the tables of a directory that the manifest names.
func (e *Engine) liveTables(all []numbered) (live []numbered, err error) {
	levels, err := e.db.SSTables()
	if err != nil {
		return nil, translate(err)
	}
	named := map[uint64]bool{}
	for _, level := range levels {
		for i := range level {
			named[uint64(level[i].BackingSSTNum)] = true
		}
	}
	for _, t := range all {
		if named[t.num] {
			live = append(live, t)
		}
	}
	return live, nil
}

// verifyTables reads all blocks of the tables.
func verifyTables(ctx context.Context, fs vfs.FS, dir string, tables []numbered, w Watch) error {
	var total, done int64
	sizes := make([]int64, len(tables))
	for i, t := range tables {
		info, err := fs.Stat(fs.PathJoin(dir, t.name))
		if err != nil {
			w.report(Problem{t.name, fmt.Sprintf("can't be read: %v", err), Damage})
			continue
		}
		sizes[i] = info.Size()
		total += sizes[i]
	}
	for i, t := range tables {
		verifyTable(ctx, fs, fs.PathJoin(dir, t.name), func(what string) { w.report(Problem{t.name, what, Damage}) },
			func(at int64) {
				if w.Progress != nil {
					w.Progress(done+at, total)
				}
			})
		if err := ctx.Err(); err != nil {
			return err
		}
		done += sizes[i]
	}
	return nil
}

// maxBlocksNamed is the number of blocks of one table that are reported one by one.
const maxBlocksNamed = 20

// verifyTable reads all blocks of a table, which verifies their checksums.
func verifyTable(ctx context.Context, fs vfs.FS, path string, bad func(what string), progress func(at int64)) {
	defer func() {
		if r := recover(); r != nil {
			bad(fmt.Sprintf("the table can't be read: %v", r))
		}
	}()
	r, err := openTable(ctx, fs, path)
	if err != nil {
		bad(fmt.Sprintf("the table can't be opened: %v", err))
		return
	}
	defer r.Close()
	blocks, err := blocksOf(r)
	if err != nil {
		bad(fmt.Sprintf("the index of the table can't be read: %v", err))
		return
	}
	broken := 0
	for i, b := range blocks {
		if err := b.read(ctx, r, nil); err != nil {
			if broken++; broken <= maxBlocksNamed {
				bad(fmt.Sprintf("the %s block at byte %d, of %d bytes, can't be read: %v", b.Name, b.Offset,
					b.Length, err))
			}
		}
		if i%64 == 0 {
			progress(int64(b.Offset))
			if ctx.Err() != nil {
				return
			}
		}
	}
	if broken > maxBlocksNamed {
		bad(fmt.Sprintf("%d more blocks can't be read", broken-maxBlocksNamed))
	}
}

// openTable opens a table for reading, without a cache.
func openTable(ctx context.Context, fs vfs.FS, path string) (*sstable.Reader, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var o pebble.Options
	o.EnsureDefaults()
	return sstable.NewReader(ctx, readable, o.MakeReaderOptions())
}

// tableBlock is a block of a table, with the name of its kind.
type tableBlock struct{ sstable.NamedBlockHandle }

// blocksOf lists the blocks of a table in the order of the file. It has to read the indexes for that.
func blocksOf(r *sstable.Reader) (out []tableBlock, err error) {
	l, err := r.Layout()
	if err != nil {
		return nil, err
	}
	add := func(name string, h block.Handle) {
		if h.Length > 0 {
			out = append(out, tableBlock{sstable.NamedBlockHandle{Handle: h, Name: name}})
		}
	}
	for i := range l.Data {
		add("data", l.Data[i].Handle)
	}
	for _, h := range l.Index {
		add("index", h)
	}
	for _, f := range l.Filter {
		add("filter", f.Handle)
	}
	for _, h := range l.ValueBlock {
		add("value", h)
	}
	add("top index", l.TopIndex)
	add("range deletion", l.RangeDel)
	add("range key", l.RangeKey)
	add("value index", l.ValueIndex)
	add("properties", l.Properties)
	add("directory", l.MetaIndex)
	add("reference", l.BlobReferenceIndex)
	few.Sort(out, func(a, b tableBlock) int { return cmp.Compare(a.Offset, b.Offset) })
	return out, nil
}

// read reads a block and passes its contents to use, unless that is nil.
func (b tableBlock) read(ctx context.Context, r *sstable.Reader, use func(data []byte)) error {
	plain := func(*block.Metadata, []byte) error { return nil }
	h, err := r.BlockReader().Read(ctx, block.NoReadEnv, nil, b.Handle, blockkind.Metadata, plain)
	if err != nil {
		return err
	}
	defer h.Release()
	if use != nil {
		use(h.BlockData())
	}
	return nil
}
