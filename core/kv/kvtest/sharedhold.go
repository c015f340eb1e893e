package kvtest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
)

// holdLife is the longest time for which a process of a Shared holds a key.
const holdLife = 200 * time.Millisecond

// sharedHold is a key that a process holds. Writes of other processes with a precondition on it wait.
type sharedHold struct {
	key   string
	by    *Process
	over  chan struct{} // closed at its end
	until time.Time
}

// Hold implements kv.Holder.
func (p *Process) Hold(ctx context.Context, keys ...[]byte) (kv.Snapshot, error) {
	var has []*sharedHold
	s, err := p.holdAll(ctx, &has, keys)
	if err != nil {
		p.s.free(has)
		return nil, err
	}
	s.(*sharedSnapshot).holds = has
	return s, nil
}

// holdAll appends what it has taken to has, also when it fails.
func (p *Process) holdAll(ctx context.Context, has *[]*sharedHold, keys [][]byte) (kv.Snapshot, error) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, bytes.Compare)
	for _, key := range keys {
		h := &sharedHold{key: string(key), by: p, over: make(chan struct{})}
		for {
			other := p.s.tryHold(h)
			if other == nil {
				break
			}
			if err := p.await(ctx, other); err != nil {
				return nil, err
			}
		}
		*has = append(*has, h)
	}
	return p.Snapshot(ctx)
}

// tryHold takes a key. It returns who has it, or nil when it was free.
func (s *Shared) tryHold(h *sharedHold) (other *sharedHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.New().Now()
	if other := s.held[h.key]; other != nil && now.Before(other.until) {
		return other
	}
	if s.held == nil {
		s.held = map[string]*sharedHold{}
	}
	h.until = now.Add(holdLife)
	s.held[h.key] = h
	return nil
}

func (s *Shared) free(holds []*sharedHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holds {
		if s.held[h.key] == h {
			delete(s.held, h.key)
		}
		close(h.over)
	}
}

// await waits for the end of a hold.
func (p *Process) await(ctx context.Context, h *sharedHold) error {
	t := time.NewTimer(h.until.Sub(clock.New().Now()))
	defer t.Stop()
	select {
	case <-h.over:
	case <-t.C:
	case <-p.dead:
	case <-ctx.Done():
	}
	if err := p.running(); err != nil {
		return err
	}
	return unavailable(ctx.Err())
}

// heldAt returns what another process has of a key with a precondition; nil: there is none.
func (s *Shared) heldAt(p *Process, pre []kv.Precondition) *sharedHold {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range pre {
		h := s.held[string(pre[i].Key)]
		if h != nil && h.by != p && clock.New().Now().Before(h.until) {
			return h
		}
	}
	return nil
}
