package kv

import (
	"context"
	"fmt"
)

// Prepared is a batch for which an engine has done everything that doesn't depend on the order of writes. A writer that
// needs a latch for that order prepares most of its batch without the latch, and adds the rest under it. Prepared is
// for one Write or Discard. Not safe for concurrent use.
type Prepared interface {
	// Patch overwrites the first bytes of the value of operation i (the i of Batch.Op) with head, which must not be
	// longer than the value. The operation must be a PutOpen.
	Patch(i int, head []byte)
	// On says that the preconditions of Write hold in s, or have been seen to hold since then. s stays open until Write
	// has returned. An engine that can base a write on a snapshot (Basis) doesn't read them again.
	On(s Snapshot)
	// Write is Engine.Write of the prepared operations followed by those of late. late may be reused when Write has
	// returned.
	Write(ctx context.Context, late *Batch, pre []Precondition) (Commit, error)
	// Discard ends the Prepared without a write.
	Discard()
}

// Preparer is an Engine that prepares batches.
type Preparer interface {
	// Prepare prepares b, and reserves memory for room more bytes of keys and values. The errors are those that Write
	// returns for the batch itself. The Prepared owns b, and may change the values of PutOpen in it, until Discard,
	// until Write fails, or until its Commit's Wait returns.
	Prepare(b *Batch, room int) (Prepared, error)
}

// Prepare prepares b on any engine; see Preparer.
func Prepare(e Engine, b *Batch, room int) (Prepared, error) {
	if p, ok := e.(Preparer); ok {
		return p.Prepare(b, room)
	}
	if err := e.Limits().CheckBatch(b); err != nil {
		return nil, err
	}
	return &plain{e: e, b: b}, nil
}

// plain is a batch of an engine that isn't a Preparer.
type plain struct {
	e  Engine
	b  *Batch
	on Snapshot // nil: the preconditions weren't read in a snapshot
}

func (p *plain) On(s Snapshot) { p.on = s }

func (p *plain) Patch(i int, head []byte) { p.b.Patch(i, head) }

func (p *plain) Write(ctx context.Context, late *Batch, pre []Precondition) (Commit, error) {
	p.b.Append(late)
	if s, ok := p.on.(Basis); ok {
		return s.WriteFrom(ctx, p.b, pre)
	}
	return p.e.Write(ctx, p.b, pre)
}

func (p *plain) Discard() {}

// Patch overwrites the first bytes of the value of operation i with head, which must not be longer than the value.
func (b *Batch) Patch(i int, head []byte) {
	s := b.ends[i]
	if s.end-s.val < len(head) {
		panic(fmt.Sprintf("kv contract: a patch of %d bytes on a value of %d", len(head), s.end-s.val))
	}
	copy(b.buf[s.val:], head)
}

// Append adds the operations of o after those of b.
func (b *Batch) Append(o *Batch) {
	at := len(b.buf)
	b.buf = append(b.buf, o.buf...)
	for _, s := range o.ends {
		s.key, s.val = s.key+at, s.val+at
		if s.end >= 0 {
			s.end += at
		}
		b.ends = append(b.ends, s)
	}
}
