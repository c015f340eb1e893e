package pebblekv

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/orrerydb/orrery/core/kv"
)

var _ kv.Preparer = (*Engine)(nil)

// prepared implements kv.Prepared: the batch in Pebble's format, and its footprint. Operations of PutOpen are added to
// Pebble's batch when they are complete.
type prepared struct {
	e     *Engine
	b     *kv.Batch
	pb    *pebble.Batch
	f     *footprint
	open  []int   // indexes of operations of b that pb doesn't have yet
	bytes int     // of keys and values of b
	kept  []touch // operations on keys that may be cached in values
	order []uint64
}

var preparations = sync.Pool{New: func() any { return new(prepared) }}

// opBytes is about what Pebble adds to an operation's key and value. It is used to size the batch.
const opBytes = 11

// Write implements kv.Engine.
func (e *Engine) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	p, err := e.Prepare(b, 0)
	if err != nil {
		return nil, err
	}
	return p.Write(ctx, &kv.Batch{}, pre)
}

// Prepare implements kv.Preparer. A prepared batch is a user at the gate.
func (e *Engine) Prepare(b *kv.Batch, room int) (kv.Prepared, error) {
	if err := limits.CheckBatch(b); err != nil {
		return nil, err
	}
	if !e.gate.enter() {
		return nil, kv.ErrClosed
	}
	if err := e.disk.admit(b.Frees); err != nil {
		e.gate.leave()
		return nil, err
	}
	e.pace.admit(b.Size(), b.Background)
	n := b.Len()
	p := preparations.Get().(*prepared)
	p.e, p.b, p.bytes, p.open, p.kept = e, b, b.Size(), p.open[:0], p.kept[:0]
	p.pb = e.db.NewBatchWithSize(batchrepr.HeaderLen + b.Size() + opBytes*(n+1) + room)
	p.f = footprints.Get().(*footprint)
	p.f.begin(n)
	if n < groupFrom || n > groupMost {
		for i := range n {
			p.add(i)
		}
		return p, nil
	}
	p.group(b)
	for _, at := range p.order {
		p.add(int(at & (groupMost - 1)))
	}
	return p, nil
}

// add adds operation i of b.
func (p *prepared) add(i int) {
	op := p.b.Op(i)
	if op.Open {
		p.open = append(p.open, i)
	} else {
		p.set(op)
	}
	p.note(op.Key, i, false)
}

// set appends an operation to Pebble's batch.
func (p *prepared) set(op kv.Op) {
	if op.Delete {
		_ = p.pb.Delete(op.Key, nil)
	} else {
		_ = p.pb.Set(op.Key, op.Value, nil)
	}
}

// note records that operation i of b, or of the late batch, writes key.
func (p *prepared) note(key []byte, i int, late bool) {
	hash := p.f.addWritten(key)
	if p.e.values.keeps(key) {
		p.kept = append(p.kept, touch{hash: hash, op: i, late: late})
	}
}

// Batches of groupFrom to groupMost operations are grouped. So the index of an operation fits into 16 bits.
const (
	groupFrom = 128
	groupMost = 1 << 16
)

// group orders the operations by the six bytes after the common prefix of all keys. Operations on one key keep their
// order. The memtable inserts a key faster near the key before it: a batch of 100 items, whose index entries of one
// path are neighbours, takes a third less time there. Sorting by whole keys would gain no more than it costs.
//
// Example: the keys x/b1, x/a2 and x/b0 have the common prefix x/. The order becomes x/a2, x/b0, x/b1.
func (p *prepared) group(b *kv.Batch) {
	n := b.Len()
	first := b.Op(0).Key
	for i := range n {
		key := b.Op(i).Key
		if bytes.HasPrefix(key, first) {
			continue
		}
		same := 0
		for same < len(key) && key[same] == first[same] {
			same++
		}
		first = first[:same]
	}
	p.order = slices.Grow(p.order[:0], n)[:n]
	for i := range n {
		var head [8]byte
		copy(head[:6], b.Op(i).Key[len(first):])
		p.order[i] = binary.BigEndian.Uint64(head[:]) | uint64(i)
	}
	slices.Sort(p.order)
}

// Patch implements kv.Prepared.
func (p *prepared) Patch(i int, head []byte) { p.b.Patch(i, head) }

// On implements kv.Prepared. Preconditions are read where they are written, which costs nothing more.
func (p *prepared) On(kv.Snapshot) {}

// Write implements kv.Prepared.
func (p *prepared) Write(ctx context.Context, late *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	e, pb := p.e, p.pb
	err := ctx.Err()
	if err != nil {
		err = fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	} else if err = limits.CheckBatch(late); err == nil && p.bytes+late.Size() > limits.Batch {
		err = fmt.Errorf("%w: batch of %d bytes, limit %d", kv.ErrTooLarge, p.bytes+late.Size(), limits.Batch)
	}
	if err == nil {
		p.complete(late)
		for i := range pre {
			p.f.pre = append(p.f.pre, xxhash.Sum64(pre[i].Key))
		}
		e.writing.enter(p.f)
		if err = e.check(pre); err == nil {
			err = e.apply(p, late)
		}
		e.writing.leave(p.f)
	}
	defer p.free()
	if err != nil || e.relaxed != nil {
		_ = pb.Close()
	}
	if err != nil {
		return nil, err
	}
	if e.relaxed != nil {
		return relaxedCommit{}, nil
	}
	return e.syncing.add(&e.disk.stall, pb), nil
}

// complete adds the operations that Prepare left out, and those of late.
func (p *prepared) complete(late *kv.Batch) {
	for _, i := range p.open {
		p.set(p.b.Op(i))
	}
	for i := range late.Len() {
		op := late.Op(i)
		p.set(op)
		p.note(op.Key, i, true)
	}
}

// Discard implements kv.Prepared.
func (p *prepared) Discard() {
	_ = p.pb.Close()
	p.free()
}

// free leaves the gate and releases the memory.
func (p *prepared) free() {
	p.e.gate.leave()
	p.f.free()
	if p.b, p.pb = nil, nil; max(cap(p.order), cap(p.kept), cap(p.open)) <= maxFootprint {
		preparations.Put(p)
	}
}
