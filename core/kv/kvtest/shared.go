package kvtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
)

// Shared is a store that several engines use at the same time, as several processes do over a network. Each Engine call
// returns the engine of one more process. Calls take a random time and may fail, as the Faults say.
//
// Example: of two engines the first writes a key and is killed. The second reads the key, and goes on writing.
type Shared struct {
	of kv.Engine

	mu     sync.Mutex // guards the following
	random *rand.Rand
	faults Faults
	held   map[string]*sharedHold
	calls  int               // since Interrupt has begun a run
	fails  func(n int) error // what Interrupt has the n-th of them end with; nil: nothing
}

// Faults says what can go wrong in a Shared. The zero value is a fast network without faults.
type Faults struct {
	Least, Most time.Duration // how long a call takes
	Unavailable float64       // the probability that a call fails before it has done anything
	// Unknown is the probability that a write ends with an unknown outcome. It was then applied, or it was not, or it
	// is still on its way, and is applied or refused Late afterwards.
	Unknown float64
	Late    time.Duration
	Oldest  time.Duration // age at which a snapshot can no longer be read; 0: never
}

// NewShared returns a store over an engine, which stays the caller's. The same seed gives the same faults to calls in
// the same order.
func NewShared(of kv.Engine, seed uint64) *Shared {
	return &Shared{of: of, random: rand.New(rand.NewPCG(seed, 1))}
}

// SetFaults replaces the faults. It may be called at any time.
func (s *Shared) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Interrupt runs do again and again, and prepare before each run. In the first run the first call of an engine ends
// with err, in the second run the second one, and so on, until a run makes fewer calls. If the fault is lasting, all
// later calls of the run fail too. If err is kv.ErrSnapshotTooOld, only reads of snapshots are counted, and a snapshot
// that was too old once stays so.
func (s *Shared) Interrupt(err error, lasting bool, prepare, do func()) {
	for at, reached := 0, true; reached; at++ {
		prepare()
		s.mu.Lock()
		s.calls, s.fails = 0, func(n int) error {
			if n == at || lasting && n > at {
				return err
			}
			return nil
		}
		s.mu.Unlock()
		do()
		s.mu.Lock()
		reached, s.fails = s.calls > at, nil
		s.mu.Unlock()
	}
}

// Engine returns the engine of one more process.
func (s *Shared) Engine() *Process {
	p := &Process{Engine: s.of, s: s, dead: make(chan struct{})}
	p.runs = sync.NewCond(&p.mu)
	return p
}

// draw is what happens to one call.
type draw struct {
	takes  time.Duration
	fails  error
	unsure int // of a write: 0 its outcome is known; 1 applied; 2 not applied; 3 on its way
	late   time.Duration
	oldest time.Duration
}

// draw draws what happens to the next call; aging says whether it reads a snapshot.
func (s *Shared) draw(aging bool) (d draw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.faults
	d.takes, d.late, d.oldest = f.Least, f.Late, f.Oldest
	if f.Most > f.Least {
		d.takes += time.Duration(s.random.Int64N(int64(f.Most - f.Least)))
	}
	if f.Unavailable > 0 && s.random.Float64() < f.Unavailable {
		d.fails = fmt.Errorf("%w: a fault of the test", kv.ErrUnavailable)
	}
	if s.fails != nil {
		if err := s.fails(s.calls); aging || !errors.Is(err, kv.ErrSnapshotTooOld) {
			d.fails = cmp.Or(err, d.fails)
			s.calls++
		}
	}
	if f.Unknown > 0 && s.random.Float64() < f.Unknown {
		d.unsure = 1 + s.random.IntN(3)
	}
	return d
}

// Process is the engine of one process over a Shared.
type Process struct {
	kv.Engine // that of the store

	s    *Shared
	dead chan struct{} // closed by Kill and Close

	mu     sync.Mutex // guards the following
	runs   *sync.Cond
	paused bool
	over   bool
}

// Remote implements kv.Engine.
func (p *Process) Remote() bool { return true }

// Shared implements kv.Engine.
func (p *Process) Shared() bool { return true }

// Pause stops the process: its calls begin or return only after Resume.
func (p *Process) Pause() { p.set(true, false) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.set(false, false) }

// Kill ends the process: all of its calls fail from now on. Writes that are under way may or may not be applied.
func (p *Process) Kill() { p.set(false, true) }

func (p *Process) set(paused, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	if over && !p.over {
		p.over = true
		close(p.dead)
	}
	p.runs.Broadcast()
}

