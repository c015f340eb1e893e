// Package lease decides which of several processes over one store does a piece of background work: removes the expired
// items of a container, rebuilds its index, copies its slots, makes a backup.
//
// A lease only saves work that would be done twice. What is stored stays right without it, because each commit has its
// own preconditions. A process that was paused, and still believes that it holds a lease, is refused by them. Where
// the other preconditions of a commit don't exclude that, the commit has the lease itself as a precondition (Fence).
//
// There are two kinds of records. A process that holds leases has a sign of life: a number that it raises every third
// of a duration, whatever the number of its leases. A lease names its holder. It is free if it has no record, or if its
// holder has no sign of life.
//
// Nobody compares times of two machines, whose clocks may differ by a day. A process that waits for a lease looks at
// the holder's sign of life. When it has seen the same number for the whole duration, by its own monotonic clock, it
// deletes the sign of life, under the precondition that it is still that number. Then all leases of that holder are
// free. The holder stops its work after three quarters of the duration without a successful renewal, counted from the
// beginning of the last one: earlier than anybody can have waited for the whole.
//
// Example, with a duration of 10 s. Process A renews at 0 s and is killed. B wants a lease of A at 1 s and sees A's
// number 7. At 11 s it still sees 7. It deletes A's sign of life and takes the lease.
//
// A process that announces itself (Announce) has a sign of life for as long as it lives, with a text about itself, so
// that others can list it. The other processes have one while they hold leases. So a process that has one surely (Sign)
// is found by those that must know of it (Others): the rule of three quarters holds for that, too.
//
// If the engine isn't shared, each lease is granted at once. Nothing is stored, and nothing runs in the background.
package lease

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/work"
)

// Kind says which work a lease is about. The values are stored.
type Kind byte

// The kinds of work.
const (
	Expiry Kind = 1 // removes expired items of a container, and expired entries of its log
	Layout Kind = 2 // rebuilds the index of a container, copies its slots, or removes replaced slots
	Resize Kind = 3 // decides about splits of a container's partitions
	Drops  Kind = 4 // removes what was dropped
	Scrub  Kind = 5 // looks for damage in the store
	Backup Kind = 6 // copies the store
	// Records removes records of the APIs that nobody has written for their time.
	Records Kind = 7
	Upkeep  Kind = 8 // does the chores of the storage engine
	Declare Kind = 9 // builds declared indexes of a container, or removes their entries
	// Upgrade gives the containers of a store of an older format the current one, one after the other.
	Upgrade Kind = 10
)

// kinds has the names of the kinds for diagnostics.
var kinds = map[Kind]string{Expiry: "expiry", Layout: "layout", Resize: "resize", Drops: "drops", Scrub: "scrub",
	Backup: "backup", Records: "records", Upkeep: "upkeep", Declare: "declare", Upgrade: "upgrade"}

// String returns the name of a kind for diagnostics.
func (k Kind) String() string {
	if s, ok := kinds[k]; ok {
		return s
	}
	return "unknown"
}

// Name names a lease.
type Name struct {
	Kind Kind
	Gen  uint32 // the container generation that the work is about; 0 = the store
}

func (n Name) key() []byte { return keys.AppendLease(nil, byte(n.Kind), n.Gen) }

// defaultDuration is the time without a sign of life after which a process's leases are free.
const defaultDuration = 10 * time.Second

// tries is how often a step is tried again after another process has changed a record in between.
const tries = 16

// Leases are the leases of one process. It is safe for concurrent use.
type Leases struct {
	eng      kv.Engine
	clk      *clock.Clock
	work     *work.Group
	duration time.Duration
	shared   bool

	process string        // hexadecimal; the beginning of its ids
	begin   chan struct{} // has a token while nobody begins or ends the process's sign of life

	sure atomic.Pointer[sure] // of self; nil: there is none. Each request asks for it, so it needs no lock

	mu      sync.Mutex
	self    *self
	held    map[Name]*Lease // nil: somebody is acquiring it
	left    map[Name][]byte // records of released leases that may still be stored
	wake    chan struct{}   // closed when a lease of this process is released
	serial  uint64
	signs   uint64 // that this process has had
	renewal bool   // a renewal is in progress
	running bool   // the goroutine of renewals is running
	about   string
	seen    map[process]sight
}

