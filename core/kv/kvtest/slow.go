package kvtest

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/kv"
)

// Slow is an engine whose calls take time: commits become durable late, and reads and writes go over a network.
type Slow struct {
	kv.Engine
	// Sync delays durability: a commit is visible at once, and durable when the channel is closed; nil: no delay.
	Sync atomic.Pointer[chan bool]
	// Far says that each call makes a round trip over a network, which takes Trip (0: no time). An iterator fetches a
	// batch of keys with each trip. The first batch has as many keys as Ahead says, or slowBatch; each later one has
	// twice as many as the one before. Set both fields before the engine is used.
	Far  bool
	Trip time.Duration

	trips atomic.Int64
}

// slowBatch is the number of keys of an iterator's first trip if Ahead was not called.
const slowBatch = 16

// Trips returns how many round trips there were.
func (s *Slow) Trips() int64 { return s.trips.Load() }

// trip makes one round trip: it waits, and counts.
func (s *Slow) trip(ctx context.Context) error {
	if !s.Far {
		return nil
	}
	s.trips.Add(1)
	if s.Trip == 0 {
		return unavailable(ctx.Err())
	}
	t := time.NewTimer(s.Trip)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// unavailable is the error of a call whose ctx has ended.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// Remote implements kv.Engine.
func (s *Slow) Remote() bool { return s.Far || s.Engine.Remote() }

// Get implements kv.Engine.
func (s *Slow) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := s.trip(ctx); err != nil {
		return dst, err
	}
	return s.Engine.Get(ctx, dst, key)
}

// Write implements kv.Engine.
func (s *Slow) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if err := s.trip(ctx); err != nil {
		return nil, err
	}
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

// Snapshot implements kv.Engine.
func (s *Slow) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := s.trip(ctx); err != nil {
		return nil, err
	}
	of, err := s.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &slowSnapshot{of, s, ctx}, nil
}

type slowSnapshot struct {
	kv.Snapshot
	e   *Slow
	ctx context.Context
}

// With implements kv.Lasting.
func (s *slowSnapshot) With(ctx context.Context) kv.Snapshot {
	return &slowSnapshot{kv.With(ctx, s.Snapshot), s.e, ctx}
}

// Get implements kv.Snapshot.
func (s *slowSnapshot) Get(dst, key []byte) ([]byte, error) {
	if err := s.e.trip(s.ctx); err != nil {
		return dst, err
	}
	return s.Snapshot.Get(dst, key)
}

// GetMany implements kv.Snapshot.
func (s *slowSnapshot) GetMany(v *kv.Values, keys [][]byte) error {
	if err := s.e.trip(s.ctx); err != nil {
		v.Reset()
		return err
	}
	return s.Snapshot.GetMany(v, keys)
}

// Has implements kv.Snapshot.
func (s *slowSnapshot) Has(key []byte) (bool, error) {
	if err := s.e.trip(s.ctx); err != nil {
		return false, err
	}
	return s.Snapshot.Has(key)
}

// Iter implements kv.Snapshot.
func (s *slowSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := s.Snapshot.Iter(lo, hi)
	if err != nil {
		return nil, err
	}
	return &slowIterator{of: it, s: s, empty: bytes.Compare(lo, hi) >= 0}, nil
}

// slowIterator counts the remaining keys of the batch that the last trip has fetched.
type slowIterator struct {
	of    kv.Iterator
	s     *slowSnapshot
	ahead int
	batch int // of the next trip
	left  int // keys after the present one, in the direction of back
	back  bool
	on    bool
	empty bool // the bounds hold nothing, so no trip is needed
	err   error
}

// seek is a positioning that begins a new batch.
func (i *slowIterator) seek(back bool, f func() bool) bool {
	if i.err != nil || i.empty {
		return false
	}
	if i.err = i.s.e.trip(i.s.ctx); i.err != nil {
		return false
	}
	if i.batch = i.ahead; i.batch == 0 {
		i.batch = slowBatch
	}
	i.left, i.back = i.batch-1, back
	i.on = f()
	return i.on
}

// step is Next or Prev.
func (i *slowIterator) step(back bool, f func() bool) bool {
	switch {
	case i.err != nil:
		return false
	case !i.on || i.back != back:
		return i.seek(back, f)
	case i.left == 0:
		if i.err = i.s.e.trip(i.s.ctx); i.err != nil {
			return false
		}
		i.batch *= 2
		i.left = i.batch
	}
	i.left--
	i.on = f()
	return i.on
}

func (i *slowIterator) First() bool   { return i.seek(false, i.of.First) }
func (i *slowIterator) Last() bool    { return i.seek(true, i.of.Last) }
func (i *slowIterator) Next() bool    { return i.step(false, i.of.Next) }
func (i *slowIterator) Prev() bool    { return i.step(true, i.of.Prev) }
func (i *slowIterator) Key() []byte   { return i.of.Key() }
func (i *slowIterator) Value() []byte { return i.of.Value() }
func (i *slowIterator) Ahead(n int)   { i.ahead = n }
func (i *slowIterator) SeekGE(key []byte) bool {
	return i.seek(false, func() bool { return i.of.SeekGE(key) })
}
func (i *slowIterator) SeekLT(key []byte) bool {
	return i.seek(true, func() bool { return i.of.SeekLT(key) })
}

// Reset implements kv.Iterator.
func (i *slowIterator) Reset(lo, hi []byte) {
	i.on, i.empty = false, bytes.Compare(lo, hi) >= 0
	i.of.Reset(lo, hi)
}

// Err implements kv.Iterator.
func (i *slowIterator) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.of.Err()
}

// Close implements kv.Iterator.
func (i *slowIterator) Close() error {
	if err := i.of.Close(); i.err == nil {
		return err
	}
	return i.err
}
