package engine

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// watchEvery is the time between two looks at the memory of a run. Runs that end sooner are not looked at.
const watchEvery = 10 * time.Millisecond

// memoryWatch ends the process when a run uses more memory than the limit. On systems where the kernel enforces a limit
// it is the one that ends most runs nevertheless, because the kernel's has room for what isn't the program's.
type memoryWatch struct {
	limit  uint64
	timer  *time.Timer
	sample []metrics.Sample
}

// limitMemory sets the limits of the process. The collector works harder when three quarters are used.
func limitMemory(limit int64) (*memoryWatch, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("a memory limit of %d bytes", limit)
	}
	debug.SetMemoryLimit(limit / 4 * 3)
	debug.SetMaxStack(int(limit / 4))
	if err := limitKernel(uint64(limit)); err != nil {
		return nil, err
	}
	w := &memoryWatch{limit: uint64(limit), sample: []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}}
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w, nil
}

// begin watches from now on.
func (w *memoryWatch) begin() { w.timer.Reset(watchEvery) }

// end stops watching. It reports whether the process should end, because the run has used so much memory that the next
// one might not get what it may use.
func (w *memoryWatch) end() bool {
	w.timer.Stop()
	return w.used() > w.limit/2
}

// used returns the memory that the process has from the system.
func (w *memoryWatch) used() uint64 {
	metrics.Read(w.sample)
	return w.sample[0].Value.Uint64() - w.sample[1].Value.Uint64()
}

func (w *memoryWatch) look() {
	if w.used() > w.limit {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(1)
	}
	w.timer.Reset(watchEvery)
}
