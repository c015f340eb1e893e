package lease

import (
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
)

// renewals is the number of turns of the goroutine of renewals in a duration. A renewal is due after a third of the
// duration, so one that fails is repeated before the leases are given up.
const renewals = 12

func (s *self) key() []byte { return keys.AppendProcess(nil, s.id) }

// due reports whether the sign of life should be renewed. The caller holds mu.
func (m *Leases) due(s *self) bool { return m.clk.Elapsed()-s.renewed >= m.duration/3 }

// overdue reports whether other processes may soon regard this one as ended. The caller holds mu.
func (m *Leases) overdue(s *self) bool { return m.clk.Elapsed()-s.renewed >= m.duration/4*3 }

// assure notes that the sign of life was renewed. The caller holds mu.
func (m *Leases) assure(s *self) { m.sure.Store(&sure{s.number, s.renewed + m.duration/4*3}) }

// appear gives this process a sign of life if it has none.
func (m *Leases) appear(ctx context.Context) (*self, error) {
	select {
	case <-m.begin:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { m.begin <- struct{}{} }()
	m.mu.Lock()
	if s := m.self; s != nil && m.overdue(s) {
		m.lose(s)
	}
	s := m.self
	m.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s = &self{id: m.newID(), stored: m.sign(1), renewed: m.clk.Elapsed()}
	var b kv.Batch
	b.Put(s.key(), s.stored.append(nil))
	// If the outcome is unknown the id isn't used. Others remove it when it stays silent.
	if err := m.write(ctx, &b, []kv.Precondition{{Key: s.key(), Expect: kv.Absent}}); err != nil {
		if errors.Is(err, kv.ErrUnknownOutcome) {
			err = errors.Join(kv.ErrUnavailable, err)
		}
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.idle = m.clk.Elapsed()
	m.signs++
	s.number = m.signs
	m.self = s
	m.assure(s)
	if !m.running {
		m.running = m.work.Go("renewal of leases", m.run)
	}
	return s, nil
}

// alive finds out whether another process has ended this one.
func (m *Leases) alive(ctx context.Context, s *self) error {
	life, err := orNil(m.eng.Get(ctx, nil, s.key()))
	if life == nil && err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lose(s)
	}
	return err
}

// lose gives up all leases: their work must stop. The caller holds mu.
func (m *Leases) lose(s *self) {
	s.finished = true
	if m.self != s {
		return
	}
	m.self = nil
	m.sure.Store(nil)
	for n, l := range m.held {
		if l != nil {
			l.cancel()
			m.forget(n)
		}
	}
	clear(m.left) // their holder has no sign of life, or soon has none
}

// run renews the sign of life while leases are held.
func (m *Leases) run() {
	for m.work.Sleep(m.duration/renewals) && m.turn() {
	}
}

// turn starts what is due. more is false if there is nothing to renew any more.
func (m *Leases) turn() (more bool) {
	m.mu.Lock()
	s := m.self
	switch {
	case s == nil:
	case m.overdue(s):
		m.lose(s)
		s = nil
	case m.due(s) && !m.renewal:
		// A call that hangs must not keep this goroutine from noticing that the process is overdue.
		m.renewal = m.work.Go("renewal of leases", func() { m.renew(s) })
	}
	m.running = s != nil
	m.mu.Unlock()
	return s != nil
}

// renew renews the sign of life, and removes what releases have left. A process that holds nothing ends its sign of
// life, unless it has announced itself.
func (m *Leases) renew(s *self) {
	ctx, stop := context.WithTimeout(m.work.Context(), m.duration)
	defer stop()
	m.mu.Lock()
	idle := m.about == "" && len(m.held) == 0 && m.clk.Elapsed()-s.idle >= m.duration
	was, left := s.stored, make(map[Name][]byte, len(m.left))
	for n, value := range m.left {
		if _, again := m.held[n]; !again {
			left[n] = value
		}
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.renewal = false
		m.mu.Unlock()
	}()
	if idle && len(left) == 0 {
		m.vanish(ctx, s)
		return
	}
	m.raise(ctx, s, was)
	for n, value := range left {
		if m.erase(ctx, n, value) != nil {
			continue
		}
		m.mu.Lock()
		if string(m.left[n]) == string(value) {
			delete(m.left, n)
		}
		m.mu.Unlock()
	}
}

// raise stores the next number.
func (m *Leases) raise(ctx context.Context, s *self, was sign) {
	begun := m.clk.Elapsed()
	next := m.sign(was.number + 1)
	var b kv.Batch
	b.Put(s.key(), next.append(nil))
	err := m.write(ctx, &b, []kv.Precondition{{Key: s.key(), Expect: kv.Equal, Value: was.append(nil)}})
	stored := next
	if errors.Is(err, kv.ErrConflict) || errors.Is(err, kv.ErrUnknownOutcome) {
		var raw []byte
		if raw, err = orNil(m.eng.Get(ctx, nil, s.key())); err != nil {
			return // the next turn finds out
		}
		if stored, err = parseSign(raw); raw == nil || err != nil { // another process has ended this one
			m.mu.Lock()
			defer m.mu.Unlock()
			m.lose(s)
			return
		}
	}
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.stored = stored
	if stored.number == next.number && m.self == s && !m.overdue(s) {
		s.renewed = begun
		m.assure(s)
	}
}

// vanish ends the sign of life of a process without leases. Nobody acquires one meanwhile.
func (m *Leases) vanish(ctx context.Context, s *self) {
	select {
	case <-m.begin:
	case <-ctx.Done():
		return
	}
	defer func() { m.begin <- struct{}{} }()
	m.mu.Lock()
	if len(m.held) > 0 || m.about != "" || m.self != s {
		m.mu.Unlock()
		return
	}
	m.lose(s)
	m.mu.Unlock()
	_ = m.end(ctx, s.id, s.stored.append(nil)) // if it fails, others end it when it stays silent
}

// Close ends the sign of life, so that others needn't wait for the leases. It is called after the background work has
// ended, and before the engine is closed.
func (m *Leases) Close() {
	m.mu.Lock()
	s := m.self
	if s != nil {
		m.lose(s)
	}
	m.mu.Unlock()
	if s == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), min(m.duration, closeTime))
	defer stop()
	_ = m.end(ctx, s.id, s.stored.append(nil)) // else others wait until it was silent for long enough
}

