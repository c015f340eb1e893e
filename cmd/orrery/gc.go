package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// headroom is how many bytes of garbage the process lets pile up between collections, whatever it holds live; a small store
// then isn't collected hundreds of times a second, and a large one doesn't double its memory. From large on, where caches are full, it
// is less: a collection marks little of them, and memory is short.
const (
	headroom      = 64 << 20
	large         = 128 << 20
	largeHeadroom = 40 << 20
)

// The bounds of the collector's percentage that headroom is turned into.
const (
	leastGC = 18
	mostGC  = 400
)

// tuneGC keeps the garbage collector's percentage at what headroom means for the present live heap. It does nothing when the
// user has set GOGC or GOMEMLIMIT.
func tuneGC() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(mostGC)
	afterGC(func() {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		if s[0].Value.Kind() == metrics.KindUint64 {
			debug.SetGCPercent(percentFor(s[0].Value.Uint64()))
		}
	})
}

// percentFor returns the collector's percentage for a live heap.
func percentFor(live uint64) int {
	room := uint64(headroom)
	if live > large {
		room = largeHeadroom
	}
	return int(min(mostGC, max(leastGC, room*100/max(live, 1))))
}

// sentinel is collected in every cycle; its finalizer makes the next one.
type sentinel struct{ _ [16]byte }

// afterGC calls f after every collection, for the life of the process.
func afterGC(f func()) {
	var rearm func(*sentinel)
	rearm = func(*sentinel) {
		f()
		runtime.SetFinalizer(&sentinel{}, rearm)
	}
	runtime.SetFinalizer(&sentinel{}, rearm)
}
