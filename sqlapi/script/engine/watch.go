package engine

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// watchEvery is the time between two looks at a run. Runs that end sooner are not looked at.
const watchEvery = 10 * time.Millisecond

// watch looks at the run in progress, if there is one. It ends the process when the run uses more memory than the
// limit, interrupts the engine when its time is up, and has the input watched for its end. On systems where the kernel
// enforces a limit of memory this one ends most runs nevertheless, because the kernel's has room for what isn't the
// program's.
//
// Its timer goes on while there are runs. Starting one for each run would wake another thread each time.
type watch struct {
	limit uint64
	input *input
	timer *time.Timer
	going atomic.Bool // the timer goes
	busy  atomic.Bool // there is a run
	run   atomic.Pointer[machine]
}

// newWatch sets the limits of the process. The collector works harder when three quarters are used.
func newWatch(limit int64, in *input) (*watch, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("a memory limit of %d bytes", limit)
	}
	debug.SetMemoryLimit(limit / 4 * 3)
	debug.SetMaxStack(int(limit / 4))
	if err := limitKernel(uint64(limit)); err != nil {
		return nil, err
	}
	w := &watch{limit: uint64(limit), input: in}
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w, nil
}

// begin says that a run begins.
func (w *watch) begin() {
	w.busy.Store(true)
	w.start()
}

// start has the timer go, if it doesn't.
func (w *watch) start() {
	if w.going.CompareAndSwap(false, true) {
		w.timer.Reset(watchEvery)
	}
}

// end says that the run has ended. It reports whether the process should end too, because the run has used so much
// memory that the next one might not get what it may use.
func (w *watch) end() bool {
	w.run.Store(nil)
	w.busy.Store(false)
	return used() > w.limit/2
}

// used returns the memory that the process has from the system.
func used() uint64 {
	sample := [2]metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

func (w *watch) look() {
	if !w.busy.Load() {
		w.going.Store(false)
		if w.busy.Load() { // it has begun since, and perhaps found that the timer goes
			w.start()
		}
		return
	}
	if used() > w.limit {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(1)
	}
	if m := w.run.Load(); m != nil && m.elapsed() > m.limit {
		m.rt.Interrupt(timeUp{})
	}
	w.input.watch()
	w.timer.Reset(watchEvery)
}
