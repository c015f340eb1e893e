package kv

import (
	"context"
	"time"
)

// Chore is something that an engine needs to be done now and then, by one of the processes over its store.
type Chore struct {
	Name  string        // for logs and diagnostics
	Every time.Duration // between the ends of two of them
	// First is the time until the first one, after a process has taken the chores over. What is expensive and rare
	// waits, so that a process that is restarted often doesn't do it at each start.
	First time.Duration
	// Do does it. It ends with ctx. A process that was paused may do it beside another one, so that must be harmless.
	Do func(ctx context.Context) error
}

// Maintained is an Engine with chores.
type Maintained interface {
	// Chores returns the chores, the same ones at each call.
	Chores() []Chore
}
