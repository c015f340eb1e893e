package kv

import (
	"context"
	"fmt"
)

// Prepared is a batch for which an engine has already done everything that doesn't depend on its place among other
// writes. A writer that holds a latch for that place makes nearly all of its batch without the latch, and adds the rest
// under it. Prepared is for one Write or Discard. It is not safe for concurrent use.
type Prepared interface {
	// Patch overwrites the first bytes of the value of operation i, as Batch.Op counts, by head, which isn't longer
	// than the value. The operation is one of PutOpen.
	Patch(i int, head []byte)
	// Write is Engine.Write of the prepared operations with those of late behind them. late may be used again when
	// Write has returned.
	Write(ctx context.Context, late *Batch, pre []Precondition) (Commit, error)
	// Discard gives the batch up instead.
	Discard()
}

// Preparer is an Engine that prepares batches.
type Preparer interface {
	// Prepare prepares b, with memory for room more bytes of keys and values. The errors are those that Write has for
	// the batch itself. b belongs to the Prepared, which may change the values of PutOpen in it, until Discard, or
	// until Write has failed, or until its Commit's Wait has returned.
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
	return &plain{e, b}, nil
}

// plain is a batch on an engine that prepares nothing.
type plain struct {
	e Engine
	b *Batch
}

func (p *plain) Patch(i int, head []byte) { p.b.Patch(i, head) }

func (p *plain) Write(ctx context.Context, late *Batch, pre []Precondition) (Commit, error) {
	p.b.Append(late)
	return p.e.Write(ctx, p.b, pre)
}

func (p *plain) Discard() {}

// Patch overwrites the first bytes of the value of operation i by head, which isn't longer than the value.
func (b *Batch) Patch(i int, head []byte) {
	s := b.ends[i]
	if s.end-s.val < len(head) {
		panic(fmt.Sprintf("kv contract: a patch of %d bytes on a value of %d", len(head), s.end-s.val))
	}
	copy(b.buf[s.val:], head)
}

// Append adds the operations of o behind those of b.
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
