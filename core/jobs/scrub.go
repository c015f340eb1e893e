package jobs

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// Scrub finds damage before a request does. It reads files that no request reads, and compares index entries with
// items. It works a small share of the time and reads a bounded number of keys in each step. Between steps it holds no
// snapshot.
type Scrub struct {
	eng        kv.Engine
	containers func() iter.Seq[*store.Container]
	leases     *lease.Leases
	clk        *clock.Clock
	log        *slog.Logger

	mu sync.Mutex
	st ScrubStatus
}

// ScrubStatus is what a scrub has found.
type ScrubStatus struct {
	Rounds    int64    `json:"rounds"`              // full rounds since the start of the process
	LastRound string   `json:"lastRound,omitempty"` // end of the last full one, RFC 3339 in UTC
	LastTook  float64  `json:"lastTookSeconds,omitempty"`
	Found     int64    `json:"found"`              // problems since the start of the process
	Problems  []string `json:"problems,omitempty"` // the first problems
}

// Pace of a scrub.
const (
	scrubFirst  = 5 * time.Minute // after the start of the process
	scrubRound  = 24 * time.Hour  // between rounds
	scrubKeys   = 256             // of one step
	scrubBytes  = 256 << 10       // of files between pauses
	scrubRest   = 19              // it rests so many times as long as it has worked
	scrubNap    = time.Second     // the longest rest
	scrubTries  = 600             // of one step, a nap after each, while the engine isn't available
	scrubListed = 20              // problems that are kept for Status
)

// StartScrub starts a scrub of an engine and of the containers that the function gives. The scrub ends with the group.
// While another process scrubs the same store, a round is left out.
func StartScrub(g *work.Group, eng kv.Engine, containers func() iter.Seq[*store.Container], leases *lease.Leases,
	clk *clock.Clock, log *slog.Logger) *Scrub {
	s := &Scrub{eng: eng, containers: containers, leases: leases, clk: clk, log: log}
	g.Go("scrub", func() {
		for wait := scrubFirst; g.Sleep(wait); wait = scrubRound {
			err := g.Try("scrub", func() error { return s.paced(g.Context()) })
			if err != nil && g.Context().Err() == nil {
				s.log.Warn("A scrub of the store ended early", "error", err)
			}
		}
	})
	return s
}

// paced runs a round at the scrub's pace.
func (s *Scrub) paced(ctx context.Context) error {
	l, err := s.leases.Try(ctx, lease.Name{Kind: lease.Scrub})
	if l == nil {
		return err
	}
	defer l.Release()
	ctx = l.Context()
	begun := s.clk.Now()
	return s.Round(ctx, func() error {
		worked := s.clk.Now().Sub(begun)
		if !work.Sleep(ctx, min(max(0, scrubRest*worked), scrubNap)) {
			return ctx.Err()
		}
		begun = s.clk.Now()
		return nil
	})
}

// Round reads everything once. It calls rest between steps; an error of rest ends the round.
func (s *Scrub) Round(ctx context.Context, rest func() error) error {
	begun := s.clk.Now()
	for c := range s.containers() {
		for _, slot := range c.Slots().All() {
			if err := s.slot(ctx, c, slot, rest); err != nil {
				return err
			}
		}
	}
	if f, ok := s.eng.(kv.Scrubber); ok {
		var read int64
		err := f.ScrubFiles(ctx, func(n int64) error {
			if read += n; read < scrubBytes {
				return nil
			}
			read = 0
			return rest()
		}, s.found)
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	s.st.Rounds++
	s.st.LastRound, s.st.LastTook = now.UTC().Format(time.RFC3339), now.Sub(begun).Seconds()
	return nil
}

// slot checks a slot. A slot of a container that was dropped in the meantime has no keys.
func (s *Scrub) slot(ctx context.Context, c *store.Container, slot *store.Slot, rest func() error) error {
	var at []byte
	for {
		next, err := s.step(ctx, c, slot, at)
		if err == nil {
			err = rest()
		}
		if err != nil || next == nil {
			return err
		}
		at = next
	}
}

// step checks some keys of a slot. While the engine isn't available it tries again: a round takes hours, and would have
// to begin again.
func (s *Scrub) step(ctx context.Context, c *store.Container, slot *store.Slot, at []byte) (next []byte, err error) {
	for range scrubTries {
		next, err = c.CheckStep(ctx, slot, at, scrubKeys, func(p string) {
			if c.Alive() == nil {
				s.found(p)
			}
		})
		if !errors.Is(err, kv.ErrUnavailable) && !errors.Is(err, kv.ErrSnapshotTooOld) {
			break
		}
		if !work.Sleep(ctx, scrubNap) {
			break
		}
	}
	return next, err
}

// found records a problem.
func (s *Scrub) found(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st.Found++; s.st.Found <= scrubListed {
		s.st.Problems = append(s.st.Problems, what)
	}
	if s.st.Found == 1 {
		s.log.Error("The store is damaged, see /status: stop the server and run orrery check", "found", what)
	}
}

// Status returns the scrub's findings so far.
func (s *Scrub) Status() ScrubStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	st.Problems = append([]string(nil), st.Problems...)
	return st
}