// Close implements kv.Engine. The store stays open for others.
func (p *Process) Close() error {
	if err := p.running(); err != nil {
		return err
	}
	p.Kill()
	return nil
}

// Size implements kv.Engine.
func (p *Process) Size(lo, hi []byte) (uint64, error) {
	if err := p.running(); err != nil {
		return 0, err
	}
	return p.Engine.Size(lo, hi)
}

// SplitPoints implements kv.Engine.
func (p *Process) SplitPoints(lo, hi []byte, target uint64) ([][]byte, error) {
	if err := p.running(); err != nil {
		return nil, err
	}
	return p.Engine.SplitPoints(lo, hi, target)
}

// Checkpoint implements kv.Engine.
func (p *Process) Checkpoint(ctx context.Context, dir string) error {
	if err := p.running(); err != nil {
		return err
	}
	return p.Engine.Checkpoint(ctx, dir)
}

// running waits while the process is paused.
func (p *Process) running() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.paused && !p.over {
		p.runs.Wait()
	}
	if p.over {
		return kv.ErrClosed
	}
	return nil
}

// call makes one round trip.
func (p *Process) call(ctx context.Context, aging bool) (draw, error) {
	if err := p.running(); err != nil {
		return draw{}, err
	}
	d := p.s.draw(aging)
	if d.takes > 0 {
		t := time.NewTimer(d.takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.dead:
		case <-ctx.Done():
		}
	}
	if err := p.running(); err != nil {
		return d, err
	}
	if err := unavailable(ctx.Err()); err != nil {
		return d, err
	}
	return d, d.fails
}

// Get implements kv.Engine.
func (p *Process) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if _, err := p.call(ctx, false); err != nil {
		return dst, err
	}
	return p.Engine.Get(ctx, dst, key)
}

// Write implements kv.Engine.
func (p *Process) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	d, err := p.call(ctx, false)
	if err != nil {
		return nil, err
	}
	unsure := fmt.Errorf("%w: a fault of the test", kv.ErrUnknownOutcome)
	switch d.unsure {
	case 2:
		return nil, unsure
	case 3:
		p.later(d.late, b, pre)
		return nil, unsure
	}
	for h := p.s.heldAt(p, pre); h != nil; h = p.s.heldAt(p, pre) {
		if err := p.await(ctx, h); err != nil {
			return nil, err
		}
	}
	w, err := p.Engine.Write(context.WithoutCancel(ctx), b, pre)
	if d.unsure == 1 && (err == nil || errors.Is(err, kv.ErrConflict)) || err == nil && p.running() != nil {
		return nil, unsure
	}
	if err == nil && b.Followed {
		at := clock.New().Now()
		if of, err := p.Engine.Snapshot(context.WithoutCancel(ctx)); err == nil {
			return &sharedCommit{Commit: w, at: at, of: p.snapshot(of, d.oldest)}, nil
		}
	}
	return w, err
}

// sharedCommit has a snapshot for the writer after it. It implements kv.Follower.
type sharedCommit struct {
	kv.Commit
	at time.Time
	of *sharedSnapshot // nil: it was given
}

// After implements kv.Follower.
func (c *sharedCommit) After(ctx context.Context) (kv.Snapshot, time.Time) {
	of := c.of
	if c.of = nil; of == nil {
		return nil, time.Time{}
	}
	of.ctx = ctx
	return of, c.at
}

// later applies a write after a time, or does not if its preconditions don't hold then. It has its own copy of
// everything, because its caller goes on.
func (p *Process) later(after time.Duration, b *kv.Batch, pre []kv.Precondition) {
	own := &kv.Batch{Frees: b.Frees}
	own.Append(b)
	holds := make([]kv.Precondition, len(pre))
	for i, c := range pre {
		holds[i] = kv.Precondition{Key: append([]byte(nil), c.Key...), Expect: c.Expect,
			Value: append([]byte(nil), c.Value...)}
	}
	time.AfterFunc(after, func() { _, _ = p.Engine.Write(context.Background(), own, holds) })
}

// DropRange implements kv.Engine.
func (p *Process) DropRange(ctx context.Context, lo, hi []byte) error {
	if _, err := p.call(ctx, false); err != nil {
		return err
	}
	return p.Engine.DropRange(ctx, lo, hi)
}

// Snapshot implements kv.Engine.
func (p *Process) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	d, err := p.call(ctx, false)
	if err != nil {
		return nil, err
	}
	of, err := p.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	snap := p.snapshot(of, d.oldest)
	snap.ctx = ctx
	return snap, nil
}