type process = [keys.ProcessLen]byte

// self is a period in which this process has a sign of life. Leases.mu guards it.
type self struct {
	id       process
	number   uint64 // of the sign in this process, from 1
	stored   sign
	renewed  time.Duration // by Elapsed: the beginning of the last renewal that has succeeded
	idle     time.Duration // by Elapsed: since when no lease is held
	finished bool          // the sign of life is gone, or may be
}

// sure says until when a sign of life is in the store for certain.
type sure struct {
	number uint64
	until  time.Duration // by Elapsed
}

// sight is what was last seen of another process.
type sight struct {
	value string
	since time.Duration // by Elapsed
	first time.Duration // by Elapsed: when it was seen for the first time
}

// New returns the leases of a process. duration 0 is defaultDuration. Background work belongs to bg.
func New(eng kv.Engine, clk *clock.Clock, bg *work.Group, duration time.Duration) *Leases {
	if duration <= 0 {
		duration = defaultDuration
	}
	m := &Leases{eng: eng, clk: clk, work: bg, duration: duration, shared: eng.Shared()}
	if m.shared {
		var id [processPart]byte
		clk.Random(id[:])
		m.process = hex.EncodeToString(id[:])
		m.begin, m.wake = make(chan struct{}, 1), make(chan struct{})
		m.begin <- struct{}{}
		m.held, m.left, m.seen = map[Name]*Lease{}, map[Name][]byte{}, map[process]sight{}
	}
	return m
}

// Shared reports whether leases matter: the engine is shared.
func (m *Leases) Shared() bool { return m.shared }

// Duration returns the time without a sign of life after which the leases of a process are free.
func (m *Leases) Duration() time.Duration { return m.duration }

// Lease is the right to do some work until Release. It may be lost before.
type Lease struct {
	m      *Leases // nil: the engine isn't shared
	name   Name
	value  []byte
	ctx    context.Context
	cancel context.CancelFunc
}

// Context ends with the ctx of the call that acquired the lease, when the lease is released, and when it may be lost.
func (l *Lease) Context() context.Context { return l.ctx }

// Fence returns preconditions for a commit which must not be made after another process has acquired the lease. There
// are none if the engine isn't shared.
func (l *Lease) Fence() []kv.Precondition {
	if l == nil || l.m == nil {
		return nil
	}
	return []kv.Precondition{{Key: l.name.key(), Expect: kv.Equal, Value: l.value}}
}

// Try returns a lease, or nil if another process holds it, or another goroutine of this one. An error is one of the
// engine.
func (m *Leases) Try(ctx context.Context, n Name) (*Lease, error) {
	if !m.shared {
		return &Lease{ctx: ctx}, nil
	}
	m.mu.Lock()
	_, taken := m.held[n]
	if !taken {
		m.held[n] = nil
	}
	m.mu.Unlock()
	if taken {
		return nil, nil
	}
	l, err := m.acquire(ctx, n)
	if l == nil { // nobody is woken: the next one would find what this one has found
		m.mu.Lock()
		delete(m.held, n)
		m.mu.Unlock()
	}
	return l, err
}

