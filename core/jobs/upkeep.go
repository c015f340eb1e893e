package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/work"
)

// Upkeep does the chores of a storage engine. Of the processes over a store the one with the lease does all of them. It
// keeps the lease for as long as it lives, because each process would otherwise do a chore once in its interval.
//
// Example: garbage is collected every ten minutes. Process A has the lease and collects at 1 and 11 minutes. B looks
// for the lease every 30 s and finds it taken. A is killed at 15 minutes. At 16 minutes B has the lease, and collects
// at 17, 27, and so on.
type Upkeep struct {
	chores []kv.Chore
	leases *lease.Leases
	g      *work.Group
	clk    *clock.Clock
	log    *slog.Logger

	mu sync.Mutex
	st []ChoreStatus
}

// ChoreStatus is what this process has done of a chore since its start.
type ChoreStatus struct {
	Chore    string  `json:"chore"`
	Done     int64   `json:"done"`
	LastEnd  string  `json:"lastEnd,omitempty"` // RFC 3339 in UTC
	LastTook float64 `json:"lastTookSeconds,omitempty"`
	Error    string  `json:"error,omitempty"` // of the last attempt, if it failed
}

// Pace of upkeep.
const (
	upkeepTries = 3  // a process without the lease asks for it at intervals of so many durations of leases
	upkeepAgain = 10 // a chore that has failed is tried again after this part of its interval
)

// StartUpkeep starts the upkeep of an engine; nil if the engine has no chores. It ends with the group.
func StartUpkeep(g *work.Group, eng kv.Engine, leases *lease.Leases, clk *clock.Clock, log *slog.Logger) *Upkeep {
	of, ok := eng.(kv.Maintained)
	if !ok {
		return nil
	}
	u := &Upkeep{chores: of.Chores(), leases: leases, g: g, clk: clk, log: log}
	for _, c := range u.chores {
		u.st = append(u.st, ChoreStatus{Chore: c.Name})
	}
	g.Go("upkeep of the storage engine", func() {
		for {
			err := g.Try("upkeep of the storage engine", func() error { return u.lead(g.Context()) })
			if err != nil && g.Context().Err() == nil {
				u.log.Debug("The lease for the upkeep of the storage engine can't be had now", "error", err)
			}
			if !g.Sleep(upkeepTries * leases.Duration()) {
				return
			}
		}
	})
	return u
}

// lead does the chores for as long as this process has the lease.
func (u *Upkeep) lead(ctx context.Context) error {
	l, err := u.leases.Try(ctx, lease.Name{Kind: lease.Upkeep})
	if l == nil {
		return err
	}
	defer l.Release()
	begun := u.clk.Elapsed()
	due := make([]time.Duration, len(u.chores))
	for i, c := range u.chores {
		due[i] = begun + c.First
	}
	for {
		for i := range u.chores {
			if u.clk.Elapsed() < due[i] || l.Context().Err() != nil {
				continue
			}
			pause := u.chores[i].Every
			if !u.do(l.Context(), i) {
				pause /= upkeepAgain
			}
			due[i] = u.clk.Elapsed() + pause
		}
		if !work.Sleep(l.Context(), u.leases.Duration()/2) {
			return nil
		}
	}
}

// do does a chore and reports whether it is done. A failure is logged once, until it is done again.
func (u *Upkeep) do(ctx context.Context, i int) bool {
	c, begun := &u.chores[i], u.clk.Elapsed()
	err := u.g.Try("upkeep of the storage engine: "+c.Name, func() error { return c.Do(ctx) })
	if ctx.Err() != nil { // the process ends, or has lost the lease
		return err == nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	st := &u.st[i]
	if err != nil {
		if st.Error == "" {
			u.log.Warn("Upkeep of the storage engine failed; it is tried again", "chore", c.Name, "error", err)
		}
		st.Error = err.Error()
		return false
	}
	st.Done++
	st.Error, st.LastEnd = "", u.clk.Now().UTC().Format(time.RFC3339)
	st.LastTook = (u.clk.Elapsed() - begun).Seconds()
	return true
}

// Status returns what this process has done so far.
func (u *Upkeep) Status() []ChoreStatus {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]ChoreStatus(nil), u.st...)
}
