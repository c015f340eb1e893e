package lease

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/keys"
)

// processPart is the number of bytes at the beginning of the ids of a process that all of them have. The rest is new
// after each loss of the leases.
const processPart = 8

// idOf returns the part of a stored id which the process keeps, as text.
func idOf(id process) string { return hex.EncodeToString(id[:processPart]) }

// Process returns the id of this process: random, 16 hexadecimal digits, the same for as long as it lives. It is empty
// if the engine isn't shared.
func (m *Leases) Process() string { return m.process }

// newID returns an id for a sign of life that begins.
func (m *Leases) newID() (id process) {
	_, _ = hex.Decode(id[:processPart], []byte(m.process))
	m.clk.Random(id[processPart:])
	return id
}

// sign returns a sign of life with a number.
func (m *Leases) sign(number uint64) sign {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sign{number, m.duration, m.about}
}

// Announce says what other processes can read about this one, from now on and for as long as it lives. about is not
// empty. Stay begins it, and must be called again from time to time: the sign of life may be lost.
func (m *Leases) Announce(about string) {
	if !m.shared {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.about = about
}

// Stay gives a process that has announced itself a sign of life if it has none.
func (m *Leases) Stay(ctx context.Context) error {
	if !m.shared {
		return nil
	}
	m.mu.Lock()
	announced := m.about != ""
	m.mu.Unlock()
	if !announced {
		return nil
	}
	_, err := m.appear(ctx)
	return err
}

// Sign returns the number of the sign of life that this process surely has in the store: no other process regards it as
// ended, and Others of another one finds it. 0 says that it may have none. Each sign of a process has another number.
func (m *Leases) Sign() uint64 {
	s := m.sure.Load()
	if s == nil || m.clk.Elapsed() >= s.until {
		return 0
	}
	return s.number
}

// Others reports whether another process has a sign of life. One that has ended without Close has one until it was
// silent for its duration.
func (m *Leases) Others(ctx context.Context) (bool, error) {
	if !m.shared {
		return false, nil
	}
	snap, err := m.eng.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Close()
	found := false
	lo, hi := keys.ProcessBounds()
	err = each(snap, lo, hi, func(key, _ []byte) error {
		id, ok := keys.ParseProcess(key)
		found = found || ok && idOf(id) != m.process
		return nil
	})
	return found, err
}

// Member is a process with a sign of life.
type Member struct {
	Process string        // its id, as Leases.Process returns it there
	About   string        // what it has announced; empty: nothing
	Mine    bool          // it is this process
	Seen    time.Duration // how long this process has known it
	Silent  time.Duration // how long this process has seen no sign of life of it
}

// Members returns the processes with a sign of life, in the order of their ids. One that has ended without Close is
// among them until it was silent for its duration.
func (m *Leases) Members(ctx context.Context) (out []Member, err error) {
	if !m.shared {
		return nil, nil
	}
	lives, _, err := m.all(ctx)
	if err != nil {
		return nil, err
	}
	for id, life := range lives {
		if _, err := m.silent(id, life); err != nil { // this is a look at it too
			return nil, err
		}
		s, err := parseSign(life)
		if err != nil {
			return nil, err
		}
		out = append(out, m.member(id, s))
	}
	few.Sort(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(a.Silent, b.Silent), cmp.Compare(b.Seen, a.Seen))
	})
	// A process that has lost its sign of life, and has a new one, may still have the former one.
	return slices.CompactFunc(out, func(kept, m Member) bool { return kept.Process == m.Process }), nil
}

func (m *Leases) member(id process, s sign) Member {
	now := m.clk.Elapsed()
	m.mu.Lock()
	defer m.mu.Unlock()
	return Member{Process: idOf(id), About: s.about, Mine: idOf(id) == m.process, Seen: now - m.seen[id].first,
		Silent: now - m.seen[id].since}
}
