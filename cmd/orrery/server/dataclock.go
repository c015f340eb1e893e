package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The data clock of an account. It gives the time of the data: timestamps, the time to live, leases, cursors and
// sessions, and the functions of the query languages. Everything between client and server keeps real time: deadlines
// of connections and requests, certificates, and the dates of signatures.

// errClock is the error for a wrong request to a clock.
var errClock = errors.New(`want one of "freeze": true, "run": true, "set": a time as 2026-01-02T15:04:05Z, ` +
	`"advance": a duration as 1h30m`)

// clockState is the state of a data clock.
type clockState struct {
	Now    time.Time `json:"now"`
	Frozen bool      `json:"frozen"`
}

func (s *Server) clockState() clockState { return clockState{s.cfg.Clock.Now(), s.cfg.Clock.Frozen()} }

// Freeze stops the data clock of the account.
func (s *Server) Freeze() { s.cfg.Clock.Freeze() }

// Run lets the data clock of the account run from its present time.
func (s *Server) Run() { s.cfg.Clock.Run() }

// SetTime sets the data clock of the account, which runs or stands as before.
func (s *Server) SetTime(t time.Time) {
	s.cfg.Clock.Set(t)
	s.Engine().Reap(context.Background())
}

// Advance moves the data clock of the account, which runs or stands as before. What has expired is removed when Advance
// returns.
func (s *Server) Advance(d time.Duration) { s.SetTime(s.cfg.Clock.Now().Add(d)) }

// The times that a data clock can show to requests. Nanoseconds since 1970 are an int64, whose last year is 2262.
var (
	firstTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func (s *Server) postClock(q ofClock) (any, error) {
	s.kit.mu.Lock()
	defer s.kit.mu.Unlock()
	a, err := s.accountNamed(q.Account)
	if err != nil {
		return nil, err
	}
	var set time.Time
	var advance time.Duration
	asked := 0
	if q.Set != "" {
		asked++
		if set, err = time.Parse(time.RFC3339, q.Set); err != nil {
			return nil, fmt.Errorf("%w: %w", errClock, err)
		}
	}
	if q.Advance != "" {
		asked++
		if advance, err = time.ParseDuration(q.Advance); err != nil {
			return nil, fmt.Errorf("%w: %w", errClock, err)
		}
	}
	if asked > 1 || q.Freeze && q.Run {
		return nil, errClock
	}
	if q.Advance != "" {
		set = a.cfg.Clock.Now().Add(advance)
	}
	if asked > 0 && (set.Before(firstTime) || !set.Before(lastTime)) {
		return nil, fmt.Errorf("%w; %v is not between 1970 and 2200", errClock, set)
	}
	switch {
	case q.Freeze:
		a.Freeze()
	case q.Run:
		a.Run()
	}
	switch {
	case q.Set != "":
		a.SetTime(set)
	case q.Advance != "":
		a.Advance(advance)
	}
	return a.clockState(), nil
}