// Acquire waits for a lease. It fails when ctx or the process's background work ends, and with errors of the engine
// other than those of a moment, after which it tries again.
//
// Another process tells nobody when it releases a lease. Most leases are held for a moment, so the first waits are
// short. Each is twice as long as the one before: 80, 160, .. 1,250 ms with a duration of 10 s.
func (m *Leases) Acquire(ctx context.Context, n Name) (*Lease, error) {
	if !m.shared {
		return &Lease{ctx: ctx}, nil
	}
	for wait := m.duration / 128; ; wait = min(2*wait, m.duration/8) {
		m.mu.Lock()
		wake := m.wake
		m.mu.Unlock()
		l, err := m.Try(ctx, n)
		if l != nil || err != nil && !momentary(err) {
			return l, err
		}
		late := time.NewTimer(wait)
		select {
		case <-wake:
		case <-late.C:
		case <-ctx.Done():
			err = ctx.Err()
		case <-m.work.Context().Done():
			err = kv.ErrClosed
		}
		late.Stop()
		if err != nil && !momentary(err) {
			return nil, err
		}
	}
}

// momentary reports whether an engine may do what it has refused if it is asked again.
func momentary(err error) bool {
	return errors.Is(err, kv.ErrUnavailable) || errors.Is(err, kv.ErrSnapshotTooOld)
}

// acquire takes a lease if it is free. The caller has reserved its name in held.
func (m *Leases) acquire(ctx context.Context, n Name) (*Lease, error) {
	for range tries {
		me, err := m.appear(ctx)
		if err != nil {
			return nil, err
		}
		pre, err := m.free(ctx, me, n)
		if pre == nil || err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.serial++
		value := holder{me.id, m.serial}.append(nil)
		m.mu.Unlock()
		var b kv.Batch
		b.Put(n.key(), value)
		err = m.write(ctx, &b, append(pre, kv.Precondition{Key: me.key(), Expect: kv.Present}))
		if errors.Is(err, kv.ErrUnknownOutcome) {
			err = m.outcome(ctx, n, value)
		}
		switch {
		case errors.Is(err, kv.ErrConflict):
			if err := m.alive(ctx, me); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		if l := m.hold(ctx, me, n, value); l != nil {
			return l, nil
		}
	}
	return nil, nil // others are faster
}

// hold returns the lease whose record was stored, nil if the process has lost its leases since.
func (m *Leases) hold(ctx context.Context, me *self, n Name, value []byte) *Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.self != me || me.finished || m.overdue(me) {
		return nil // the record says that it is held by a process that has no sign of life, or soon has none
	}
	l := &Lease{m: m, name: n, value: value}
	l.ctx, l.cancel = context.WithCancel(ctx)
	m.held[n] = l
	delete(m.left, n)
	return l
}

// free returns the preconditions under which a lease may be taken, nil if it may not. It ends a holder that has given
// no sign of life for its duration.
func (m *Leases) free(ctx context.Context, me *self, n Name) ([]kv.Precondition, error) {
	for range tries {
		rec, life, err := m.look(ctx, n)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			return []kv.Precondition{{Key: n.key(), Expect: kv.Absent}}, nil
		}
		of, err := parseHolder(rec)
		if err != nil {
			return nil, err
		}
		equal := kv.Precondition{Key: n.key(), Expect: kv.Equal, Value: rec}
		switch {
		case of.process == me.id: // of a release that wasn't stored
			return []kv.Precondition{equal}, nil
		case life == nil:
			gone := kv.Precondition{Key: keys.AppendProcess(nil, of.process), Expect: kv.Absent}
			return []kv.Precondition{equal, gone}, nil
		}
		silent, err := m.silent(of.process, life)
		if err != nil || !silent {
			return nil, err
		}
		if err := m.end(ctx, of.process, life); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// look reads the record of a lease and the sign of life of its holder; nil: absent.
func (m *Leases) look(ctx context.Context, n Name) (rec, life []byte, err error) {
	snap, err := m.eng.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer snap.Close()
	if rec, err = orNil(snap.Get(nil, n.key())); rec == nil || err != nil {
		return nil, nil, err
	}
	of, err := parseHolder(rec)
	if err != nil {
		return nil, nil, err
	}
	life, err = orNil(snap.Get(nil, keys.AppendProcess(nil, of.process)))
	return rec, life, err
}

// silent reports whether a process has given no sign of life for its duration, since this process first looked.
func (m *Leases) silent(id process, life []byte) (bool, error) {
	s, err := parseSign(life)
	if err != nil {
		return false, err
	}
	now := m.clk.Elapsed()
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.seen[id]
	if !known || was.value != string(life) {
		if !known {
			was.first = now
		}
		m.seen[id] = sight{string(life), now, was.first}
		return false, nil
	}
	return now-was.since >= s.duration, nil
}

// end ends a process that was silent: its leases are free.
func (m *Leases) end(ctx context.Context, id process, life []byte) error {
	key := keys.AppendProcess(nil, id)
	b := kv.Batch{Frees: true}
	b.Delete(key)
	err := m.write(ctx, &b, []kv.Precondition{{Key: key, Expect: kv.Equal, Value: life}})
	if errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrUnknownOutcome) {
		return nil // the caller looks again
	}
	if err == nil {
		m.mu.Lock()
		delete(m.seen, id)
		m.mu.Unlock()
	}
	return err
}

