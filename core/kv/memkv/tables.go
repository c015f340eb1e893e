package memkv

import (
	"context"
	"fmt"

	"github.com/orrerydb/orrery/core/kv"
)

var _ kv.Ingester = (*Engine)(nil)

// tables implements kv.Tables: a batch of any size.
type tables struct {
	e     *Engine
	ctx   context.Context
	added kv.Batch
}

// Tables implements kv.Ingester.
func (e *Engine) Tables(ctx context.Context) kv.Tables { return &tables{e: e, ctx: ctx} }

// Add implements kv.Tables.
func (t *tables) Add(key, value []byte) error {
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	t.added.Put(key, value)
	return nil
}

// Size implements kv.Tables.
func (t *tables) Size() int { return t.added.Size() }

// Ingest implements kv.Tables.
func (t *tables) Ingest(pre []kv.Precondition) error {
	if t.added.Len() == 0 {
		return nil
	}
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	err := t.e.apply(&t.added, pre)
	if err == nil {
		t.added.Reset()
	}
	return err
}

// Close implements kv.Tables.
func (t *tables) Close() { t.added = kv.Batch{} }
