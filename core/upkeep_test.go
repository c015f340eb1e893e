package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/internal/testlog"
)

// keeper is a process whose storage engine has a chore.
type keeper struct {
	*peer
	chore kv.Chore
	done  atomic.Int64
}

// Chores implements kv.Maintained.
func (k *keeper) Chores() []kv.Chore { return []kv.Chore{k.chore} }

// keep opens a process whose chore is due every two durations of leases. do is nil for a chore that always succeeds.
func keep(t *testing.T, mem kv.Engine, log *slog.Logger, do func(ctx context.Context) error) *keeper {
	t.Helper()
	k := &keeper{peer: &peer{Engine: mem, clk: clock.Fake(time.Unix(1_700_000_000, 0))}}
	k.chore = kv.Chore{Name: "sweeping", First: leaseTime, Every: 2 * leaseTime, Do: func(ctx context.Context) error {
		if do != nil {
			if err := do(ctx); err != nil {
				return err
			}
		}
		k.done.Add(1)
		return nil
	}}
	e, err := core.Open(bg, k, core.Options{Clock: k.clk, Lease: leaseTime, ViewAge: time.Millisecond, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	k.e = e
	t.Cleanup(func() { _ = e.Close() })
	return k
}

// One of two processes does the chores of the storage engine. When it is killed, the other one takes them over; when
// that one is closed, they are free at once.
func TestOneProcessDoesTheChores(t *testing.T) {
	mem, quiet := memkv.New(), slog.New(slog.DiscardHandler)
	a := keep(t, mem, quiet, nil)
	eventually(t, "A has the chores", func() bool { return a.done.Load() > 0 }, a.peer)
	b := keep(t, mem, quiet, nil)
	begun := a.done.Load()
	eventually(t, "A goes on", func() bool { return a.done.Load() >= begun+3 }, a.peer, b.peer)
	if n := b.done.Load(); n > 0 {
		t.Errorf("B has done it %d times beside A", n)
	}
	held, err := b.e.Leases(bg)
	if err != nil || len(held) != 1 || held[0].Work != "upkeep" || held[0].Mine {
		t.Errorf("leases: %+v, %v", held, err)
	}
	if st := a.e.Upkeep(); len(st) != 1 || st[0].Chore != "sweeping" || st[0].Done == 0 || st[0].LastEnd == "" {
		t.Errorf("status of A: %+v", st)
	}

	a.set(func(string) error { return kv.ErrUnavailable }) // no call of A is made any more, and A can't release it
	eventually(t, "B takes over", func() bool { return b.done.Load() > 0 }, a.peer, b.peer)
	was, took := a.done.Load(), b.done.Load()
	eventually(t, "B goes on", func() bool { return b.done.Load() >= took+3 }, a.peer, b.peer)
	if n := a.done.Load(); n != was {
		t.Errorf("A goes on without the lease: %d times", n-was)
	}

	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	c := keep(t, mem, quiet, nil)
	for range 20 { // less than the duration of a lease by C's clock
		c.clk.Advance(leaseTime / 25)
		time.Sleep(time.Millisecond)
	}
	if held, err := c.e.Leases(bg); err != nil || len(held) != 1 || !held[0].Mine {
		t.Errorf("leases after the end of B: %+v, %v", held, err)
	}
	eventually(t, "C has the chores", func() bool { return c.done.Load() > 0 }, c.peer)
}

// A chore that fails, or panics, is tried again. The log has the failure once.
func TestAFailedChoreIsTriedAgain(t *testing.T) {
	for name, failure := range map[string]func() error{
		"error": func() error { return errors.New("no broom") },
		"panic": func() error { panic("no broom") },
	} {
		t.Run(name, func(t *testing.T) {
			var log testlog.Lines
			var tries atomic.Int64
			k := keep(t, memkv.New(), slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) error {
				if tries.Add(1) <= 3 {
					return failure()
				}
				return nil
			})
			eventually(t, "the first failure", func() bool { return tries.Load() > 0 }, k.peer)
			eventually(t, "a failure that is shown", func() bool {
				st := k.e.Upkeep()
				return st[0].Error != "" || st[0].Done > 0
			}, k.peer)
			eventually(t, "success", func() bool { return k.done.Load() > 0 && k.e.Upkeep()[0].Error == "" }, k.peer)
			if n := strings.Count(log.String(), "Upkeep of the storage engine failed"); n != 1 {
				t.Errorf("%d lines in the log: %s", n, bytes.TrimSpace([]byte(log.String())))
			}
		})
	}
}