// write commits a batch and waits until it is durable.
func (m *Leases) write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) error {
	c, err := m.eng.Write(ctx, b, pre)
	if err != nil {
		return err
	}
	if err := c.Wait(); err != nil {
		return errors.Join(kv.ErrUnknownOutcome, err)
	}
	return nil
}

// outcome finds out whether the record of a lease was stored. The error is ErrConflict if it was not.
func (m *Leases) outcome(ctx context.Context, n Name, value []byte) error {
	rec, err := orNil(m.eng.Get(ctx, nil, n.key()))
	switch {
	case err != nil:
		m.mu.Lock()
		m.left[n] = value // it is removed later if it was stored
		m.mu.Unlock()
		return err
	case string(rec) != string(value):
		return kv.ErrConflict
	}
	return nil
}

// orNil converts the result of a Get: an absent key has the value nil.
func orNil(b []byte, err error) ([]byte, error) {
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// releaseTime is the longest time of Release: callers are requests too, whose deadline may be over. A record that it
// couldn't delete is deleted later, or expires.
const releaseTime = time.Second

// closeTime is the longest time of Close, and of a Release before it while the engine is being closed. A process is to
// end soon while the store doesn't answer, and others find out without it.
const closeTime = releaseTime / 2

// Release gives the lease up. It may be called more than once.
func (l *Lease) Release() {
	if l.m == nil {
		return
	}
	l.cancel()
	m := l.m
	m.mu.Lock()
	mine := m.held[l.name] == l
	if mine {
		m.held[l.name] = nil // nobody acquires it while the record is deleted
	}
	m.mu.Unlock()
	if !mine {
		return
	}
	most := releaseTime
	if m.work.Context().Err() != nil { // Close ends all leases of the process
		most = closeTime
	}
	ctx, stop := context.WithTimeout(context.Background(), min(m.duration, most))
	defer stop()
	if err := m.erase(ctx, l.name, l.value); err != nil {
		m.mu.Lock()
		m.left[l.name] = l.value
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(l.name)
}

// forget says that this process doesn't hold a lease any more. The caller holds mu.
func (m *Leases) forget(n Name) {
	delete(m.held, n)
	if m.self != nil {
		m.self.idle = m.clk.Elapsed()
	}
	close(m.wake)
	m.wake = make(chan struct{})
}

// erase deletes the record of a lease if it is this one.
func (m *Leases) erase(ctx context.Context, n Name, value []byte) error {
	b := kv.Batch{Frees: true}
	b.Delete(n.key())
	err := m.write(ctx, &b, []kv.Precondition{{Key: n.key(), Expect: kv.Equal, Value: value}})
	if errors.Is(err, kv.ErrConflict) { // it is gone
		return nil
	}
	return err
}
