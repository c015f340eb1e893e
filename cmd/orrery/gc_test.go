package main

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for _, tc := range []struct {
		liveMB uint64
		want   int
	}{{0, 400}, {10, 400}, {32, 200}, {64, 100}, {100, 64}, {150, 26}, {200, 20}, {4000, 18}} {
		if got := percentFor(tc.liveMB << 20); got != tc.want {
			t.Errorf("%d MiB live: %d %%, want %d", tc.liveMB, got, tc.want)
		}
	}
}

func TestAfterGC(t *testing.T) {
	var n atomic.Int64
	afterGC(func() { n.Add(1) })
	for deadline := time.Now().Add(10 * time.Second); n.Load() < 3; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("called %d times", n.Load())
		}
		time.Sleep(time.Millisecond)
	}
}
