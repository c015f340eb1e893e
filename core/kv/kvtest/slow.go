package kvtest

import (
	"context"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/kv"
)

// Slow is an engine whose commits are visible at once, and durable when Sync is closed; nil: at once too.
type Slow struct {
	kv.Engine
	Sync atomic.Pointer[chan bool]
}

// Write implements kv.Engine.
func (s *Slow) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c, err := s.Engine.Write(ctx, b, pre)
	if err != nil {
		return nil, err
	}
	return slowCommit{c, s.Sync.Load()}, nil
}

type slowCommit struct {
	kv.Commit
	sync *chan bool
}

// Wait implements kv.Commit.
func (c slowCommit) Wait() error {
	if c.sync != nil {
		<-*c.sync
	}
	return c.Commit.Wait()
}