// snapshot returns a snapshot of the process, which can be read until its age is oldest; 0: always. The caller sets
// ctx.
func (p *Process) snapshot(of kv.Snapshot, oldest time.Duration) *sharedSnapshot {
	snap := &sharedSnapshot{Snapshot: of, p: p, old: new(atomic.Bool)}
	if oldest > 0 {
		snap.aging = time.AfterFunc(oldest, func() { snap.old.Store(true) })
	}
	return snap
}

// sharedSnapshot is a snapshot of one process.
type sharedSnapshot struct {
	kv.Snapshot
	p     *Process
	ctx   context.Context
	aging *time.Timer  // nil: it stays readable
	old   *atomic.Bool // it can't be read any more
	holds []*sharedHold
}

// With implements kv.Lasting.
func (s *sharedSnapshot) With(ctx context.Context) kv.Snapshot {
	other := *s
	other.ctx = ctx
	return &other
}

func (s *sharedSnapshot) call() error {
	if _, err := s.p.call(s.ctx, true); err != nil {
		if errors.Is(err, kv.ErrSnapshotTooOld) {
			s.old.Store(true)
		}
		return err
	}
	if s.old.Load() {
		return kv.ErrSnapshotTooOld
	}
	return nil
}

// Close implements kv.Snapshot.
func (s *sharedSnapshot) Close() error {
	if s.aging != nil {
		s.aging.Stop()
	}
	s.p.s.free(s.holds)
	return s.Snapshot.Close()
}

// Get implements kv.Snapshot.
func (s *sharedSnapshot) Get(dst, key []byte) ([]byte, error) {
	if err := s.call(); err != nil {
		return dst, err
	}
	return s.Snapshot.Get(dst, key)
}

// GetMany implements kv.Snapshot.
func (s *sharedSnapshot) GetMany(v *kv.Values, keys [][]byte) error {
	if err := s.call(); err != nil {
		v.Reset()
		return err
	}
	return s.Snapshot.GetMany(v, keys)
}

// Has implements kv.Snapshot.
func (s *sharedSnapshot) Has(key []byte) (bool, error) {
	if err := s.call(); err != nil {
		return false, err
	}
	return s.Snapshot.Has(key)
}

// Iter implements kv.Snapshot.
func (s *sharedSnapshot) Iter(lo, hi []byte) (kv.Iterator, error) {
	it, err := s.Snapshot.Iter(lo, hi)
	if err != nil {
		return nil, err
	}
	return &sharedIterator{Iterator: it, s: s}, nil
}

// sharedBatch is the number of keys that an iterator reads with one call.
const sharedBatch = 64

// sharedIterator makes a call for each positioning, and for each batch of keys.
type sharedIterator struct {
	kv.Iterator
	s     *sharedSnapshot
	steps int // in the batch
	err   error
}

// trip makes a call and then moves.
func (i *sharedIterator) trip(move func() bool) bool {
	if i.err == nil {
		i.err = i.s.call()
	}
	i.steps = 0
	return i.err == nil && move()
}

// step moves within the batch, or to the next one.
func (i *sharedIterator) step(move func() bool) bool {
	if i.steps++; i.steps >= sharedBatch {
		return i.trip(move)
	}
	return i.err == nil && move()
}

// First implements kv.Iterator.
func (i *sharedIterator) First() bool { return i.trip(i.Iterator.First) }

// Last implements kv.Iterator.
func (i *sharedIterator) Last() bool { return i.trip(i.Iterator.Last) }

// SeekGE implements kv.Iterator.
func (i *sharedIterator) SeekGE(key []byte) bool {
	return i.trip(func() bool { return i.Iterator.SeekGE(key) })
}

// SeekLT implements kv.Iterator.
func (i *sharedIterator) SeekLT(key []byte) bool {
	return i.trip(func() bool { return i.Iterator.SeekLT(key) })
}

// Next implements kv.Iterator.
func (i *sharedIterator) Next() bool { return i.step(i.Iterator.Next) }

// Prev implements kv.Iterator.
func (i *sharedIterator) Prev() bool { return i.step(i.Iterator.Prev) }

// Reset implements kv.Iterator.
func (i *sharedIterator) Reset(lo, hi []byte) {
	i.err = nil
	i.Iterator.Reset(lo, hi)
}

// Err implements kv.Iterator.
func (i *sharedIterator) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.Iterator.Err()
}
