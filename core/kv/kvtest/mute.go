package kvtest

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/kv"
)

// Mute is an engine whose reads of single keys can wait until their ctx ends: the store is there, and doesn't answer.
type Mute struct {
	kv.Engine
	Now   atomic.Bool
	Only  []byte       // if it isn't empty, only the keys that begin with it aren't answered
	Asked atomic.Int64 // reads of such keys
}

// Get implements kv.Engine.
func (m *Mute) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if bytes.HasPrefix(key, m.Only) {
		m.Asked.Add(1)
		if m.Now.Load() {
			<-ctx.Done()
			return dst, fmt.Errorf("%w: %w", kv.ErrUnavailable, ctx.Err())
		}
	}
	return m.Engine.Get(ctx, dst, key)
}