// Sweep ends processes that were silent for their duration, and removes records of leases without a living holder. It
// looks at processes that this process wants nothing of. The work that removes dropped data calls it in each turn.
func (m *Leases) Sweep(ctx context.Context) error {
	if !m.shared {
		return nil
	}
	lives, leases, err := m.all(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	me := m.self
	m.mu.Unlock()
	for id, life := range lives {
		if me != nil && me.id == id {
			continue
		}
		silent, err := m.silent(id, life)
		if err == nil && silent {
			err = m.end(ctx, id, life)
		}
		if err != nil {
			return err
		}
	}
	m.mu.Lock()
	for id := range m.seen {
		if lives[id] == nil {
			delete(m.seen, id)
		}
	}
	m.mu.Unlock()
	for _, r := range leases {
		if lives[r.of.process] != nil {
			continue
		}
		b := kv.Batch{Frees: true}
		b.Delete(r.name.key())
		err := m.write(ctx, &b, []kv.Precondition{{Key: r.name.key(), Expect: kv.Equal, Value: r.of.append(nil)},
			{Key: keys.AppendProcess(nil, r.of.process), Expect: kv.Absent}})
		if err != nil && !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return nil
}

// Held is a lease that a process holds.
type Held struct {
	Name    Name
	Process [keys.ProcessLen]byte
	Mine    bool          // this process holds it
	Silent  time.Duration // how long this process has seen no sign of life of the holder
}

// ProcessID returns the holder's id, as Leases.Process does there.
func (h *Held) ProcessID() string { return idOf(h.Process) }

// List returns the leases that processes hold, for diagnostics.
func (m *Leases) List(ctx context.Context) (out []Held, err error) {
	if !m.shared {
		return nil, nil
	}
	lives, leases, err := m.all(ctx)
	if err != nil {
		return nil, err
	}
	now := m.clk.Elapsed()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range leases {
		life := lives[r.of.process]
		if life == nil {
			continue
		}
		h := Held{Name: r.name, Process: r.of.process, Mine: m.self != nil && m.self.id == r.of.process}
		if was := m.seen[r.of.process]; !h.Mine && was.value == string(life) {
			h.Silent = now - was.since
		}
		out = append(out, h)
	}
	return out, nil
}
