package main

import (
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/clock"
)

// TestBar: a bar shows part, number and remaining time of a task in one line, and leaves nothing of a longer one.
func TestBar(t *testing.T) {
	var out strings.Builder
	b := &bar{out: &out, clock: clock.Fake(time.Time{})}
	shows := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Errorf("written %q, want %q", &out, want)
		}
		out.Reset()
	}
	b.task("items", false)
	shows("")
	b.set(0, 1000)
	first := "items   0% " + strings.Repeat(" ", 30) + " 0/1000"
	shows("\r" + first)
	b.clock.Advance(barPause / 2)
	b.set(1, 1000)
	shows("")
	b.clock.Advance(30*time.Second - barPause/2)
	b.set(250, 1000)
	second := "items  25% " + strings.Repeat("█", 7) + strings.Repeat(" ", 23) + " 250/1000, 1m30s left"
	shows("\r" + second)
	b.task("files", true)
	shows("\r" + strings.Repeat(" ", len([]rune(second))) + "\r")
	b.set(3<<20, 3<<20)
	shows("\rfiles 100% " + strings.Repeat("█", 30) + " 3.0 MiB/3.0 MiB")
	b.clear()
	b.clear()
	shows("\r" + strings.Repeat(" ", 57) + "\r")
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "    "}, {0, 8, "    "}, {1, 8, "    "}, {2, 8, "█   "}, {8, 8, "████"}, {9, 8, "████"}} {
		if got := filled(c.part, c.whole, 4); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

// A command whose output is no terminal shows no bar.
func TestNoBarInFiles(t *testing.T) {
	var out strings.Builder
	b := newBar(&out)
	b.task("items", false)
	b.set(1, 2)
	b.clear()
	if out.String() != "" {
		t.Errorf("written %q", &out)
	}
}
